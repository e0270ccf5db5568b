// SPDX-License-Identifier: Apache-2.0
// Makes a task, its optimizer and its data of options.
#include "tools/sim/learning.hpp"

#include "actors/training/optimizer_settings.hpp"
#include "messages/errors/failure.hpp"
#include "simulation/logistic_task.hpp"
#include "tools/language/language_task.hpp"
#include "tools/model/training_defaults.hpp"
#include "tools/system/file_content.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe {

namespace {

constexpr std::string_view logistic = "logistic";
constexpr std::string_view language = "language";
constexpr std::string_view usual_optimizer = rules::sgd::name;
constexpr double logistic_learning_rate = 0.5;
constexpr uint64_t usual_batch = 32;
constexpr uint64_t usual_evaluations = 50;
constexpr uint64_t text_bytes_max = uint64_t{1} << 26;

using learning_function = std::function<learning_options(uint64_t)>;

expected<void> check_without_learning(const sim_options& options) {
  constexpr std::array<std::string_view, 8> options_of_learning{
    "optimizer", "learning-rate",  "batch",       "data",
    "text",      "evaluate-every", "target-loss", "curvature"};
  for (const auto& [key, text] : option_texts(options))
    if (std::ranges::count(options_of_learning, key) > 0)
      return misuse(
        fmt::format("--{} has no meaning where nothing is learnt; leave it out, or take "
                    "--train logistic or language",
                    key));
  return {};
}

expected<void> check_learning(const sim_options& options) {
  if (options.train != logistic && options.train != language)
    return misuse(
      fmt::format("--train: nothing called '{}' can be learnt; there are logistic and language",
                  options.train));
  if (!options.data.empty() && options.data != "same" && options.data != "own")
    return misuse(fmt::format("--data must be same or own, not '{}'", options.data));
  if (!options.text.empty() && options.train != language)
    return misuse("--text has no meaning under --train logistic, whose data are drawn; leave it "
                  "out, or take --train language");
  return {};
}

expected<update_plan> plan_of(const sim_options& options) {
  auto optimizer = options.optimizer.empty() ? std::string{usual_optimizer} : options.optimizer;
  auto names = choice_names<update_rule>();
  if (std::ranges::count(names, optimizer) == 0)
    return misuse(fmt::format("--optimizer: no optimizer '{}'; there are {}", optimizer,
                              fmt::join(names, ", ")));
  if (options.policy == "local_sgd" && options.local_steps.value_or(1) > 1
      && optimizer != usual_optimizer)
    return misuse(fmt::format("--optimizer {} makes no local steps; leave it out, or take "
                              "--local-steps 1",
                              optimizer));
  auto usual = options.train == logistic && optimizer == usual_optimizer
                 ? logistic_learning_rate
                 : default_learning_rate(optimizer);
  auto plan = to_plan({optimizer, {{"learning_rate", options.learning_rate.value_or(usual)}}});
  if (!plan) return misuse(fmt::format("--learning-rate: {}", plan.error().message));
  return plan;
}

learning_task logistic_of(const sim_options& options, uint64_t seed) {
  return logistic_task({.seed = seed,
                        .replicas = static_cast<uint32_t>(options.replicas),
                        .batch = static_cast<uint32_t>(options.batch.value_or(usual_batch)),
                        .own_data = options.data == "own"});
}

expected<learning_task> language_of(const sim_options& options,
                                    std::shared_ptr<const std::string> text, uint64_t seed) {
  return language_task({.text = std::move(text),
                        .seed = seed,
                        .replicas = static_cast<uint32_t>(options.replicas),
                        .batch = static_cast<uint32_t>(options.batch.value_or(usual_batch)),
                        .own_data = options.data == "own"});
}

expected<std::shared_ptr<const std::string>> text_of(const sim_options& options) {
  if (options.train != language) return nullptr;
  auto path = options.text.empty() ? std::string{train_defaults::text} : options.text;
  auto text = file_content(path, text_bytes_max);
  if (!text) return fail_at("--text", text.error());
  auto shared_text = std::make_shared<const std::string>(std::move(*text));
  if (auto task = language_of(options, shared_text, 0); !task)
    return misuse("--text: " + task.error().message);
  return shared_text;
}

} // namespace

expected<learning_function> learning_of(const sim_options& options) {
  if (options.train.empty())
    return check_without_learning(options).map([] { return learning_function{}; });
  if (auto valid = check_learning(options); !valid) return tl::unexpected<error>(valid.error());
  auto plan = plan_of(options);
  if (!plan) return tl::unexpected<error>(plan.error());
  auto text = text_of(options);
  if (!text) return tl::unexpected<error>(text.error());
  auto evaluate_every
    = options.evaluate_every.value_or(std::max<uint64_t>(options.steps / usual_evaluations, 1));
  return [options, plan = *plan, text = *text, evaluate_every](uint64_t seed) {
    auto task
      = text ? value_or_throw(language_of(options, text, seed)) : logistic_of(options, seed);
    return learning_options{.task = std::make_shared<const learning_task>(std::move(task)),
                            .plan = plan,
                            .evaluate_every = evaluate_every};
  };
}

} // namespace troupe
