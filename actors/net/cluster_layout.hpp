// SPDX-License-Identifier: Apache-2.0
// Which process of a cluster holds what of a job.
#pragma once

#include "actors/net/address.hpp"
#include "messages/errors/errc.hpp"

#include <cstdint>
#include <string>

namespace troupe {

/// Every process of a job is started with the same arguments, and must know without asking where
/// each actor stands. The list of nodes is the chief's, if one is called so, then those of
/// parameter servers, then those of workers. The chief trains like a worker, as in TensorFlow, and
/// before them; without a process that is called so, worker 0 is the chief's. Plain decisions, the
/// same everywhere.
///
/// | what                                  | where                                              |
/// |---------------------------------------|----------------------------------------------------|
/// | chief, token queue, recorders         | with the chief                                     |
/// | a variable's owner and accumulator    | the parameter server that holds least by then; with|
/// |                                       | none, the chief                                    |
/// | their mirrors                         | the parameter server after it                      |
/// | replica i                             | trainer i / `replicas_per_worker`                  |
/// | communicator i                        | trainer i                                          |
/// | a coordinator                         | with the chief                                     |
/// | closure worker i                      | process i / `replicas_per_worker` of those that are|
/// |                                       | called workers: one that is called chief has none  |
struct cluster_layout {
  bool has_chief = false;           ///< Whether a process is called so.
  uint32_t ps = 0;                  ///< Processes that hold variables.
  uint32_t workers = 1;             ///< Processes that are called so.
  uint32_t replicas_per_worker = 1; ///< They, and the chief, hold contiguous slices.
  bool workers_meet = false;        ///< Whether they, and the chief, talk to each other.
  bool owners_meet = false;         ///< Whether parameter servers talk to each other.

  bool operator==(const cluster_layout&) const = default;

  /// Errors: invalid_argument if there are no replicas, or more nodes or replicas than 2^32.
  [[nodiscard]] expected<void> validate() const;

  [[nodiscard]] uint32_t node_count() const { return first_worker() + workers; }

  /// Processes with replicas.
  [[nodiscard]] uint32_t trainer_count() const { return workers + (has_chief ? 1 : 0); }

  [[nodiscard]] uint32_t replica_count() const { return trainer_count() * replicas_per_worker; }

  /// The workers that run a coordinator's closures.
  [[nodiscard]] uint32_t worker_count() const { return workers * replicas_per_worker; }

  [[nodiscard]] node_index chief_node() const { return trainer_node(0); }

  [[nodiscard]] node_index ps_node(uint32_t ps_index) const { return first_ps() + ps_index; }

  [[nodiscard]] node_index trainer_node(uint32_t trainer) const {
    return has_chief && trainer == 0 ? 0 : ps + trainer;
  }

  /// Where the mirrors stand of what stands at a parameter server. @pre There is one.
  [[nodiscard]] node_index mirror_node(node_index ps_node) const {
    return first_ps() + (ps_node - first_ps() + 1) % ps;
  }

  /// Errors: invalid_argument, for a replica that the cluster does not have.
  [[nodiscard]] expected<node_index> replica_node(uint32_t replica) const;

  /// Where the communicator of a rank stands.
  /// Errors: invalid_argument, for a rank beyond the trainers.
  [[nodiscard]] expected<node_index> communicator_node(uint32_t rank) const;

  /// Errors: invalid_argument, for a closure worker that the cluster does not have.
  [[nodiscard]] expected<node_index> worker_node(uint32_t worker) const;

  /// Whether actors of the one node ever look for actors of the other.
  [[nodiscard]] bool talk(node_index one, node_index other) const;

  /// "chief", "ps:1", "worker:2". @pre `node` is one of `node_count()`.
  [[nodiscard]] std::string name_of(node_index node) const;

private:
  [[nodiscard]] node_index first_ps() const { return has_chief ? 1 : 0; }

  [[nodiscard]] node_index first_worker() const { return first_ps() + ps; }

  [[nodiscard]] bool is_ps(node_index node) const {
    return node >= first_ps() && node < first_worker();
  }
};

} // namespace troupe
