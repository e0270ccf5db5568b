// SPDX-License-Identifier: Apache-2.0
// The rules between options of a job.
#include "tools/options/job_checks.hpp"

#include "actors/gpu/device_list.hpp"
#include "actors/policies/step_rules.hpp"
#include "simulation/distributions/distribution.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/option_value.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace troupe {

namespace {

expected<void> check_backups(const job_options& options, const option_origins& origins) {
  if (options.curvature && options.backups == backup_kind::fixed)
    return misuse(fmt::format("{} has no meaning where a step needs a fixed number of gradients: "
                              "leave it out, or take --backups dynamic",
                              spelling(origins, "curvature")));
  if (options.backups == backup_kind::fixed || traits_of(options.policy).may_adapt()) return {};
  return misuse(fmt::format("{} dynamic does not go with policy {}: take --policy {}",
                            spelling(origins, "backups"), to_string(options.policy),
                            names_of(policies_that(&policy_traits::may_adapt))));
}

expected<void> check_slack(const job_options& options, const option_origins& origins) {
  if (!options.slack || traits_of(options.policy).keeps_pace()) return {};
  return misuse(fmt::format("{} has no meaning under policy {}: leave it out, or take --policy ssp",
                            spelling(origins, "slack"), to_string(options.policy)));
}

expected<void> check_aggregate(const job_options& options, const option_origins& origins) {
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

expected<void> check_min_replicas(const job_options& options, const option_origins& origins) {
  if (options.min_replicas == 0) return {};
  auto misuse_of = [&](const std::string& why) {
    return misuse(
      fmt::format("{} {}: {}", spelling(origins, "min-replicas"), options.min_replicas, why));
  };
  const auto sync = sync_of(options);
  if (traits_of(options.policy).counts_tokens())
    return misuse_of(fmt::format("policy {} puts tokens for all replicas into its queue; those of "
                                 "absent ones grow stale there, and a replica that joins takes "
                                 "them: take --policy latest_token",
                                 to_string(options.policy)));
  if (options.min_replicas > options.replicas)
    return misuse_of(
      fmt::format("there are {} replicas: lower it, or raise --replicas", options.replicas));
  if (auto fewest = fewest_replicas(sync); options.min_replicas < fewest)
    return misuse_of(fmt::format("a step needs the gradients of {} replicas: raise it to {}, or "
                                 "lower --aggregate",
                                 fewest, fewest));
  return {};
}

expected<void> check_initial_tokens(const job_options& options, const option_origins& origins) {
  if (!options.initial_tokens || traits_of(options.policy).counts_tokens()) return {};
  return misuse(
    fmt::format("{} has no meaning under policy {}: leave it out, or take --policy tensorflow",
                spelling(origins, "initial-tokens"), to_string(options.policy)));
}

expected<void> check_slow(const job_options& options, const option_origins& origins) {
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

// Whether an option names GPUs. The job looks for them when it begins.
expected<bool> names_gpus(const job_options& options, const std::string& name,
                          const std::string& value) {
  auto devices = read_devices(value);
  if (!devices) return fail_at(name, devices.error());
  if (devices->empty() || options.world == world_kind::threads) return !devices->empty();
  return misuse(fmt::format("{} {} does not go with --world virtual, whose time a GPU does not "
                            "know: take cpu, or --world threads",
                            name, value));
}

expected<void> check_device(const job_options& options, const option_origins& origins) {
  return names_gpus(options, spelling(origins, "device"), options.device).map([](bool) {});
}

expected<void> check_variable_device(const job_options& options, const option_origins& origins) {
  if (options.variable_device.empty()) return {};
  const auto name = spelling(origins, "variable-device");
  const auto is_on_gpus = names_gpus(options, name, options.variable_device);
  if (!is_on_gpus) return tl::unexpected<error>(is_on_gpus.error());
  const auto devices = read_devices(options.variable_device);
  if (replicas_meet(options.strategy) && devices->size() > 1
      && devices != read_devices(options.device))
    return misuse(fmt::format("{} {}: with --strategy {} the variables of a process lie on one "
                              "GPU, or with a copy on each where replicas compute: name one, or "
                              "those of --device",
                              name, options.variable_device, to_string(options.strategy)));
  if (*is_on_gpus && options.replicate_owners > 1)
    return misuse(fmt::format("{} {}: variables that two parameter servers hold lie in the host's "
                              "memory: take cpu, or --replicate-owners 1",
                              name, options.variable_device));
  return {};
}

expected<void> check_communication(const job_options& options, const option_origins& origins) {
  auto devices = read_devices(options.device);
  auto is_on_gpus = devices && !devices->empty();
  if (options.communication != communication_implementation::nccl || is_on_gpus) return {};
  return misuse(
    fmt::format("{} nccl adds up gradients on GPUs, and replicas are to compute on the "
                "processor: name GPUs, as in --device gpu:0, or take --communication auto",
                spelling(origins, "communication")));
}

expected<void> check_metrics(const job_options& options, const option_origins& origins) {
  auto is_given = origin_of(origins, "metrics-address").from == option_origin::source::command_line;
  if (options.metrics_port || !is_given) return {};
  return misuse("--metrics-address has no meaning without --metrics-port: give both");
}

expected<void> check_virtual_time(const job_options& options, const option_origins& origins) {
  auto refuse_in_real_time = [&](std::string_view key) {
    return misuse(fmt::format("{} has no meaning in real time: leave it out, or take --world "
                              "virtual",
                              spelling(origins, key)));
  };
  if (options.world == world_kind::threads) {
    if (!options.compute.empty()) return refuse_in_real_time("compute");
    if (options.arithmetic == arithmetic_kind::skipped) return refuse_in_real_time("arithmetic");
  }
  if (options.compute.empty()) return {};
  const auto name = spelling(origins, "compute");
  auto compute = distribution::parse(options.compute);
  if (!compute) return fail_at(name, compute.error());
  return check_named_nodes(name, *compute, options.replicas);
}

std::string_view why_without_meaning(std::string_view option) {
  if (option == "communication")
    return "where no process adds up gradients with others: leave it out, or take --strategy "
           "multi_worker_mirrored";
  if (option == "check-replicas")
    return "where no processes have copies of variables to compare: leave it out, or take "
           "--strategy multi_worker_mirrored";
  return "where every update takes the gradients of all replicas: leave it out, or take --strategy "
         "parameter_server";
}

} // namespace

expected<void> fit_strategy(job_options& options, option_origins& origins) {
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

void fit(job_options& options, const option_origins& origins, uint64_t workers) {
  if (origins.contains("replicas") || options.replicas % workers == 0) return;
  options.replicas = workers;
  if (origins.contains("aggregate") || traits_of(options.policy).keeps_pace()) return;
  options.aggregate
    = replicas_meet(options.strategy) ? workers : std::max<uint64_t>(1, workers - 1);
}

expected<void> check_named_nodes(std::string_view option, const distribution& times, uint64_t count,
                                 std::string_view kind) {
  auto last = times.last_named_replica();
  if (!last || *last < count) return {};
  return misuse(fmt::format("{}: {} speaks of {} {}, but there are {}: 0 to {}", option,
                            times.text(), kind, *last, count, count - 1));
}

expected<void> check(const job_options& options, const option_origins& origins) {
  for (auto* rule : {check_initial_tokens, check_backups, check_slack, check_aggregate,
                     check_min_replicas, check_slow, check_device, check_variable_device,
                     check_communication, check_metrics, check_virtual_time})
    if (auto done = rule(options, origins); !done) return done;
  return {};
}

} // namespace troupe
