// SPDX-License-Identifier: Apache-2.0
// Thinning out a stream of durations, and reading percentiles from what is left.
#include "actors/recording/duration_sample.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

void duration_sample::add(job_time duration) {
  longest_ = std::max(longest_, duration);
  const bool keep = count_ % stride_ == 0;
  ++count_;
  if (!keep) return;
  if (kept_.size() == kept_max) {
    for (size_t i = 0; 2 * i < kept_.size(); ++i)
      kept_[i] = kept_[2 * i];
    kept_.resize(kept_max / 2);
    stride_ *= 2;
  }
  kept_.push_back(duration);
}

job_time duration_sample::percentile(double fraction) const {
  TROUPE_ASSERT(fraction >= 0, fraction);
  TROUPE_ASSERT(fraction <= 1, fraction);
  if (kept_.empty()) return job_time{0};
  const double rank = std::ceil(fraction * static_cast<double>(kept_.size()));
  const size_t index = rank < 1 ? 0 : static_cast<size_t>(rank) - 1;
  std::vector<job_time> scratch = kept_;
  std::nth_element(scratch.begin(), scratch.begin() + static_cast<ptrdiff_t>(index), scratch.end());
  return scratch[index];
}

} // namespace troupe
