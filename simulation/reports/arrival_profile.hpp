// SPDX-License-Identifier: Apache-2.0
// When the first, the second, ... gradient of a step comes in.
#pragma once

#include "actors/recording/records.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// The k-th accepted gradients of all steps, in seconds since their steps began.
struct arrival_figures {
  uint32_t k = 0; ///< Counted from 1.
  double mean = 0;
  double p10 = 0;
  double p50 = 0;
  double p90 = 0;
};

/// How many gradients are there after a second, and how long does the last one take? A run of
/// 10,000 replicas makes more arrivals than are worth keeping: once there are `values_max`,
/// only every second, fourth, eighth ... step counts.
class arrival_profile {
public:
  /// 8 MiB of arrivals.
  static constexpr size_t values_max = size_t{1} << 21;

  /// Counts one more step.
  void add(const step_record& step);

  /// One for each k that every step reached: at least the gradients that a step needs.
  [[nodiscard]] std::vector<arrival_figures> figures() const;

private:
  std::vector<std::vector<float>> steps_; // of each kept step, in order of arrival
  size_t values_ = 0;
  uint64_t count_ = 0;
  uint64_t stride_ = 1;
};

} // namespace troupe
