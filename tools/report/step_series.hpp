// SPDX-License-Identifier: Apache-2.0
// A curve over the steps of a run, of bounded size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace troupe {

/// A run of a million steps has more values than a screen has points. A series keeps, for stretches
/// of steps, mean, least and greatest value; stretches get twice as long once there are too many.
/// Thread: one owner at a time.
class step_series {
public:
  /// The most stretches.
  static constexpr size_t stretches_max = 512;

  /// Values of some steps in a row.
  struct stretch {
    uint64_t first_step = 0;
    uint64_t count = 0; ///< Steps with a value.
    double sum = 0;
    double least = std::numeric_limits<double>::infinity();
    double greatest = -std::numeric_limits<double>::infinity();
  };

  /// Adds the value of a step; one that is not finite counts for nothing.
  /// @pre Steps come in ascending order.
  void add(uint64_t step, double value);

  /// Stretches with a value, in order.
  [[nodiscard]] const std::vector<stretch>& stretches() const { return stretches_; }

  /// The count of steps that a stretch stands for.
  [[nodiscard]] uint64_t width() const { return width_; }

private:
  void fold();

  std::vector<stretch> stretches_;
  uint64_t width_ = 1;
};

} // namespace troupe
