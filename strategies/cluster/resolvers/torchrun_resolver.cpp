// SPDX-License-Identifier: Apache-2.0
// Makes addresses of one host and the ports behind torchrun's own.
#include "strategies/cluster/resolvers/torchrun_resolver.hpp"

#include "actors/net/host_port.hpp"
#include "messages/errors/throw_failure.hpp"

#include <algorithm>

namespace troupe {

namespace {

constexpr auto torchrun = "torchrun";
constexpr uint64_t port_max = 65535;

} // namespace

torchrun_resolver::torchrun_resolver(environment_reader environment, std::optional<job_counts> jobs)
  : environment_(std::move(environment)), jobs_(std::move(jobs)) {}

uint64_t torchrun_resolver::number(const char* variable) const {
  return launcher_number(environment_, torchrun, {variable});
}

std::optional<uint64_t> torchrun_resolver::number_if_set(const char* variable) const {
  if (environment_(variable).value_or("").empty()) return std::nullopt;
  return number(variable);
}

job_counts torchrun_resolver::jobs() const {
  if (jobs_) return *jobs_;
  auto processes = number("WORLD_SIZE");
  if (processes == 0)
    throw_failure(errc::failed_precondition,
                  "torchrun: WORLD_SIZE is 0, but there is this process");
  if (processes == 1) return {{"chief", 1}};
  return {{"chief", 1}, {"worker", processes - 1}};
}

// All processes must come to the same, and know no other machine's number; if all start as many,
// they divide.
uint64_t torchrun_resolver::processes_of_first_machine(uint64_t processes) const {
  auto here = number_if_set("LOCAL_WORLD_SIZE").value_or(0);
  if (here == 0 || here > processes || processes % here != 0)
    return std::min<uint64_t>(1, processes);
  auto machines = number_if_set("GROUP_WORLD_SIZE").value_or(processes / here);
  return machines * here == processes ? here : 1;
}

troupe::cluster_spec torchrun_resolver::cluster_spec() const {
  auto processes = number("WORLD_SIZE");
  auto host = launcher_text(environment_, torchrun, {"MASTER_ADDR"});
  auto first_port = number("MASTER_PORT") + 1;
  auto dialled = processes_of_first_machine(processes);
  if (first_port + dialled - 1 > port_max) {
    throw_failure(
      errc::failed_precondition,
      "torchrun: MASTER_PORT is {}, so {} ports behind it would be above {}: give another "
      "--master-port",
      first_port - 1, dialled, port_max);
  }
  std::vector<std::string> addresses(processes);
  for (uint64_t i = 0; i < dialled; ++i)
    addresses[i] = to_string(host_port{host, static_cast<uint16_t>(first_port + i)});
  return sliced(jobs(), addresses);
}

task_query torchrun_resolver::found_task() const {
  return task_of_process(jobs(), number("RANK"));
}

std::optional<uint64_t> torchrun_resolver::machine() const {
  return number_if_set("GROUP_RANK");
}

std::optional<uint64_t> torchrun_resolver::local_rank() const {
  return number_if_set("LOCAL_RANK");
}

declared_cluster declared_by_torchrun(const cluster_options& options,
                                      const environment_reader& environment,
                                      std::vector<cluster_finding>& findings) {
  torchrun_resolver resolver{environment, counted_by_flags(options)};
  auto declared = declared_by_launcher(torchrun, resolver, findings);
  declared.addresses_may_be_empty = true;
  return declared;
}

} // namespace troupe
