// SPDX-License-Identifier: Apache-2.0
// The rules between options of `troupe train`.
#include "tools/train/checks.hpp"

#include "actors/training/optimizer_settings.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/nearest_name.hpp"
#include "tools/options/option_value.hpp"
#include "tools/train/plan.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <string_view>

namespace troupe {

namespace {

// The option that a setting has of its own; empty: none.
std::string_view own_option(std::string_view setting) {
  if (setting == "learning_rate") return "--learning-rate";
  if (setting == "clip_global_norm") return "--clip-global-norm";
  return {};
}

expected<void> check_optimizer(const train_options& options, const option_origins& origins) {
  auto names = setting_names(options.optimizer);
  if (!names) return tl::unexpected<error>(names.error());
  std::erase(*names, "learning_rate");
  const auto option = spelling(origins, "optimizer-setting");
  std::set<std::string_view> seen;
  for (const auto& setting : options.optimizer_settings) {
    if (auto own = own_option(setting.name); !own.empty())
      return misuse(
        fmt::format("{} {}={}: this is the option {}", option, setting.name, setting.value, own));
    if (std::ranges::count(*names, setting.name) == 0) {
      return misuse(fmt::format("{} {}={}: {} has no such setting; the nearest it has is '{}'",
                                option, setting.name, setting.value, options.optimizer,
                                nearest_name(setting.name, *names)));
    }
    if (!seen.insert(setting.name).second)
      return misuse(fmt::format("{} sets {} twice", option, setting.name));
  }
  auto plan = plan_of(options, 1);
  if (!plan) return fail_at(option, plan.error());
  return {};
}

expected<void> check_given_steps(const train_options& options, const option_origins& origins) {
  return options.steps ? check_warm_up(options, origins, *options.steps) : expected<void>{};
}

expected<void> check_hidden(const train_options& options, const option_origins& origins) {
  const size_t layers = options.model.hidden_sizes.size();
  if (layers <= language_model_layers_max) return {};
  return misuse(fmt::format("{} lists {} layers; at most {} are possible",
                            spelling(origins, "hidden"), layers, language_model_layers_max));
}

expected<void> check_heads(const train_options& options, const option_origins& origins) {
  const auto& model = options.model;
  if (model.kind != model_kind::transformer || model.width % model.heads == 0) return {};
  return misuse(fmt::format("{} {} cannot be shared evenly by {} {}: take a multiple",
                            spelling(origins, "width"), model.width, spelling(origins, "heads"),
                            model.heads));
}

expected<void> check_images(const train_options& options, const option_origins& origins) {
  if (options.learn == learned_kind::language) return {};
  if (options.data.empty())
    return misuse("--learn images needs a data set: name the folder of its files with --data DIR");
  const size_t layers = options.images.filters.size();
  if (layers >= 1 && layers <= image_model_layers_max) return {};
  return misuse(fmt::format("{} lists {} convolutions; 1 to {} are possible",
                            spelling(origins, "filters"), layers, image_model_layers_max));
}

} // namespace

expected<void> settle(train_options& options, const option_origins& origins) {
  if (options.steps && options.epochs) {
    const auto steps = origin_of(origins, "steps");
    const auto epochs = origin_of(origins, "epochs");
    if (steps.from == epochs.from) {
      return misuse(fmt::format("{} and {} exclude each other: give one of them",
                                spelling(origins, "steps"), spelling(origins, "epochs")));
    }
    (steps.from < epochs.from ? options.steps : options.epochs).reset();
  }
  if (options.epochs && options.backups == backup_kind::dynamic)
    return misuse(fmt::format("{} does not go with {} dynamic, whose steps take a varying number "
                              "of gradients: take --steps",
                              spelling(origins, "epochs"), spelling(origins, "backups")));
  if (!options.steps && !options.epochs)
    options.steps
      = options.learn == learned_kind::images ? train_defaults::image_steps : train_defaults::steps;
  if (!options.learning_rate) options.learning_rate = default_learning_rate(options);
  if (options.model.kind != model_kind::transformer) return {};
  const auto usual = usual_transformer();
  if (!origins.contains("context")) options.model.context = usual.context;
  if (!origins.contains("hidden-dropout")) options.model.hidden_dropout = usual.hidden_dropout;
  return {};
}

expected<void> fit_learned(train_options& options, option_origins& origins) {
  const auto* advice = options.learn == learned_kind::language
                         ? "where a language is learnt: leave it out, or take --learn images"
                         : "where images are learnt: leave it out, or take --learn language";
  for (const auto name : without_meaning(options.learn))
    if (auto done = drop(name, "learn", advice, options, origins); !done) return done;
  return {};
}

expected<void> fit_model(train_options& options, option_origins& origins) {
  auto advice = fmt::format("for a {}: leave it out, or choose the other --model",
                            to_string(options.model.kind));
  for (const auto name : without_meaning(options.model.kind))
    if (auto done = drop(name, "model", advice, options, origins); !done) return done;
  return {};
}

expected<void> check_warm_up(const train_options& options, const option_origins& origins,
                             uint64_t steps) {
  if (options.warm_up == 0 || options.warm_up < steps) return {};
  return misuse(fmt::format("{} {} leaves no step for training: there are {}",
                            spelling(origins, "warm-up"), options.warm_up, steps));
}

expected<void> check(const train_options& options, const option_origins& origins) {
  const job_options& job = options;
  if (auto done = check(job, origins); !done) return done;
  for (auto* rule : {check_optimizer, check_given_steps, check_hidden, check_heads, check_images})
    if (auto done = rule(options, origins); !done) return done;
  return {};
}

} // namespace troupe
