// SPDX-License-Identifier: Apache-2.0
// Asks a table of sources, one after the other.
#include "strategies/cluster/resolve.hpp"

#include "strategies/cluster/cluster_check.hpp"
#include "strategies/cluster/cluster_file.hpp"
#include "strategies/cluster/resolvers/kubernetes_resolver.hpp"
#include "strategies/cluster/resolvers/open_mpi_resolver.hpp"
#include "strategies/cluster/resolvers/slurm_resolver.hpp"
#include "strategies/cluster/resolvers/tf_config_resolver.hpp"
#include "strategies/cluster/resolvers/torchrun_resolver.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>

namespace troupe {

namespace {

using findings_list = std::vector<cluster_finding>;

/// A source that may know the cluster.
struct cluster_source {
  std::string name;
  bool is_present = false;
  bool takes_task_flag = false;
  bool takes_counts = false; ///< --cluster may say how many of its tasks are what.
  std::function<declared_cluster(findings_list&)> declared;
};

bool is_set(const environment_reader& environment, const char* name) {
  return environment(name).value_or("").find_first_not_of(" \t\r\n") != std::string::npos;
}

std::vector<cluster_source> sources(const cluster_options& options,
                                    const environment_reader& environment) {
  // mpirun inside a Slurm job: Slurm has started one daemon on each node, and numbered those.
  auto counts = counted_by_flags(options).has_value();
  auto is_mpi = is_set(environment, "OMPI_COMM_WORLD_RANK");
  return {
    {"--cluster", !options.cluster.empty() && !counts, true, false,
     [&](findings_list& findings) { return declared_by_flags(options, findings); }},
    {"--cluster-file", !options.file.empty(), true, false,
     [&](findings_list& findings) { return declared_by_file(options.file, findings); }},
    {"--kubernetes", !options.kubernetes.empty(), true, true,
     [&](findings_list& findings) {
       return declared_by_kubernetes(options, environment, findings);
     }},
    {"TF_CONFIG", is_set(environment, "TF_CONFIG"), true, false,
     [&](findings_list& findings) { return declared_by_tf_config(environment, findings); }},
    {"torchrun", is_set(environment, "RANK") && is_set(environment, "WORLD_SIZE"), false, true,
     [&](findings_list& findings) { return declared_by_torchrun(options, environment, findings); }},
    {"Slurm", is_set(environment, "SLURM_PROCID") && !is_mpi, false, true,
     [&](findings_list& findings) { return declared_by_slurm(options, environment, findings); }},
    {"Open MPI", is_mpi, false, true,
     [&](findings_list& findings) { return declared_by_open_mpi(options, environment, findings); }},
  };
}

void add_problem(findings_list& findings, std::string sentence) {
  findings.push_back(
    {cluster_finding::severity::problem, {errc::invalid_argument, std::move(sentence)}});
}

void add_note(findings_list& findings, std::string sentence) {
  findings.push_back({cluster_finding::severity::note, {errc::none, std::move(sentence)}});
}

// The own task in the list; an evaluator that no other task knows is added to it.
std::optional<size_t> position_of_own(const declared_cluster& cluster,
                                      std::vector<cluster_task>& tasks) {
  if (!cluster.task_type || !cluster.task_id || *cluster.task_id < 0) return std::nullopt;
  auto index = static_cast<uint64_t>(*cluster.task_id);
  auto found = std::ranges::find_if(tasks, [&](const cluster_task& task) {
    return task.type == *cluster.task_type && task.index == index;
  });
  if (found != tasks.end()) return static_cast<size_t>(found - tasks.begin());
  if (*cluster.task_type != "evaluator" || cluster.spec.has_job("evaluator")) return std::nullopt;
  tasks.push_back({"evaluator", index, ""});
  return tasks.size() - 1;
}

resolved_cluster resolved(const declared_cluster& declared, findings_list findings) {
  auto checked = check_cluster(declared);
  std::ranges::move(checked.findings, std::back_inserter(findings));
  resolved_cluster cluster{.source = declared.source, .findings = std::move(findings)};
  auto has_problem = cluster.has_problem();
  const auto& shown = has_problem ? declared : checked.mended;
  cluster.tasks = listed_tasks(shown.spec);
  cluster.own = position_of_own(shown, cluster.tasks);
  if (has_problem)
    cluster.mended = example_text(checked.mended);
  else if (checked.clearer)
    cluster.mended = example_text(*checked.clearer);
  return cluster;
}

} // namespace

resolved_cluster resolve(const cluster_options& options, const environment_reader& environment) {
  std::optional<resolved_cluster> found;
  std::vector<std::string> ignored;
  for (const auto& source : sources(options, environment)) {
    if (!source.is_present) continue;
    if (found) {
      ignored.push_back(source.name);
      continue;
    }
    findings_list findings;
    auto declared = source.declared(findings);
    if (declared.spec.empty() && findings.empty()) {
      ignored.push_back(fmt::format("{} (it names no cluster)", source.name));
      continue;
    }
    if (!source.takes_counts && counted_by_flags(options))
      add_note(findings, fmt::format("--cluster {} is ignored: {} lists the tasks", options.cluster,
                                     source.name));
    if (source.takes_task_flag)
      apply_task_flag(options, declared, findings);
    else if (!options.task.empty())
      add_note(findings, fmt::format("--task {} is ignored: {} says itself which task this is",
                                     options.task, source.name));
    found = resolved(declared, std::move(findings));
  }
  if (!found) {
    found = resolved_cluster::alone();
    if (!options.cluster.empty()) {
      found->source = "--cluster";
      add_problem(found->findings,
                  fmt::format("'{}' counts tasks, but no launcher has started any: start this by "
                              "torchrun, srun or mpirun, or list addresses, as in worker=a:1,b:1",
                              options.cluster));
    }
    if (!options.task.empty()) {
      found->source = "--task";
      add_problem(found->findings, fmt::format("'{}' needs a cluster to be in: give --cluster, "
                                               "--cluster-file or TF_CONFIG",
                                               options.task));
    }
  }
  found->ignored = std::move(ignored);
  return std::move(*found);
}

} // namespace troupe
