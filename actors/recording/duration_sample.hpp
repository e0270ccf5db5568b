// SPDX-License-Identifier: Apache-2.0
// Percentiles of a stream of durations, in bounded memory.
#pragma once

#include "actors/recording/records.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

/// A long job makes too many steps to keep. Up to `kept_max` durations the percentiles are exact;
/// beyond, every second, fourth, eighth ... duration stands for its neighbours. The choice is by
/// position only, so the same stream gives the same answer. The maximum is always exact.
class duration_sample {
public:
  /// Durations that are kept at most: 8 MiB of them.
  static constexpr size_t kept_max = size_t{1} << 20;

  /// Counts one more duration.
  void add(job_time duration);

  /// The smallest kept duration that at least `fraction` (0 to 1) of the kept ones do not exceed;
  /// 0 if there is none.
  /// Cost: a partial sort of the kept ones.
  [[nodiscard]] job_time percentile(double fraction) const;

  /// The longest of all that were added; 0 if there is none.
  [[nodiscard]] job_time longest() const { return longest_; }

  /// How many were added.
  [[nodiscard]] uint64_t count() const { return count_; }

private:
  std::vector<job_time> kept_;
  job_time longest_{0};
  uint64_t count_ = 0;
  uint64_t stride_ = 1;
};

} // namespace troupe
