// SPDX-License-Identifier: Apache-2.0
// Everything that `troupe train` can be told, with the defaults, as one plain struct.
#pragma once

#include "actors/sync_policy.hpp"
#include "tools/language_model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The defaults that are a choice rather than a matter of course; with them a run takes one to
/// three minutes on two cores.
namespace train_defaults {
inline constexpr std::string_view text = "/usr/share/common-licenses/GPL-3";
inline constexpr sync_policy policy = sync_policy::tensorflow;
inline constexpr uint64_t replicas = 4;
inline constexpr uint64_t aggregate = 3;
inline constexpr uint64_t steps = 25000;
inline constexpr uint64_t batch = 64;
inline constexpr double learning_rate_sgd = 1;
inline constexpr double learning_rate_momentum = 0.1;
inline constexpr double learning_rate_adam = 0.01;
} // namespace train_defaults

/// Which rule turns a gradient into an update.
enum class optimizer_kind : uint8_t { sgd, momentum, adam };

/// How the learning rate changes over a run: not at all, or in a straight line to 0 at the last
/// step.
enum class decay_kind : uint8_t { none, linear };

/// Which of the worlds the job runs in: real threads and a real clock, or one thread and virtual
/// time.
enum class world_kind : uint8_t { threads, virtual_time };

/// A replica that is made to take `factor` times as long for each gradient as it would by itself.
struct slow_replica {
  uint64_t replica = 0;
  double factor = 1;

  bool operator==(const slow_replica&) const = default;
};

/// What `troupe train` does. After `parse_train_options` every field has its final value.
struct train_options {
  std::string text{train_defaults::text};
  double held_out = 0.1; ///< Share of the text, at its end, that is kept for evaluation.

  uint64_t replicas = train_defaults::replicas;
  uint64_t aggregate = train_defaults::aggregate; ///< Gradients that an update waits for.
  sync_policy policy = train_defaults::policy;
  std::optional<uint64_t> initial_tokens; ///< `tensorflow` only; nothing: as many as `aggregate`.
  std::vector<slow_replica> slow;

  std::optional<uint64_t> steps;          ///< Exactly one of `steps` and `epochs` has a value.
  std::optional<uint64_t> epochs;         ///< As many examples each as the training text has bytes.
  uint64_t batch = train_defaults::batch; ///< Examples per replica and gradient.
  optimizer_kind optimizer = optimizer_kind::adam;
  std::optional<double> learning_rate;
  decay_kind learning_rate_decay = decay_kind::linear;
  uint64_t seed = 1;
  uint64_t evaluate_every = 500; ///< Steps between evaluations; 0: only at the end.

  language_model_config model;

  std::string run_dir; ///< Empty: a new folder under runs/, named after the time.
  world_kind world = world_kind::threads;
  double deadline_seconds = 60; ///< How long a step may take before the job counts as stalled.

  bool operator==(const train_options&) const = default;
};

/// The learning rate that suits most runs with this optimizer.
[[nodiscard]] constexpr double default_learning_rate(optimizer_kind optimizer) {
  switch (optimizer) {
  case optimizer_kind::sgd:
    return train_defaults::learning_rate_sgd;
  case optimizer_kind::momentum:
    return train_defaults::learning_rate_momentum;
  case optimizer_kind::adam:
    break;
  }
  return train_defaults::learning_rate_adam;
}

} // namespace troupe
