// SPDX-License-Identifier: Apache-2.0
// How long computations that were cut short would have taken.
#pragma once

#include "simulation/replay/recorded_run.hpp"

#include <span>
#include <vector>

namespace troupe {

/// Under `cancel` only the fastest gradients of a step are completed; the others are known to have
/// taken longer than so long. To draw for them from the completed ones is too short, because those
/// are the fast ones. This is the distribution that both kinds tell of together.
///
/// Up to the longest completed time it is the estimate of Kaplan and Meier. Beyond it, where some
/// were cut later than that, nothing was seen: there the remaining time is exponential, with the
/// mean that the longest tenth of the completed times says. A heavier tail would take longer.
/// Source: Kaplan and Meier, "Nonparametric estimation from incomplete observations", J. Am. Stat.
/// Assoc. 53 (1958); the tail after Moeschberger and Klein, Biometrics 41 (1985).
class survival_estimate {
public:
  explicit survival_estimate(std::vector<recorded_time> times);

  /// A time that is longer than `least`. @param uniform Above 0 and below 1; which one.
  /// @param beyond Whether what is beyond the longest completed time is drawn; else the result is
  /// that time, or just above `least` if that is longer: a lower bound.
  [[nodiscard]] job_time longer_than(job_time least, double uniform, bool beyond) const;

  /// The integral of the hazard up to a time: how many times would have been completed by then, if
  /// each began anew when it was.
  [[nodiscard]] double hazard_until(job_time time) const;

  [[nodiscard]] job_time longest_completed() const { return longest_; }

  [[nodiscard]] uint64_t completed_count() const { return completed_; }

private:
  struct point {
    job_time time;    ///< At which some were completed.
    double surviving; ///< The share of all that takes longer.
    double hazard;    ///< As `hazard_until`.
  };

  [[nodiscard]] double surviving(job_time time) const;
  [[nodiscard]] const point* last_until(job_time time) const;

  std::vector<point> points_; ///< In ascending order of time.
  job_time longest_{0};
  double tail_mean_ = 0; ///< Nanoseconds.
  uint64_t completed_ = 0;
};

/// Which replicas' times are alike enough to be estimated together.
struct survival_groups {
  survival_estimate pool;             ///< Estimate of all that are alike.
  std::vector<survival_estimate> own; ///< [replica]
  std::vector<bool> is_alike;         ///< [replica]: the pool tells of it.
  /// [replica]: it is unlike the others, and was completed too rarely to tell of itself; what is
  /// drawn for it is too short.
  std::vector<bool> is_unknown;

  [[nodiscard]] const survival_estimate& of(size_t replica) const {
    return is_alike[replica] || is_unknown[replica] ? pool : own[replica];
  }
};

/// A replica is unlike the others if it was completed more or less often than their hazard says, by
/// more than three standard errors (the log-rank test).
[[nodiscard]] survival_groups
survival_groups_of(std::span<const std::vector<recorded_time>> replicas);

} // namespace troupe
