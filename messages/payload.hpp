// SPDX-License-Identifier: Apache-2.0
// The contents of messages, as plain values that need no Cap'n Proto.
#pragma once

#include "kernels/tensor/tensor.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// A gradient, or none: the loss does not depend on the variable.
using optional_gradient = std::optional<gradient>;

/// Where a gradient comes from and what it took; the fields are those of `wire::Origin`.
struct origin {
  uint32_t replica = 0;
  uint32_t examples = 0;   ///< In the replica's batch; 0 = not reported.
  uint64_t local_step = 0; ///< The step that the gradient was computed for.
  uint64_t iteration = 0;  ///< Gradients that the replica had computed before.
  std::chrono::nanoseconds compute{0};
  std::chrono::nanoseconds waited{0}; ///< For the token that began the computation.
  double loss = std::numeric_limits<double>::quiet_NaN(); ///< NaN = not reported.
};

/// Something that is chosen by name, and the numbers it is set to; a name may occur several times,
/// for a list. The fields are those of `wire::Choice`.
struct named_settings {
  std::string name; ///< Empty: nothing is chosen.
  std::vector<std::pair<std::string, double>> settings;

  bool operator==(const named_settings&) const = default;
};

/// How an owner applies gradients; the fields are those of `wire::UseOptimizer`.
struct optimizer_settings {
  std::string name; ///< Name of the optimizer.
  std::vector<std::pair<std::string, double>> settings;
  named_settings schedule;
  named_settings average;

  bool operator==(const optimizer_settings&) const = default;
};

/// One gradient as an accumulator saw it; the fields are those of `wire::Arrival`.
struct arrival {
  origin from;
  std::chrono::nanoseconds arrived{0}; ///< Since the job began.
  uint64_t accumulator_step = 0;
};

/// How an accumulator judged a gradient; the values are those of `wire::Verdict`.
enum class verdict : uint8_t {
  accepted = 0, ///< Part of the step that the accumulator collects for.
  stale = 1,    ///< For a past step, and dropped.
};

/// An update that an owner has made, or measured; the fields are those of `wire::UpdateApplied`.
struct applied_update {
  uint64_t version = 0;                ///< Updates that the variable includes.
  uint64_t step = 0;                   ///< The accumulator's.
  std::chrono::nanoseconds applied{0}; ///< When it was done, since the job began.
  std::chrono::nanoseconds took{0};    ///< Duration of the pass.
  /// Sum of the squares of the mean gradient, if the update is held or measured.
  double squared_norm = std::numeric_limits<double>::quiet_NaN();
  /// The mean of the same sums of the single gradients, if they are measured.
  double mean_squared_norm = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> squared_norms{}; ///< One for each variable updated together.
};

/// Which of all gradients one is; the fields are those of `wire::GradientId`.
struct gradient_id {
  uint32_t replica = 0;
  uint64_t iteration = 0;

  friend bool operator==(const gradient_id&, const gradient_id&) = default;
};

/// The last step that an owner was given an update for; the fields are those of `wire::ClosedStep`.
struct closed_step {
  uint64_t step = 0;
  std::vector<arrival> accepted;
  std::vector<arrival> stale;
  applied_update applied;                 ///< Measured only, if the update was held.
  std::optional<applied_update> released; ///< If it was held and is not any more.
  std::vector<gradient_id> latest;        ///< Each replica's last one, by replica.
};

/// Which of all requests one is; the fields are those of `wire::RequestId`.
struct request_id {
  uint64_t client = 0;
  uint64_t number = 0;
  uint64_t oldest = 0; ///< That the client has no answer to.

  friend bool operator==(const request_id&, const request_id&) = default;
};

/// The value of a variable at one moment; the fields are those of `wire::VariableSnapshot`.
struct snapshot_payload {
  uint64_t version = 0;
  tensor value;
};

/// A change that may be asked for again; the fields are those of `wire::MadeChange`.
struct made_change {
  request_id id;
  std::optional<snapshot_payload> snapshot;
  std::optional<applied_update> applied;
};

/// An array by name; the fields are those of `wire::NamedTensor`.
struct named_payload {
  std::string name;
  tensor value;
};

/// All that an owner holds; the fields are those of `wire::VariableState`.
struct variable_payload {
  uint64_t version = 0;
  tensor value;
  std::string optimizer; ///< The optimizer of these slots; empty: there are none.
  uint64_t slots_since = 0;
  std::vector<named_payload> slots;
  std::optional<named_payload> average;
};

/// Where a replica is; the fields are those of `wire::ReplicaProgress`.
struct replica_progress {
  uint32_t replica = 0;
  bool computing = false; ///< Else it waits for a token, or is about to ask for one.
  uint64_t local_step = 0;
  uint64_t iteration = 0;                ///< Steps finished, dropped ones included.
  uint64_t computations = 0;             ///< Begun so far.
  std::chrono::nanoseconds remaining{0}; ///< Rest of a drawn computing time.
  std::chrono::nanoseconds compute{0};   ///< All of that time.
  std::vector<named_payload> kept;
};

} // namespace troupe
