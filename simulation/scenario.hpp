// SPDX-License-Identifier: Apache-2.0
// A training job in virtual time, without arithmetic unless it is asked for: what would N of n
// cost?
#pragma once

#include "actors/interfaces/job_report.hpp"
#include "actors/policies/sync_options.hpp"
#include "actors/recording/records.hpp"
#include "messages/collective_message.hpp"
#include "simulation/distributions/computing_time.hpp"
#include "simulation/faults/fault.hpp"
#include "simulation/faults/fault_log.hpp"
#include "simulation/learning.hpp"
#include "simulation/network/network_options.hpp"
#include "simulation/simulated_processes.hpp"
#include "simulation/update_delay.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Local SGD: replicas train copies of their own for some steps, then all take their average.
/// Source: Wang and Joshi, "Adaptive communication strategies to achieve the best error-runtime
/// trade-off in local-update SGD", MLSys 2019.
struct local_sgd_options {
  uint32_t local_steps = 1;   ///< Gradients that a replica computes for one update; at least 1.
  job_time averaging_time{0}; ///< Time of every average; it comes before the next local step.
};

/// The engine that carries a job through virtual time.
enum class simulation_engine : uint8_t {
  actors, ///< The actors of a real job send its messages: simulates everything.
  direct, ///< These actors' decisions without messages: the same ledger in less time.
};

/// A job to simulate.
struct scenario {
  sync_options sync;
  uint64_t steps = 100;
  computing_time compute = constant_time(std::chrono::seconds{1});
  update_time update = {};             ///< Empty: updates take no time.
  std::vector<uint32_t> dead_replicas; ///< They never start. Below the number of replicas.
  uint64_t seed = 0;                   ///< Draws the order of events at equal times.
  local_sgd_options local_sgd = {};
  /// The network between nodes; nothing: messages take no time, and replicas read no variables.
  std::optional<network_options> network = {};
  /// How the gradients of all replicas become one, in a job without parameter servers; nothing: in
  /// a job with them. Goes with a latency, a speed and a size of gradients in `network`.
  std::optional<collective_algorithm> collective = {};
  /// In a job of collectives: so many replicas stand in one process, which adds their gradients up
  /// in its memory before it takes part for all of them. Divides the number of replicas.
  uint32_t replicas_per_host = 1;
  std::optional<learning_options> learning = {}; ///< Nothing: gradients hold nothing.
  /// If the network has a roll call: by node, how long after the job's its process is started.
  std::map<node_index, job_time> late_starts = {};
  /// As in `training_options`: of processes that meet at a roll call.
  uint32_t min_replicas = 0;
  fault_plan faults = {}; ///< Needs a network; makes one that takes no time if there is none.
  /// As in `parameter_server_options`; 2 needs a network with as many owners, or more.
  uint32_t replicate_owners = 1;
  /// As in `training_options`; with a plan that loses messages 0 means: let it happen.
  job_time ask_again_after{0};
  uint64_t snapshot_every = 100;       ///< Steps, if the plan restarts the job.
  job_time deadline = job_time::max(); ///< A step that takes longer ends the job.
  /// Nothing: the direct one, unless `reason_for_actors` has a reason.
  std::optional<simulation_engine> engine = {};
  bool hashes = true; ///< Whether the report's `log_hash` is asked for, which takes some time.
  std::function<void(const step_record&)> on_step = {}; ///< Told of every step, in order.
  /// Told of every message that reaches another node, before its receiver is.
  std::function<void(const delivery&)> on_delivery = {};
  std::function<void(const fault_event&)> on_fault = {}; ///< Told of every fault, at its time.
};

/// Why a run could not make its next step.
struct stall_report : open_step {
  std::string reason; ///< In words.
};

/// The results of a scenario.
struct scenario_report {
  std::vector<job_time> step_times; ///< One for each step that was made.
  uint64_t accepted = 0;            ///< Gradients, over all steps.
  uint64_t stale = 0;
  uint64_t cancelled = 0;
  std::map<uint64_t, uint64_t> staleness_counts; ///< Accepted and stale gradients, by staleness.
  std::map<uint64_t, uint64_t> needed;           ///< Steps, by how many gradients they waited for.
  job_time wasted{0};                            ///< Computed for gradients that did not count.
  job_time virtual_time{0}; ///< From the beginning to the end of the last step.
  /// Virtual time of all replicas together while they were live, as the ends of steps count them.
  std::chrono::duration<double> live_time{0};
  /// As `world::event_count`; of the direct engine: computations that ended.
  uint64_t events = 0;
  uint64_t log_hash = 0;        ///< Hash of the whole ledger, if the scenario `hashes`.
  uint64_t lost = 0;            ///< Gradients that never arrived.
  uint64_t restarts = 0;        ///< Restarts of the job from its last snapshot.
  uint64_t undone_steps = 0;    ///< Steps that a restart went back behind; `step_times` has them.
  uint64_t undone_accepted = 0; ///< Their gradients; `accepted` has them.
  job_time down{0};             ///< From the ends of the job to its restarts.
  /// How often what has happened between nodes: "delivered Token", "fault crash", and so on; and to
  /// wrong gradients: "refused gradient".
  std::map<std::string, uint64_t> probes;
  std::vector<process_life> processes; ///< If there is a roll call: every life of every process.
  std::vector<loss_point> losses;      ///< If something is learnt: from before the first step on.
  std::optional<stall_report> stalled; ///< If the job ended early.
  job_report job;                      ///< `failure` says why it ended early, if it did.

  /// Mean of `step_times` from the step with this index on, in seconds; NaN if there is none.
  [[nodiscard]] double mean_step_seconds(size_t first = 0) const;

  /// Dropped over all gradients that came in; 0 if none did.
  [[nodiscard]] double drop_fraction() const;
};

/// The replicas that start; ascending.
[[nodiscard]] std::vector<uint32_t> live_replicas(const scenario& scenario);

/// The part of a scenario that only the actors simulate: "a network"; empty if the direct engine
/// can do without them.
[[nodiscard]] std::string_view reason_for_actors(const scenario& scenario);

/// Runs the scenario, with the actors of a real job or by what they decide; computing takes as long
/// as the scenario says. A job that is restarted makes the steps after its snapshot again, and they
/// count again; `undone_steps` and `undone_accepted` say how many of both are no progress.
/// Errors: throws `failure` with invalid_argument, as `sync_options::validate`, `owners_plan`,
/// `fault_plan::validate` and `check_owner_copies`; if the direct engine is asked for and cannot;
/// for what a job of collectives has not; for a dead replica that does not exist.
[[nodiscard]] scenario_report simulate(const scenario& scenario);

} // namespace troupe
