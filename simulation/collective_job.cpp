// SPDX-License-Identifier: Apache-2.0
// Steps in which all replicas wait for an all_reduce.
#include "simulation/collective_job.hpp"

#include "messages/errors/failure.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

// With so many steps the plans take some hundreds of megabytes of memory.
constexpr double plan_steps_max = 1e7;

uint32_t hosts_of(const scenario& scenario) {
  return scenario.sync.total_num_replicas / scenario.replicas_per_host;
}

void check_hosts(const scenario& scenario) {
  auto replicas = scenario.sync.total_num_replicas;
  if (scenario.replicas_per_host == 0 || replicas % scenario.replicas_per_host != 0)
    throw failure{{errc::invalid_argument,
                   fmt::format("{} replicas do not stand on hosts of {} each; give a divisor",
                               replicas, scenario.replicas_per_host)}};
  if (!scenario.network || !scenario.network->slowed) return;
  const auto& link = *scenario.network->slowed;
  if (link.one == link.other || std::max(link.one, link.other) >= hosts_of(scenario))
    throw failure{{errc::invalid_argument,
                   fmt::format("no link between {} and {}: there are {} hosts, from 0 on", link.one,
                               link.other, hosts_of(scenario))}};
}

const scenario& checked(const scenario& scenario) {
  value_or_throw(scenario.sync.validate());
  check_hosts(scenario);
  if (auto part = reason_against_collectives(scenario); !part.empty())
    throw failure{
      {errc::invalid_argument, fmt::format("a job of collectives is simulated without {}", part)}};
  return scenario;
}

} // namespace

std::string_view reason_against_collectives(const scenario& scenario) {
  const auto& sync = scenario.sync;
  if (sync.replicas_to_aggregate != sync.total_num_replicas) return "backups";
  if (sync.dynamic) return "dynamic backups";
  if (traits_of(sync.policy).is_asynchronous()) return "asynchronous training";
  if (!scenario.dead_replicas.empty()) return "dead replicas";
  if (!scenario.faults.is_empty()) return "faults";
  if (scenario.learning) return "something to learn";
  if (scenario.update) return "update times";
  if (scenario.local_sgd.local_steps > 1) return "local steps";
  if (scenario.replicate_owners > 1) return "owners with mirrors";
  if (scenario.deadline < job_time::max()) return "a deadline";
  if (!scenario.late_starts.empty() || scenario.min_replicas > 0) return "late starts";
  if (scenario.network && scenario.network->service) return "service times";
  if (scenario.network && scenario.network->owners > 1) return "owners";
  if (scenario.network && scenario.network->model_bytes > 0) return "a model to be read";
  auto bytes = scenario.network ? scenario.network->gradient_bytes : 0;
  if (plan_steps_of(*scenario.collective, hosts_of(scenario), bytes) > plan_steps_max)
    return "so many messages";
  if (scenario.engine) return "a choice of the engine";
  return {};
}

collective_job::collective_job(const scenario& scenario, scenario_report& report)
  : scenario_(checked(scenario)), report_(report), book_(report, scenario), draws_(scenario),
    clock_(*scenario.collective, hosts_of(scenario), scenario.network.value_or(network_options{})),
    begun_(scenario.sync.total_num_replicas), hosts_(hosts_of(scenario)),
    ends_(begun_.size(), job_time{0}), waited_(begun_.size(), job_time{0}) {}

void collective_job::run() {
  for (uint64_t step = 1; step <= scenario_.steps; ++step)
    make_step(step);
  report_.job.step = scenario_.steps;
}

void collective_job::make_step(uint64_t step) {
  auto replicas = static_cast<uint32_t>(begun_.size());
  step_record record{.step = step, .began = ended_, .needed = replicas, .live = replicas};
  for (uint32_t replica = 0; replica < replicas; ++replica) {
    auto time = draws_.next(replica);
    begun_[replica] = later(ends_[replica], time);
    record.accepted.push_back({.replica = replica,
                               .local_step = step - 1,
                               .arrived = begun_[replica],
                               .compute = time,
                               .waited = waited_[replica]});
  }
  std::ranges::fill(hosts_, job_time{0});
  for (uint32_t replica = 0; replica < replicas; ++replica) {
    auto& host = hosts_[replica / scenario_.replicas_per_host];
    host = std::max(host, begun_[replica]);
  }
  const auto& ends = clock_.next(hosts_);
  for (uint32_t replica = 0; replica < replicas; ++replica) {
    ends_[replica] = ends[replica / scenario_.replicas_per_host];
    waited_[replica] = ends_[replica] - begun_[replica];
  }
  ended_ = std::ranges::max(ends_);
  std::ranges::sort(record.accepted, {}, [](const contribution& one) {
    return std::pair{one.arrived, one.replica};
  });
  record.ended = ended_;
  record.apply = ended_ - record.accepted.back().arrived;
  report_.events += replicas;
  book_.add_and_tell(record);
}

} // namespace troupe
