// SPDX-License-Identifier: Apache-2.0
// Checks the options of a job against its cluster.
#include "tools/job/job_cluster.hpp"

#include "strategies/cluster/resolve.hpp"
#include "tools/options/job_checks.hpp"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

ptrdiff_t ps_count(const resolved_cluster& cluster) {
  return std::ranges::count(cluster.tasks, "ps", &cluster_task::type);
}

// No parameter server holds two copies of a variable.
expected<void> check_owner_copies(const job_command& command, const job_options& options,
                                  const resolved_cluster& cluster) {
  const auto copies = options.replicate_owners;
  if (copies == 1 || std::cmp_less_equal(copies, ps_count(cluster))) return {};
  auto available = cluster.is_alone()
                     ? std::string{"this process is alone"}
                     : fmt::format("{} names {}", cluster.source, ps_count(cluster));
  return fail(errc::invalid_argument,
              fmt::format("{0} {1} takes {1} parameter servers or more, but {2}; start them, as "
                          "with troupe launch --ps {1}, or leave it out",
                          spelling(command.origins, "replicate-owners"), copies, available));
}

// Why a strategy does not suit a cluster; empty: it does.
std::string misfit(const job_options& options, const resolved_cluster& cluster) {
  if (options.strategy == strategy_kind::mirrored)
    return fmt::format("--strategy mirrored is for one process, but {} names a cluster of {} "
                       "tasks; take multi_worker_mirrored",
                       cluster.source, cluster.tasks.size());
  auto ps = ps_count(cluster);
  if (ps > 0 && replicas_meet(options.strategy))
    return fmt::format("--strategy {} has no use for parameter servers, but {} names {}; leave "
                       "them out, or take parameter_server",
                       to_string(options.strategy), cluster.source, ps);
  return {};
}

// Tasks that run replicas, as a chief does, too.
uint64_t workers_of(const resolved_cluster& cluster) {
  auto workers = std::ranges::count_if(cluster.tasks, [](const cluster_task& task) {
    return task.type == "chief" || task.type == "worker";
  });
  return static_cast<uint64_t>(std::max<ptrdiff_t>(1, workers));
}

} // namespace

void fit_to_cluster(const job_command& command, job_options& options) {
  auto cluster = resolve(command.cluster, process_environment());
  if (!cluster.has_problem() && cluster.training_task_count() > 1)
    fit(options, command.origins, workers_of(cluster));
}

expected<resolved_cluster> find_cluster(const job_command& command, const job_options& options) {
  auto cluster = resolve(command.cluster, process_environment());
  if (cluster.has_problem()) return fail(errc::invalid_argument, cluster.problem_line());
  if (auto possible = check_owner_copies(command, options, cluster); !possible)
    return tl::unexpected<error>(possible.error());
  if (cluster.training_task_count() == 1) return cluster;
  if (options.world == world_kind::virtual_time)
    return fail(errc::invalid_argument,
                fmt::format("--world virtual is for one process, but {} names a cluster of {} "
                            "tasks; troupe sim has clusters in virtual time",
                            cluster.source, cluster.tasks.size()));
  if (auto reason = misfit(options, cluster); !reason.empty())
    return fail(errc::invalid_argument, reason);
  auto workers = workers_of(cluster);
  if (options.replicas % workers != 0)
    return fail(errc::invalid_argument,
                fmt::format("--replicas {} cannot be shared evenly by {} workers (a chief is one), "
                            "which {} names; give a multiple of {}",
                            options.replicas, workers, cluster.source, workers));
  return cluster;
}

std::string chief_text(const resolved_cluster& cluster) {
  const auto& chief = cluster.tasks[cluster.chief()];
  if (chief.address.empty()) return to_string(chief);
  return fmt::format("{} ({})", to_string(chief), chief.address);
}

} // namespace troupe
