// SPDX-License-Identifier: Apache-2.0
// How many gradients the next step waits for: the decision of the chief, without actors.
#pragma once

#include "actors/arrival_history.hpp"
#include "actors/sync_policy.hpp"

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace troupe {

/// What the gradients of one step were like, over all variables.
struct gradient_norms {
  double squared_mean = 0; ///< The squared norm of their mean.
  double mean_squared = 0; ///< The mean of their squared norms.
};

/// What is known of a gradient that any replica could compute, from those that came.
struct gradient_spread {
  double squared_norm = 0; ///< Of its expectation.
  double variance = 0;     ///< Its expected squared distance from that.

  /// From the gradients of one step; unbiased, but that no square is negative.
  /// @param count Their number; at least 2.
  [[nodiscard]] static gradient_spread of(const gradient_norms& norms, uint32_t count);

  /// What an update of the mean of k gradients is expected to lower the loss by, in multiples of
  /// the learning rate: (1 - c/2) squared_norm - (c/2) variance / k, with c the learning rate times
  /// the Lipschitz constant of the gradient. May be negative. Source: the paper below, equation
  /// (5).
  [[nodiscard]] double gain(uint32_t count, double curvature) const {
    return (1 - curvature / 2) * squared_norm - curvature / 2 * variance / count;
  }
};

/// The k with the largest gain a second: of equals, the largest k; if no update is expected to
/// help, all of them.
/// @param gains Of updates of 1, 2, ... gradients. @param times To the first, second, ... gradient;
/// as many, at least one.
[[nodiscard]] uint32_t best_count(std::span<const double> gains, std::span<const double> times);

/// The best number of backups depends on who is slow, which changes, and on how much one more
/// gradient helps, which changes as training goes on. This chooses the number of gradients of each
/// step anew: that with the largest expected gain G(k) for its expected time T(k).
///
/// Source: Xu, Neglia and Sebastianelli, "Dynamic backup workers for parallel machine learning",
/// Computer Networks 188 (2021). There the Lipschitz constant is estimated from losses, which here
/// need not be reported; it is a setting (`dynamic_backups::curvature`).
class backup_choice {
public:
  explicit backup_choice(const dynamic_backups& options)
    : options_(options), arrivals_(options.window, options.memory) {}

  /// A step is over. @param norms Of its gradients; not looked at if gains are not measured.
  void add(const step_record& step, const gradient_norms& norms);

  /// How many gradients the next step should wait for: all before anything is known.
  /// @param replicas Those who are there, ascending; at least one. @param now As in
  /// `arrival_history::expected_times`.
  [[nodiscard]] uint32_t choose(const std::vector<uint32_t>& replicas, job_time now) const;

private:
  [[nodiscard]] std::vector<double> gains(size_t count) const;

  dynamic_backups options_;
  arrival_history arrivals_;
  std::deque<gradient_spread> spreads_; ///< Of the last steps with two gradients or more.
};

} // namespace troupe
