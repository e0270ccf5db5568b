// SPDX-License-Identifier: Apache-2.0
// The options that every job has: their defaults, as one plain struct, and as options.
#pragma once

#include "actors/policies/sync_options.hpp"
#include "strategies/reduce/cross_device_ops.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

class command_options;

/// The defaults that are a choice rather than a matter of course.
namespace job_defaults {
inline constexpr sync_policy policy = sync_policy::tensorflow;
inline constexpr uint64_t replicas = 4;
inline constexpr uint64_t aggregate = 3;
inline constexpr uint64_t steps = 1000;
inline constexpr uint64_t checkpoint_every = 5000;
inline constexpr uint64_t keep_checkpoints = 3;
inline constexpr uint64_t timeline_bytes = uint64_t{16} << 20; ///< More makes viewers slow.
inline constexpr uint64_t ledger_bytes = uint64_t{4} << 30;    ///< More is not replayed.
} // namespace job_defaults

/// The library's name of the strategy that trains.
enum class strategy_kind : uint8_t { parameter_server, mirrored, multi_worker_mirrored };

[[nodiscard]] constexpr std::string_view to_string(strategy_kind strategy) {
  constexpr std::string_view names[] = {"parameter_server", "mirrored", "multi_worker_mirrored"};
  return names[static_cast<size_t>(strategy)];
}

/// Whether all replicas make every step together, so that none is early or late.
[[nodiscard]] constexpr bool replicas_meet(strategy_kind strategy) {
  return strategy != strategy_kind::parameter_server;
}

/// Whether a step needs as many gradients as every other, or as many as seem best.
enum class backup_kind : uint8_t { fixed, dynamic };

/// Which of the worlds the job runs in: real threads and a real clock, or one thread and virtual
/// time.
enum class world_kind : uint8_t { threads, virtual_time };

/// Whether replicas compute their gradients, or only wait for as long, and take zeros: a job in
/// virtual time may be about its schedule alone.
enum class arithmetic_kind : uint8_t { done, skipped };

/// The reaction of a job to the loss of a replica.
enum class loss_reaction : uint8_t { go_on, stop };

/// A replica that is made to take `factor` times as long for each gradient as it would by itself.
struct slow_replica {
  uint64_t replica = 0;
  double factor = 1;

  bool operator==(const slow_replica&) const = default;
};

/// The environment variable of a job and of `troupe top` with the token for --metrics-port.
inline constexpr const char* metrics_token_variable = "TROUPE_METRICS_TOKEN";

/// How a job runs. Once the command line is read, every field has its final value.
struct job_options {
  strategy_kind strategy = strategy_kind::parameter_server;
  uint64_t replicas = job_defaults::replicas;
  /// Gradients that an update waits for; where replicas meet, all of them.
  uint64_t aggregate = job_defaults::aggregate;
  sync_policy policy = job_defaults::policy;
  backup_kind backups = backup_kind::fixed;
  std::optional<double> curvature;        ///< `dynamic` only, as in `dynamic_backups`.
  std::optional<uint64_t> initial_tokens; ///< `tensorflow` only; nothing: as many as `aggregate`.
  std::optional<uint64_t> slack;          ///< `ssp` only; nothing: 0.
  std::vector<slow_replica> slow;
  std::string device = "cpu";  ///< As `read_devices` takes it: devices of the replicas, in turn.
  std::string variable_device; ///< Where variables lie; empty: as `find_devices` has it.
  /// The way to add up gradients of several processes; `multi_worker_mirrored` only.
  communication_implementation communication = communication_implementation::automatic;
  uint64_t check_replicas = 0; ///< As `training_options::check_replicas_every`.

  std::optional<uint64_t> steps; ///< Updates to make.
  uint64_t seed = 1;
  uint64_t evaluate_every = 500; ///< Steps between evaluations; 0: only at the end.

  uint64_t checkpoint_every = job_defaults::checkpoint_every; ///< Steps; 0: no checkpoints.
  uint64_t keep_checkpoints = job_defaults::keep_checkpoints; ///< The newest so many stay.
  std::string resume; ///< The folder of the run to go on with; empty: a new one.

  std::string run_dir; ///< Empty: a new folder under runs/, named after the time.
  world_kind world = world_kind::threads;
  /// How long a gradient takes in virtual time, as `distribution::parse` reads it; empty: 0.1 s.
  std::string compute;
  arithmetic_kind arithmetic = arithmetic_kind::done;
  double deadline_seconds = 60; ///< How long a step may take before the job counts as stalled.
  loss_reaction on_loss = loss_reaction::go_on;
  /// The fewest replicas that the job begins and goes on with; 0: it begins with all.
  uint64_t min_replicas = 0;
  double rejoin_timeout_seconds = 0; ///< How long a lost worker is waited for.
  uint64_t replicate_owners = 1;     ///< Parameter servers that hold each variable.
  uint64_t timeline_bytes = job_defaults::timeline_bytes; ///< Largest size of timeline.json.
  uint64_t ledger_bytes = job_defaults::ledger_bytes;     ///< Largest size of ledger.csv.
  /// The port on which the running job shows itself; 0: any free one; nothing: none.
  std::optional<uint64_t> metrics_port;
  std::string metrics_address = "127.0.0.1";
  double observe_period_seconds = 1; ///< How often the chief asks other processes; 0: never.

  bool operator==(const job_options&) const = default;
};

/// Adds the options of a job, in the groups of the functions below.
/// @param options Gets the values, here and below; must outlive `all`.
void add_options(command_options& all, job_options& options);

/// Adds the group "Replicas": the strategy, its replicas, and the policy for late ones.
void add_replica_options(command_options& all, job_options& options);

/// Adds --seed and --evaluate-every to the present group.
void add_seed_options(command_options& all, job_options& options);

/// Adds the groups "Checkpoints" and "Run".
void add_run_options(command_options& all, job_options& options);

/// The options that have no meaning under a strategy. Where replicas meet, there are no backups, no
/// late gradients, and no replica can be done without. Where replicas of several processes do not
/// meet, their processes do not communicate.
[[nodiscard]] std::span<const std::string_view> without_meaning(strategy_kind strategy);

/// The options that a file of all options shows in comments, so that it can be given with --config:
/// the run to go on with, which has a file of its own; and the run's folder, unless `with_run_dir`,
/// because a file that names a used folder could start no second run.
[[nodiscard]] std::vector<std::string_view> config_comments(bool with_run_dir);

/// How gradients are aggregated.
[[nodiscard]] sync_options sync_of(const job_options& options);

} // namespace troupe
