// SPDX-License-Identifier: Apache-2.0
// How many replicas there are, how many gradients a step needs, and by which protocol.
#pragma once

#include "actors/policies/sync_policy.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

/// How the gain of an update of k gradients is estimated.
enum class gain_model : uint8_t {
  measured, ///< The expected fall of the loss, from the norms of gradients and their spread.
  power,    ///< k to some power: where nothing is learnt, or the power is known.
};

/// How a number of backups is chosen anew for every step (`backup_choice`).
struct dynamic_backups {
  gain_model gain = gain_model::measured;
  double power = 1; ///< The exponent of k, above 0; with 1 each gradient counts as much.
  /// Learning rate times the Lipschitz constant of the gradient, below 2: the larger, the more
  /// noise matters, and the more gradients a step waits for. 0 = estimated (`backup_choice`).
  double curvature = 0.1;
  uint32_t window = 20;  ///< Steps in a mean; at least 1.
  uint32_t memory = 100; ///< Steps that are remembered; at least as many as in a mean.
};

/// How many replicas there are, how many gradients a step needs, and by which protocol.
struct sync_options {
  uint32_t replicas_to_aggregate = 1;                  ///< N: gradients per variable and update.
  uint32_t total_num_replicas = replicas_to_aggregate; ///< n: replicas; n - N of them are backups.
  sync_policy policy = sync_policy::tensorflow;
  /// Tokens in the queue at the start, all stamped with the first step; -1 = N.
  /// Only a policy that counts tokens has use for them: N of them waste the round after the first.
  int64_t initial_tokens = -1;
  /// Whether a replica, when its gradient counts, waits for the step to end before it takes a
  /// token, so that it gives no second gradient. It could give one only where tokens are counted;
  /// then a step needs N live replicas. A second gradient of a replica that was lost and has come
  /// back is dropped as a stale one is.
  bool one_gradient_per_replica = false;
  /// Whether a gradient with a number that is not finite is refused, and its replica lost, before
  /// it spoils the variable. Costs a look at every number.
  bool require_finite = false;
  /// Whether losses, and so gradients, are sums over a replica's examples, not means. An update
  /// then divides the sum of its gradients by the examples of all that replicas report: a replica
  /// with fewer examples weighs less. A gradient without examples is refused.
  bool losses_are_sums = false;
  /// The mean gradients of all variables are scaled down together if the norm of all is larger;
  /// 0 = they are not. Costs another read of the gradients, and a message there and back.
  double clip_global_norm = 0;
  /// Where replicas keep pace: how many gradients one may be ahead of the slowest; else 0.
  uint64_t slack = 0;
  /// If given, the chief chooses how many gradients each step after the first waits for; the first
  /// waits for `replicas_to_aggregate`, or all there are. Only for policies with newest tokens.
  std::optional<dynamic_backups> dynamic;
  std::string name = "sync_replicas"; ///< The optimizer's name, for messages.

  /// More tokens at the start must be a mistake.
  static constexpr int64_t initial_tokens_max = 1'000'000;

  /// Checks the options. Errors: invalid_argument if a count is 0 or too large, a norm is not one,
  /// an option does not go with the policy or with another option, or the replicas are fewer than a
  /// step needs and cannot finish it: under this policy each gives one gradient to a step, or there
  /// are too few tokens for the first step (n + initial_tokens < N).
  [[nodiscard]] expected<void> validate() const;

  /// Whether owners are to measure the norms of gradients.
  [[nodiscard]] bool measures() const { return dynamic && dynamic->gain == gain_model::measured; }

  /// Tokens that an update puts into the queue where they are counted.
  [[nodiscard]] uint32_t tokens_per_step() const {
    return std::max(replicas_to_aggregate, total_num_replicas);
  }

  /// Tokens that the queue holds before the first update.
  [[nodiscard]] uint32_t first_tokens() const {
    if (!traits_of(policy).counts_tokens()) return 0;
    return initial_tokens < 0 ? replicas_to_aggregate : static_cast<uint32_t>(initial_tokens);
  }
};

} // namespace troupe
