// SPDX-License-Identifier: Apache-2.0
// Estimates of how long steps would take if they waited for another number of gradients.
#pragma once

#include "actors/recording/records.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace troupe {

/// When a replica's gradient came, since its step began. Units: seconds.
struct arrival_time {
  std::optional<double> seconds;  ///< Nothing: not yet, or never.
  bool is_estimate = false;       ///< It was busy with an older gradient when the step began.
  std::optional<double> at_least; ///< When it was told to stop.

  bool operator==(const arrival_time&) const = default;
};

/// The arrivals of one step.
struct arrival_row {
  uint64_t local_step = 0; ///< The stamp of gradients for this step.
  job_time began{0};
  std::vector<arrival_time> arrivals; ///< By replica; those beyond the end have not come.

  bool operator==(const arrival_row&) const = default;
};

/// A step that waits for k gradients shows when the first k came, not when the next one would have.
/// Under `latest_token` the others come later; under `cancel` they never come. This keeps the
/// arrivals of the last steps, completes them as late gradients come in, and estimates the mean
/// time to the k-th gradient, T(k), from the newest steps that have seen it. A k-th gradient that
/// none of them has seen is assumed to come as early as it can, so that the choice of the best k
/// tries it.
///
/// Source: after Xu, Neglia and Sebastianelli, "Dynamic backup workers for parallel machine
/// learning", Computer Networks 188 (2021), section 4.2, where T(k) comes of a regression.
class arrival_history {
public:
  /// @param window Steps that a mean is made of. @param memory Steps that are remembered.
  arrival_history(uint32_t window, uint32_t memory) : window_(window), memory_(memory) {}

  /// A step is over.
  void add(const step_record& step);

  /// T(1), ..., T(number of `replicas`), never falling. Units: seconds. Cost: a sort of arrivals
  /// for each step in memory.
  /// @param replicas The replicas that are there, ascending: others are left out.
  /// @param now On the clock of the records: a gradient that has not come is at least so late.
  [[nodiscard]] std::vector<double> expected_times(const std::vector<uint32_t>& replicas,
                                                   job_time now) const;

  [[nodiscard]] bool is_empty() const { return rows_.empty(); }

  /// The steps that are remembered, the newest last.
  [[nodiscard]] const std::deque<arrival_row>& rows() const { return rows_; }

  /// Goes on from the steps that another history remembered.
  void restore(std::deque<arrival_row> rows);

private:
  void add_late(const contribution& gradient);

  uint32_t window_;
  uint32_t memory_;
  std::deque<arrival_row> rows_; ///< The newest last.
};

} // namespace troupe
