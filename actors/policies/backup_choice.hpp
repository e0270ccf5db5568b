// SPDX-License-Identifier: Apache-2.0
// The chief's choice of how many gradients a step waits for, without actors.
#pragma once

#include "actors/policies/arrival_history.hpp"
#include "actors/policies/curvature_estimate.hpp"
#include "actors/policies/sync_options.hpp"

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace troupe {

/// The norms of one step's gradients, over all variables.
struct gradient_norms {
  double squared_mean = 0; ///< The squared norm of their mean.
  double mean_squared = 0; ///< The mean of their squared norms.
};

/// An estimate, from the gradients that came, of the gradient that any replica could compute.
struct gradient_spread {
  double squared_norm = 0; ///< The squared norm of its expectation.
  double variance = 0;     ///< Its expected squared distance from that.

  /// From the gradients of one step; unbiased, but that no square is negative.
  /// @param count Their number; at least 2.
  [[nodiscard]] static gradient_spread of(const gradient_norms& norms, uint32_t count);

  /// The expected fall of the loss by an update of the mean of k gradients, in multiples of the
  /// learning rate: (1 - c/2) squared_norm - (c/2) variance / k, with c the learning rate times
  /// the Lipschitz constant of the gradient. May be negative. Source: the paper below, equation
  /// (5).
  [[nodiscard]] double gain(uint32_t count, double curvature) const {
    return (1 - curvature / 2) * squared_norm - curvature / 2 * variance / count;
  }
};

/// All that a choice has learnt from steps, so that a job that goes on from a checkpoint chooses as
/// the one before.
struct backup_estimates {
  std::deque<arrival_row> arrivals;    ///< The last steps, the newest last.
  std::deque<gradient_spread> spreads; ///< From the last steps with two gradients or more.
  std::deque<descent_step> descent;    ///< The last of these steps, as long as each has a loss.
};

/// The k with the largest gain per second; the largest such k, if several are equal; all gradients,
/// if no update is expected to help.
/// @param gains The gains of updates of 1, 2, ... gradients; at least one.
/// @param times The times to the first, second, ... gradient; as many.
[[nodiscard]] uint32_t best_count(std::span<const double> gains, std::span<const double> times);

/// The best number of backups depends on which replicas are slow, which changes, and on how much
/// one more gradient helps, which changes as training goes on. This chooses the number of gradients
/// of each step anew: the k with the largest expected gain G(k) per expected time T(k).
///
/// Source: Xu, Neglia and Sebastianelli, "Dynamic backup workers for parallel machine learning",
/// Computer Networks 188 (2021). As there, the Lipschitz constant is estimated from losses, where
/// they are reported and an update is the mean gradient times a rate (`estimate_curvature`); else
/// the curvature is what `dynamic_backups` says, or 0.1.
class backup_choice {
public:
  /// @param learning_rate The factor of the mean gradient in an update, if an update does nothing
  /// else; otherwise 0.
  explicit backup_choice(const dynamic_backups& options, double learning_rate = 0)
    : options_(options), learning_rate_(learning_rate), arrivals_(options.window, options.memory) {}

  /// A step is over. @param norms Norms of its gradients; ignored if gains are not measured.
  void add(const step_record& step, const gradient_norms& norms);

  /// Whether no step is known yet.
  [[nodiscard]] bool is_empty() const { return arrivals_.is_empty(); }

  /// How many gradients the next step should wait for: all before anything is known.
  /// @param replicas The replicas that may give one, ascending; at least one. @param now As in
  /// `arrival_history::expected_times`.
  [[nodiscard]] uint32_t choose(const std::vector<uint32_t>& replicas, job_time now) const;

  /// Learning rate times the Lipschitz constant, as far as it is known.
  [[nodiscard]] double curvature() const;

  [[nodiscard]] backup_estimates estimates() const;

  /// Goes on from the estimates of another choice, as far as this one's options remember them.
  void restore(backup_estimates known);

private:
  void add_descent(const step_record& step, const gradient_norms& norms);
  [[nodiscard]] std::vector<double> gains(size_t count) const;

  dynamic_backups options_;
  double learning_rate_;
  arrival_history arrivals_;
  std::deque<gradient_spread> spreads_; ///< From the last steps with two gradients or more.
  std::deque<descent_step> descent_;    ///< The last of these steps that have a loss.
};

} // namespace troupe
