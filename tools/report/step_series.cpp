// SPDX-License-Identifier: Apache-2.0
// Adds values to a curve, and joins its stretches.
#include "tools/report/step_series.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

void step_series::add(uint64_t step, double value) {
  if (!std::isfinite(value)) return;
  auto first_step = step - step % width_;
  if (stretches_.empty() || stretches_.back().first_step < first_step) {
    if (stretches_.size() == stretches_max) {
      fold();
      add(step, value);
      return;
    }
    stretches_.push_back({.first_step = first_step});
  }
  auto& last = stretches_.back();
  ++last.count;
  last.sum += value;
  last.least = std::min(last.least, value);
  last.greatest = std::max(last.greatest, value);
}

void step_series::fold() {
  width_ *= 2;
  std::vector<stretch> folded;
  for (const auto& stretch : stretches_) {
    auto first_step = stretch.first_step - stretch.first_step % width_;
    if (folded.empty() || folded.back().first_step < first_step)
      folded.push_back({.first_step = first_step});
    auto& last = folded.back();
    last.count += stretch.count;
    last.sum += stretch.sum;
    last.least = std::min(last.least, stretch.least);
    last.greatest = std::max(last.greatest, stretch.greatest);
  }
  stretches_ = std::move(folded);
}

} // namespace troupe
