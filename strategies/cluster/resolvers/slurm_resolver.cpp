// SPDX-License-Identifier: Apache-2.0
// Makes tasks with ports and GPUs of Slurm's variables.
#include "strategies/cluster/resolvers/slurm_resolver.hpp"

#include "messages/errors/throw_failure.hpp"
#include "strategies/cluster/host_list.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <initializer_list>
#include <numeric>

namespace troupe {

namespace {

constexpr auto slurm = "Slurm";

// The step's variable, then the job's.
constexpr std::initializer_list<const char*> task_counts{"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS",
                                                         "SLURM_NPROCS"};
constexpr std::initializer_list<const char*> node_task_counts{"SLURM_STEP_TASKS_PER_NODE",
                                                              "SLURM_TASKS_PER_NODE"};

template <class T>
T or_refuse(const char* variable, expected<T> value) {
  if (!value) throw_failure(errc::failed_precondition, "{}: {}", variable, value.error().message);
  return std::move(*value);
}

} // namespace

/// Hosts with their tasks, in the order in which tasks are numbered.
struct slurm_resolver::layout {
  struct host {
    std::string name;
    uint64_t tasks = 0;
  };

  std::vector<host> hosts;

  [[nodiscard]] uint64_t most_tasks() const {
    uint64_t most = 1;
    for (const auto& host : hosts)
      most = std::max(most, host.tasks);
    return most;
  }

  [[nodiscard]] process_place place_of(uint64_t process) const {
    process_place place{.local = process};
    for (const auto& host : hosts) {
      if (place.local < host.tasks) return place;
      place.local -= host.tasks;
      ++place.host;
    }
    throw_failure(errc::failed_precondition, "SLURM_PROCID is {}, but only {} tasks were started",
                  process, process - place.local);
  }
};

slurm_resolver::slurm_resolver(slurm_options options, environment_reader environment)
  : cluster_resolver({.rpc_layer = options.rpc_layer}), options_(std::move(options)),
    environment_(std::move(environment)) {}

slurm_resolver::layout slurm_resolver::read() const {
  layout all;
  if (options_.tasks_of_host) {
    for (const auto& [host, tasks] : *options_.tasks_of_host)
      all.hosts.push_back({host, tasks});
    return all;
  }
  auto hosts = or_refuse(
    "SLURM_STEP_NODELIST",
    expand_hostlist(launcher_text(
      environment_, slurm, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"})));
  std::vector<uint64_t> counts(hosts.size(), options_.tasks_per_node.value_or(0));
  if (!options_.tasks_per_node) {
    counts = or_refuse(first_variable_set(environment_, slurm, node_task_counts),
                       expand_tasks_per_node(launcher_text(environment_, slurm, node_task_counts)));
  }
  if (counts.size() != hosts.size()) {
    throw_failure(errc::failed_precondition,
                  "SLURM_STEP_TASKS_PER_NODE tells of {} hosts, but SLURM_STEP_NODELIST of {}",
                  counts.size(), hosts.size());
  }
  for (size_t i = 0; i < hosts.size(); ++i)
    all.hosts.push_back({hosts[i], counts[i]});
  if (!options_.hosts_as_listed) std::ranges::sort(all.hosts, {}, &layout::host::name);
  return all;
}

job_counts slurm_resolver::jobs() const {
  if (options_.jobs) return *options_.jobs;
  return {{"worker", launcher_number(environment_, slurm, task_counts)}};
}

// Where no jobs are given, they are counted by one variable, and their places by another.
void slurm_resolver::check_count(uint64_t places) const {
  if (options_.jobs) return;
  auto tasks = launcher_number(environment_, slurm, task_counts);
  if (tasks == places) return;
  std::string source{"tasks_per_node"};
  if (options_.tasks_of_host)
    source = "tasks_of_host";
  else if (!options_.tasks_per_node)
    source = fmt::format("{}={}", first_variable_set(environment_, slurm, node_task_counts),
                         launcher_text(environment_, slurm, node_task_counts));
  throw_failure(errc::failed_precondition,
                "{} is {}, but there are {} tasks by {}: start them with srun, or give --cluster",
                first_variable_set(environment_, slurm, task_counts), tasks, places, source);
}

uint64_t slurm_resolver::gpus_per_task(const layout& hosts) const {
  auto per_node = options_.gpus_per_node.value_or(visible_gpus(environment_));
  auto per_task = options_.gpus_per_task.value_or(per_node / hosts.most_tasks());
  if (hosts.most_tasks() * per_task > per_node) {
    throw_failure(
      errc::failed_precondition,
      "Requested more GPUs per node than available: {} tasks with {} each on a node with {}",
      hosts.most_tasks(), per_task, per_node);
  }
  return per_task;
}

troupe::cluster_spec slurm_resolver::cluster_spec() const {
  auto all = read();
  static_cast<void>(gpus_per_task(all));
  std::vector<std::string> addresses;
  for (const auto& host : all.hosts)
    for (uint64_t i = 0; i < host.tasks; ++i)
      addresses.push_back(fmt::format("{}:{}", host.name, options_.port_base + i));
  check_count(addresses.size());
  return sliced(jobs(), addresses);
}

std::map<std::string, uint64_t> slurm_resolver::num_accelerators(const task_query&) const {
  auto count = gpus_per_task(read());
  if (count == 0) return {};
  return {{"GPU", count}};
}

task_query slurm_resolver::found_task() const {
  return task_of_process(jobs(), launcher_number(environment_, slurm, {"SLURM_PROCID"}));
}

process_place slurm_resolver::place() const {
  return read().place_of(launcher_number(environment_, slurm, {"SLURM_PROCID"}));
}

std::string slurm_resolver::host() const {
  return read().hosts[place().host].name;
}

std::string slurm_resolver::visible_devices() const {
  std::vector<uint64_t> devices(gpus_per_task(read()));
  std::iota(devices.begin(), devices.end(), place().local * devices.size());
  return fmt::format("{}", fmt::join(devices, ","));
}

uint64_t visible_gpus(const environment_reader& environment) {
  if (auto listed = environment("CUDA_VISIBLE_DEVICES")) {
    if (listed->empty()) return 0;
    return 1 + static_cast<uint64_t>(std::ranges::count(*listed, ','));
  }
  uint64_t count = 0;
  std::error_code ignored;
  while (std::filesystem::exists(fmt::format("/dev/nvidia{}", count), ignored))
    ++count;
  return count;
}

namespace {

// Slurm numbers the processes of a heterogeneous step by components, but sorts its nodes.
std::string mend_of_places(const environment_reader& environment) {
  if (!environment("SLURM_HET_SIZE")) return "start it with srun --distribution=block";
  return "name the nodes of the components in sorted order, as in srun -w n1 ... : -w n2 ..., or "
         "list all addresses with --cluster or --cluster-file";
}

// How the place of this process differs from the one where the others look for it; else empty.
std::string misplaced(const slurm_resolver& resolver, const environment_reader& environment) {
  auto node = environment("SLURM_NODEID");
  auto local = environment("SLURM_LOCALID");
  auto name = environment("SLURMD_NODENAME");
  auto process = environment("SLURM_PROCID").value_or("");
  auto place = resolver.place();
  auto is_there = !node || !local
                  || (std::to_string(place.host) == *node && std::to_string(place.local) == *local);
  if (!is_there)
    return fmt::format("process {} runs as task {} of node {}, but would as task {} of node {} if "
                       "one node after the other were filled: {}",
                       process, *local, *node, place.local, place.host,
                       mend_of_places(environment));
  if (auto host = resolver.host(); name && *name != host)
    return fmt::format("process {} runs on node {}, but by SLURM_STEP_NODELIST on {}: {}", process,
                       *name, host, mend_of_places(environment));
  return {};
}

} // namespace

declared_cluster declared_by_slurm(const cluster_options& options,
                                   const environment_reader& environment,
                                   std::vector<cluster_finding>& findings) {
  slurm_options settings{.jobs = counted_by_flags(options),
                         .gpus_per_task = 0,
                         .rpc_layer = std::nullopt,
                         .hosts_as_listed = true};
  settings.port_base = options.port_base.value_or(settings.port_base);
  slurm_resolver resolver{settings, environment};
  auto declared = declared_by_launcher(slurm, resolver, findings);
  // A batch script has the numbers of its job: a process started there is alone, and would wait.
  if (!environment("SLURM_STEP_NUM_TASKS") && declared.spec.task_count() > 1) {
    findings.push_back(
      {cluster_finding::severity::problem,
       {errc::failed_precondition,
        fmt::format("SLURM_STEP_NUM_TASKS is not set, so the job's {} tasks were not started: "
                    "start them with srun, or this one alone with env -u SLURM_PROCID",
                    declared.spec.task_count())}});
  }
  if (declared.spec.empty()) return declared;
  if (auto wrong = misplaced(resolver, environment); !wrong.empty())
    findings.push_back({cluster_finding::severity::problem, {errc::failed_precondition, wrong}});
  return declared;
}

} // namespace troupe
