// SPDX-License-Identifier: Apache-2.0
// Everything that `troupe train` can be told, with the defaults, as one plain struct and as
// options.
#pragma once

#include "actors/policies/sync_options.hpp"
#include "kernels/updates/update_rules.hpp"
#include "strategies/reduce/cross_device_ops.hpp"
#include "tools/images/image_model.hpp"
#include "tools/language/language_model.hpp"
#include "tools/options/option_origin.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

class command_options;

/// The defaults that are a choice rather than a matter of course; with them a run takes one to
/// three minutes on two cores.
namespace train_defaults {
inline constexpr std::string_view text = "/usr/share/common-licenses/GPL-3";
inline constexpr sync_policy policy = sync_policy::tensorflow;
inline constexpr uint64_t replicas = 4;
inline constexpr uint64_t aggregate = 3;
inline constexpr uint64_t steps = 25000;
inline constexpr uint64_t image_steps = 1000; ///< With images.
inline constexpr uint64_t batch = 64;
inline constexpr std::string_view optimizer = rules::adam::name;
inline constexpr uint64_t checkpoint_every = 5000;
inline constexpr uint64_t keep_checkpoints = 3;
inline constexpr uint64_t timeline_bytes = uint64_t{16} << 20; ///< More makes viewers slow.

/// Learning rates that suit most runs, for each optimizer, in the order of `update_rule`: the best
/// of a few that were tried on 2500 steps.
inline constexpr std::pair<std::string_view, double> learning_rates[] = {
  {rules::sgd::name, 1},
  {rules::momentum::name, 0.1},
  {rules::adagrad::name, 1},
  {rules::rmsprop::name, 0.01},
  {rules::centered_rmsprop::name, 0.01},
  {rules::adadelta::name, 10},
  {rules::adam::name, 0.01},
  {rules::adamw::name, 0.01},
  {rules::adamax::name, 0.03},
  {rules::nadam::name, 0.01},
  {rules::ftrl::name, 1},
  {rules::lars::name, 3},
  {rules::lamb::name, 0.01},
};
} // namespace train_defaults

/// What is learnt: a language, or images.
enum class learned_kind : uint8_t { language, images };

[[nodiscard]] constexpr std::string_view to_string(learned_kind learned) {
  return learned == learned_kind::language ? "language" : "images";
}

/// How the learning rate changes over a run: not at all, in a straight line to 0 at the last step,
/// or so in half a wave.
enum class decay_kind : uint8_t { none, linear, cosine };

/// The strategy whose replicas train the model, as the library calls it.
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

/// What becomes of a job that has lost a replica.
enum class loss_reaction : uint8_t { go_on, stop };

/// A replica that is made to take `factor` times as long for each gradient as it would by itself.
struct slow_replica {
  uint64_t replica = 0;
  double factor = 1;

  bool operator==(const slow_replica&) const = default;
};

/// A setting of the optimizer other than its learning rate, by name.
struct optimizer_setting {
  std::string name;
  double value = 0;

  bool operator==(const optimizer_setting&) const = default;
};

/// What `troupe train` does. After `parse_train_options` every field has its final value.
struct train_options {
  learned_kind learn = learned_kind::language;
  std::string data; ///< Folder of the images.
  std::string text{train_defaults::text};
  double held_out = 0.1; ///< Share of the text, at its end, that is kept for evaluation.

  strategy_kind strategy = strategy_kind::parameter_server;
  uint64_t replicas = train_defaults::replicas;
  /// Gradients that an update waits for; where replicas meet, all of them.
  uint64_t aggregate = train_defaults::aggregate;
  sync_policy policy = train_defaults::policy;
  backup_kind backups = backup_kind::fixed;
  std::optional<double> curvature;        ///< `dynamic` only, as in `dynamic_backups`.
  std::optional<uint64_t> initial_tokens; ///< `tensorflow` only; nothing: as many as `aggregate`.
  std::optional<uint64_t> slack;          ///< `ssp` only; nothing: 0.
  std::vector<slow_replica> slow;
  std::string device = "cpu"; ///< As `read_devices` takes it: what replicas compute on, in turn.
  /// What adds up gradients of several processes; `multi_worker_mirrored` only.
  communication_implementation communication = communication_implementation::automatic;

  std::optional<uint64_t> steps;          ///< Exactly one of `steps` and `epochs` has a value.
  std::optional<uint64_t> epochs;         ///< As many guesses each as the training text has bytes.
  uint64_t batch = train_defaults::batch; ///< Examples per replica and gradient.
  std::string_view optimizer = train_defaults::optimizer; ///< One of `choice_names<update_rule>()`.
  std::vector<optimizer_setting> optimizer_settings;
  std::optional<double> learning_rate;
  decay_kind learning_rate_decay = decay_kind::linear;
  uint64_t warm_up = 0; ///< Steps in which the learning rate rises from 0.
  uint64_t seed = 1;
  uint64_t evaluate_every = 500; ///< Steps between evaluations; 0: only at the end.

  language_model_config model;
  image_model_config images;

  uint64_t checkpoint_every = train_defaults::checkpoint_every; ///< Steps; 0: no checkpoints.
  uint64_t keep_checkpoints = train_defaults::keep_checkpoints; ///< The newest so many stay.
  std::string resume; ///< The folder of the run to go on with; empty: a new one.

  std::string run_dir; ///< Empty: a new folder under runs/, named after the time.
  world_kind world = world_kind::threads;
  double deadline_seconds = 60; ///< How long a step may take before the job counts as stalled.
  loss_reaction on_loss = loss_reaction::go_on;
  double rejoin_patience_seconds = 0; ///< How long a lost worker is waited for.
  uint64_t replicate_owners = 1;      ///< Parameter servers that hold each variable.
  uint64_t timeline_bytes = train_defaults::timeline_bytes; ///< That timeline.json may have.
  std::optional<uint64_t>
    metrics_port; ///< Where the running job can be looked at; 0: any that is free.
  std::string metrics_address = "127.0.0.1";

  bool operator==(const train_options&) const = default;
};

/// The learning rate that suits most runs of the perceptron with this optimizer.
[[nodiscard]] constexpr double default_learning_rate(std::string_view optimizer) {
  for (const auto& [name, rate] : train_defaults::learning_rates)
    if (name == optimizer) return rate;
  return 0; // there is no such optimizer
}

/// The learning rate that suits most runs with these options: for a transformer and for images, a
/// tenth of the perceptron's.
[[nodiscard]] constexpr double default_learning_rate(const train_options& options) {
  const auto is_deep
    = options.learn == learned_kind::images || options.model.kind == model_kind::transformer;
  return default_learning_rate(options.optimizer) / (is_deep ? 10 : 1);
}

/// Describes all options, in groups that files may hold. @param options Gets the values that are
/// stored; must outlive `all`.
void add_options(command_options& all, train_options& options);

/// The options that say nothing under the strategy that was chosen: where replicas meet, there are
/// no backups, no late gradients, and no replica can be done without; where they do not meet over
/// processes, these do not communicate.
[[nodiscard]] std::span<const std::string_view> without_meaning(strategy_kind strategy);

/// The options that say nothing of the model that was chosen: those of the other one.
[[nodiscard]] std::span<const std::string_view> without_meaning(model_kind model);

/// The options that say nothing where this is learnt: those of what else can be.
[[nodiscard]] std::span<const std::string_view> without_meaning(learned_kind learned);

/// Gives an option the value that it has if it is not set.
void reset(std::string_view key, train_options& options);

/// All options that have a meaning for what is learnt, strategy and model as a TOML file that reads
/// back, with a note beside each where it came from. Options without a value are comments, and so
/// is the run's folder if `with_run_dir` is false: a file that names a used folder could start no
/// second run.
[[nodiscard]] std::string config_text(const train_options& options, const option_origins& origins,
                                      bool with_run_dir = true);

} // namespace troupe
