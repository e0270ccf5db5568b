// SPDX-License-Identifier: Apache-2.0
// Makes addresses of ranks and hosts.
#include "strategies/cluster/resolvers/open_mpi_resolver.hpp"

#include "actors/net/host_port.hpp"
#include "messages/errors/throw_failure.hpp"
#include "strategies/cluster/host_list.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <span>

namespace troupe {

namespace {

constexpr auto open_mpi = "Open MPI";

// A port may turn out to be none; `check_cluster` says so.
std::string host_port_text(const std::string& host, uint64_t port) {
  auto is_version_6 = host.find(':') != std::string::npos;
  return is_version_6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string host_of(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

} // namespace

open_mpi_resolver::open_mpi_resolver(open_mpi_options options, environment_reader environment)
  : cluster_resolver({.rpc_layer = options.rpc_layer}), options_(std::move(options)),
    environment_(std::move(environment)) {}

uint64_t open_mpi_resolver::number(const char* variable) const {
  return launcher_number(environment_, open_mpi, {variable});
}

job_counts open_mpi_resolver::jobs() const {
  if (options_.jobs) return *options_.jobs;
  return {{"worker", number("OMPI_COMM_WORLD_SIZE")}};
}

std::vector<std::string> open_mpi_resolver::hosts(uint64_t processes) const {
  if (!options_.hosts.empty()) return options_.hosts;
  if (auto text = environment_("TROUPE_HOSTS"); text && !text->empty()) {
    auto hosts = expand_hostlist(*text);
    if (!hosts) throw_failure(errc::failed_precondition, "TROUPE_HOSTS: {}", hosts.error().message);
    return *hosts;
  }
  if (number("OMPI_COMM_WORLD_LOCAL_SIZE") == processes) return {"127.0.0.1"};
  throw_failure(
    errc::failed_precondition,
    "mpirun tells no process on which hosts the other {} are: list them in the order of ranks, "
    "as in mpirun -x TROUPE_HOSTS=node1,node2",
    processes - 1);
}

std::vector<std::string> open_mpi_resolver::addresses() const {
  auto processes = number("OMPI_COMM_WORLD_SIZE");
  auto all = hosts(processes);
  if (processes == 0 || processes % all.size() != 0) {
    throw_failure(
      errc::failed_precondition,
      "{} processes cannot be on {} hosts, as many on each: list a host for each process",
      processes, all.size());
  }
  // A host may stand in the list several times, and each of its processes needs another port.
  std::map<std::string, uint64_t> processes_on;
  std::vector<std::string> addresses;
  for (uint64_t process = 0; process < processes; ++process) {
    const auto& host = all[process / (processes / all.size())];
    auto first = parse_host_port(host).value_or(host_port{host, options_.port_base});
    addresses.push_back(host_port_text(first.host, first.port + processes_on[host]++));
  }
  return addresses;
}

troupe::cluster_spec open_mpi_resolver::cluster_spec() const {
  return sliced(jobs(), addresses());
}

std::string open_mpi_resolver::misplacement() const {
  auto local = environment_("OMPI_COMM_WORLD_LOCAL_RANK");
  if (!local) return {};
  auto all = addresses();
  auto own = number("OMPI_COMM_WORLD_RANK");
  if (own >= all.size()) return {}; // the task of this process is refused
  auto is_beside
    = [host = host_of(all[own])](const auto& address) { return host_of(address) == host; };
  auto before = std::ranges::count_if(std::span{all}.first(own), is_beside);
  // Otherwise a machine is in the list by several names.
  auto is_whole = environment_("OMPI_COMM_WORLD_LOCAL_SIZE")
                  == std::to_string(std::ranges::count_if(all, is_beside));
  if (!is_whole || *local == std::to_string(before)) return {};
  return fmt::format("process {} is number {} on its machine, but number {} by the list of hosts: "
                     "list a host for each process in the order of ranks, or start them with "
                     "mpirun --map-by slot",
                     own, *local, before);
}

task_query open_mpi_resolver::found_task() const {
  return task_of_process(jobs(), number("OMPI_COMM_WORLD_RANK"));
}

declared_cluster declared_by_open_mpi(const cluster_options& options,
                                      const environment_reader& environment,
                                      std::vector<cluster_finding>& findings) {
  open_mpi_options mpi{.jobs = counted_by_flags(options)};
  mpi.port_base = options.port_base.value_or(mpi.port_base);
  open_mpi_resolver resolver{mpi, environment};
  auto declared = declared_by_launcher(open_mpi, resolver, findings);
  if (declared.spec.empty()) return declared;
  if (auto wrong = resolver.misplacement(); !wrong.empty())
    findings.push_back({cluster_finding::severity::problem, {errc::failed_precondition, wrong}});
  return declared;
}

} // namespace troupe
