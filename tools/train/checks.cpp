// SPDX-License-Identifier: Apache-2.0
// The rules between options.
#include "tools/train/checks.hpp"

#include "actors/gpu/device_list.hpp"
#include "actors/training/optimizer_settings.hpp"
#include "tools/options/nearest_name.hpp"
#include "tools/options/option_value.hpp"
#include "tools/train/plan.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace troupe {

namespace {

expected<void> check_backups(const train_options& options, const option_origins& origins) {
  if (options.curvature && options.backups == backup_kind::fixed)
    return misuse(fmt::format("{} has no meaning where a step needs a fixed number of gradients: "
                              "leave it out, or take --backups dynamic",
                              spelling(origins, "curvature")));
  if (options.backups == backup_kind::fixed || traits_of(options.policy).may_adapt()) return {};
  return misuse(fmt::format("{} dynamic does not go with policy {}: take --policy {}",
                            spelling(origins, "backups"), to_string(options.policy),
                            names_of(policies_that(&policy_traits::may_adapt))));
}

expected<void> check_slack(const train_options& options, const option_origins& origins) {
  if (!options.slack || traits_of(options.policy).keeps_pace()) return {};
  return misuse(fmt::format("{} has no meaning under policy {}: leave it out, or take --policy ssp",
                            spelling(origins, "slack"), to_string(options.policy)));
}

expected<void> check_aggregate(const train_options& options, const option_origins& origins) {
  const auto name = spelling(origins, "aggregate");
  const auto& policy = traits_of(options.policy);
  if (policy.keeps_pace() && options.aggregate != 1)
    return misuse(fmt::format("{} is {}, but under policy {} every gradient is an update: take "
                              "--aggregate 1, or another policy",
                              name, options.aggregate, policy.name));
  if (options.aggregate <= options.replicas || (policy.repeats && policy.is_asynchronous()))
    return {};
  if (!policy.repeats) {
    return misuse(
      fmt::format("{} {} can never be reached by {} replicas, since under policy {} each gives "
                  "one gradient to a step: lower it, raise --replicas, or take --policy "
                  "tensorflow",
                  name, options.aggregate, options.replicas, to_string(options.policy)));
  }
  const uint64_t needed = options.aggregate - options.replicas;
  if (options.initial_tokens.value_or(options.aggregate) >= needed) return {};
  return misuse(
    fmt::format("{} {} needs at least {} spare tokens with {} replicas, or the first step never "
                "ends: raise {} from {}, lower --aggregate, or raise --replicas",
                name, options.aggregate, needed, options.replicas,
                spelling(origins, "initial-tokens"), *options.initial_tokens));
}

expected<void> check_initial_tokens(const train_options& options, const option_origins& origins) {
  if (!options.initial_tokens || traits_of(options.policy).counts_tokens()) return {};
  return misuse(
    fmt::format("{} has no meaning under policy {}: leave it out, or take --policy tensorflow",
                spelling(origins, "initial-tokens"), to_string(options.policy)));
}

expected<void> check_slow(const train_options& options, const option_origins& origins) {
  const auto name = spelling(origins, "slow");
  std::set<uint64_t> seen;
  for (const auto& slow : options.slow) {
    if (slow.replica >= options.replicas) {
      return misuse(fmt::format("{} {}={} names a replica that is not there: the last one is {}",
                                name, slow.replica, slow.factor, options.replicas - 1));
    }
    if (!seen.insert(slow.replica).second)
      return misuse(fmt::format("{} names replica {} twice", name, slow.replica));
  }
  return {};
}

// Whether an option names GPUs. Whether they are there is asked when the job is about to begin.
expected<bool> names_gpus(const train_options& options, const std::string& name,
                          const std::string& value) {
  auto devices = read_devices(value);
  if (!devices)
    return fail(devices.error().code, fmt::format("{}: {}", name, devices.error().message));
  if (devices->empty() || options.world == world_kind::threads) return !devices->empty();
  return misuse(fmt::format("{} {} does not go with --world virtual, whose time a GPU does not "
                            "know: take cpu, or --world threads",
                            name, value));
}

expected<void> check_device(const train_options& options, const option_origins& origins) {
  auto named = names_gpus(options, spelling(origins, "device"), options.device);
  return named ? expected<void>{} : tl::unexpected<error>(named.error());
}

expected<void> check_variable_device(const train_options& options, const option_origins& origins) {
  if (options.variable_device.empty()) return {};
  const auto name = spelling(origins, "variable-device");
  auto named = names_gpus(options, name, options.variable_device);
  if (!named) return tl::unexpected<error>(named.error());
  if (*named && replicas_meet(options.strategy))
    return misuse(fmt::format("{} {}: with --strategy {} each replica has its copy of each "
                              "variable, in the host's memory: leave the option out",
                              name, options.variable_device, to_string(options.strategy)));
  if (*named && options.replicate_owners > 1)
    return misuse(fmt::format("{} {}: variables that two parameter servers hold lie in the host's "
                              "memory: take cpu, or --replicate-owners 1",
                              name, options.variable_device));
  return {};
}

expected<void> check_communication(const train_options& options, const option_origins& origins) {
  auto devices = read_devices(options.device);
  auto is_on_gpus = devices && !devices->empty();
  if (options.communication != communication_implementation::nccl || is_on_gpus) return {};
  return misuse(
    fmt::format("{} nccl adds up gradients on GPUs, and replicas are to compute on the "
                "processor: name GPUs, as in --device gpu:0, or take --communication auto",
                spelling(origins, "communication")));
}

// Learning rate and schedule have options of their own.
expected<void> check_optimizer(const train_options& options, const option_origins& origins) {
  auto names = setting_names(options.optimizer);
  if (!names) return tl::unexpected<error>(names.error());
  std::erase(*names, "learning_rate");
  const auto option = spelling(origins, "optimizer-setting");
  for (const auto& setting : options.optimizer_settings) {
    if (std::ranges::count(*names, setting.name) > 0) continue;
    return misuse(fmt::format("{} {}={}: {} has no such setting; the nearest it has is '{}'",
                              option, setting.name, setting.value, options.optimizer,
                              nearest_name(setting.name, *names)));
  }
  auto plan = plan_of(options, 1);
  if (!plan) return fail(plan.error().code, fmt::format("{}: {}", option, plan.error().message));
  return {};
}

expected<void> check_warm_up(const train_options& options, const option_origins& origins) {
  if (options.warm_up == 0 || !options.steps || options.warm_up < *options.steps) return {};
  return misuse(fmt::format("{} {} leaves no step for training: there are {}",
                            spelling(origins, "warm-up"), options.warm_up, *options.steps));
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

// Drops the value of an option that has no meaning beside what `chosen` was set to; refuses it, if
// `chosen` does not come from a stronger source. @param why As the line goes on behind the option.
expected<void> drop(std::string_view option, std::string_view chosen, const std::string& why,
                    train_options& options, option_origins& origins) {
  const std::string key{option};
  if (!origins.contains(key)) return {};
  if (origin_of(origins, key).from >= origin_of(origins, std::string{chosen}).from)
    return misuse(fmt::format("{} has no meaning {}", spelling(origins, key), why));
  reset(key, options);
  origins.erase(key);
  return {};
}

std::string_view why_without_meaning(std::string_view option) {
  if (option == "communication")
    return "where no process adds up gradients with others: leave it out, or take --strategy "
           "multi_worker_mirrored";
  return "where every update takes the gradients of all replicas: leave it out, or take --strategy "
         "parameter_server";
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

expected<void> fit_strategy(train_options& options, option_origins& origins) {
  for (const auto name : without_meaning(options.strategy)) {
    auto why = fmt::format("under strategy {}, {}", to_string(options.strategy),
                           why_without_meaning(name));
    if (auto done = drop(name, "strategy", why, options, origins); !done) return done;
  }
  if (replicas_meet(options.strategy))
    options.aggregate = options.replicas;
  else if (traits_of(options.policy).keeps_pace() && !origins.contains("aggregate"))
    options.aggregate = 1;
  return {};
}

expected<void> fit_learned(train_options& options, option_origins& origins) {
  const auto* why = options.learn == learned_kind::language
                      ? "where a language is learnt: leave it out, or take --learn images"
                      : "where images are learnt: leave it out, or take --learn language";
  for (const auto name : without_meaning(options.learn))
    if (auto done = drop(name, "learn", why, options, origins); !done) return done;
  return {};
}

expected<void> fit_model(train_options& options, option_origins& origins) {
  auto why = fmt::format("for a {}: leave it out, or choose the other --model",
                         to_string(options.model.kind));
  for (const auto name : without_meaning(options.model.kind))
    if (auto done = drop(name, "model", why, options, origins); !done) return done;
  return {};
}

void fit(train_options& options, const option_origins& origins, uint64_t workers) {
  if (origins.contains("replicas") || options.replicas % workers == 0) return;
  options.replicas = workers;
  if (origins.contains("aggregate") || traits_of(options.policy).keeps_pace()) return;
  options.aggregate
    = replicas_meet(options.strategy) ? workers : std::max<uint64_t>(1, workers - 1);
}

expected<void> check(const train_options& options, const option_origins& origins) {
  for (auto* rule : {check_initial_tokens, check_backups, check_slack, check_aggregate, check_slow,
                     check_device, check_variable_device, check_communication, check_optimizer,
                     check_warm_up, check_hidden, check_heads, check_images})
    if (auto done = rule(options, origins); !done) return done;
  return {};
}

} // namespace troupe
