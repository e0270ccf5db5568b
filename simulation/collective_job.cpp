// SPDX-License-Identifier: Apache-2.0
// Step by step, all together.
#include "simulation/collective_job.hpp"

#include "messages/failure.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

// With so many steps the plans take some hundreds of megabytes of memory.
constexpr double plan_steps_max = 1e7;

uint32_t hosts_of(const scenario& what) {
  return what.sync.total_num_replicas / what.replicas_per_host;
}

void check_hosts(const scenario& what) {
  auto replicas = what.sync.total_num_replicas;
  if (what.replicas_per_host == 0 || replicas % what.replicas_per_host != 0)
    throw failure{{errc::invalid_argument,
                   fmt::format("{} replicas do not stand on hosts of {} each; give a divisor",
                               replicas, what.replicas_per_host)}};
  if (!what.network || !what.network->slowed) return;
  const auto& link = *what.network->slowed;
  if (link.one == link.other || std::max(link.one, link.other) >= hosts_of(what))
    throw failure{{errc::invalid_argument,
                   fmt::format("no link between {} and {}: there are {} hosts, from 0 on", link.one,
                               link.other, hosts_of(what))}};
}

const scenario& checked(const scenario& what) {
  value_or_throw(what.sync.validate());
  check_hosts(what);
  if (auto part = reason_against_collectives(what); !part.empty())
    throw failure{
      {errc::invalid_argument, fmt::format("a job of collectives is simulated without {}", part)}};
  return what;
}

} // namespace

std::string_view reason_against_collectives(const scenario& what) {
  const auto& sync = what.sync;
  if (sync.replicas_to_aggregate != sync.total_num_replicas) return "backups";
  if (sync.dynamic) return "dynamic backups";
  if (traits_of(sync.policy).is_asynchronous()) return "asynchronous training";
  if (!what.dead_replicas.empty()) return "dead replicas";
  if (!what.faults.is_empty()) return "faults";
  if (what.learning) return "something to learn";
  if (what.update) return "update times";
  if (what.local_sgd.local_steps > 1) return "local steps";
  if (what.replicate_owners > 1) return "owners with mirrors";
  if (what.deadline < job_time::max()) return "a deadline";
  if (!what.late_starts.empty() || what.min_replicas > 0) return "late starts";
  if (what.network && what.network->service) return "service times";
  if (what.network && what.network->owners > 1) return "owners";
  if (what.network && what.network->model_bytes > 0) return "a model to be read";
  auto bytes = what.network ? what.network->gradient_bytes : 0;
  if (plan_steps_of(*what.collective, hosts_of(what), bytes) > plan_steps_max)
    return "so many messages";
  if (what.engine) return "a choice of the engine";
  return {};
}

collective_job::collective_job(const scenario& what, scenario_report& report)
  : what_(checked(what)), report_(report), book_(report, what), draws_(what),
    clock_(*what.collective, hosts_of(what), what.network.value_or(network_options{})),
    begun_(what.sync.total_num_replicas), hosts_(hosts_of(what)), ends_(begun_.size(), job_time{0}),
    waited_(begun_.size(), job_time{0}) {}

void collective_job::run() {
  for (uint64_t step = 1; step <= what_.steps; ++step)
    make_step(step);
  report_.job.step = what_.steps;
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
    auto& host = hosts_[replica / what_.replicas_per_host];
    host = std::max(host, begun_[replica]);
  }
  const auto& ends = clock_.next(hosts_);
  for (uint32_t replica = 0; replica < replicas; ++replica) {
    ends_[replica] = ends[replica / what_.replicas_per_host];
    waited_[replica] = ends_[replica] - begun_[replica];
  }
  ended_ = std::ranges::max(ends_);
  std::ranges::sort(record.accepted, {}, [](const contribution& one) {
    return std::pair{one.arrived, one.replica};
  });
  record.ended = ended_;
  record.apply = ended_ - record.accepted.back().arrived;
  report_.events += replicas;
  book_.add(record);
  if (record.ended > time_max) throw failure{end_of_time(step)};
  if (what_.on_step) what_.on_step(record);
}

} // namespace troupe
