// SPDX-License-Identifier: Apache-2.0
// Which actor stands where.
#include "actors/net/cluster_layout.hpp"

#include <fmt/format.h>
#include <limits>

namespace troupe {

expected<void> cluster_layout::validate() const {
  constexpr uint64_t most = std::numeric_limits<uint32_t>::max();
  auto trainers = uint64_t{workers} + (has_chief ? 1 : 0);
  auto replicas = trainers * replicas_per_worker;
  if (replicas == 0)
    return fail(errc::invalid_argument,
                fmt::format("a cluster of {} workers with {} replicas each trains nothing",
                            trainers, replicas_per_worker));
  if (replicas > most || ps + trainers > most)
    return fail(errc::invalid_argument,
                fmt::format("a cluster has at most {} replicas and processes", most));
  return {};
}

expected<node_index> cluster_layout::replica_node(uint32_t replica) const {
  if (replica >= replica_count())
    return fail(errc::invalid_argument,
                fmt::format("there is no place for replica {}: the cluster has {} workers with {} "
                            "replicas each; ask for {} replicas",
                            replica, trainer_count(), replicas_per_worker, replica_count()));
  return trainer_node(replica / replicas_per_worker);
}

expected<node_index> cluster_layout::communicator_node(uint32_t rank) const {
  if (rank >= trainer_count())
    return fail(errc::invalid_argument,
                fmt::format("there is no place for communicator {}: the cluster has {} workers",
                            rank, trainer_count()));
  return trainer_node(rank);
}

expected<node_index> cluster_layout::worker_node(uint32_t worker) const {
  if (worker >= worker_count())
    return fail(errc::invalid_argument,
                fmt::format("there is no place for closure worker {}: the cluster has {} workers "
                            "with {} each",
                            worker, workers, replicas_per_worker));
  return first_worker() + worker / replicas_per_worker;
}

bool cluster_layout::talk(node_index one, node_index other) const {
  auto chief = chief_node();
  if (one == other || one == chief || other == chief) return true;
  if (is_ps(one) != is_ps(other)) return true;
  return is_ps(one) ? owners_meet : workers_meet;
}

std::string cluster_layout::name_of(node_index node) const {
  if (has_chief && node == 0) return "chief:0";
  if (is_ps(node)) return fmt::format("ps:{}", node - first_ps());
  return fmt::format("worker:{}", node - first_worker());
}

} // namespace troupe
