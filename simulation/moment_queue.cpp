// SPDX-License-Identifier: Apache-2.0
// Laying out a calendar, and opening its buckets.
#include "simulation/moment_queue.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace troupe {

namespace {

// So many moments, or up to twice as many, say how wide a bucket is to be.
constexpr size_t sample_size = 16;

} // namespace

void moment_queue::clear() {
  open_.clear();
  heap_.clear();
  later_.clear();
  buckets_.clear();
  next_bucket_ = 0;
  open_until_ = job_time::min();
  count_ = 0;
}

void moment_queue::open_bucket() {
  while (open_.empty()) {
    if (next_bucket_ == buckets_.size()) lay_out();
    auto bucket = next_bucket_++;
    for (auto one = buckets_[bucket]; one != none; one = links_[one].next)
      open_.push_back({links_[one].due, one});
  }
  open_until_ = base_ + job_time{static_cast<int64_t>(next_bucket_ << width_bits_)};
  std::ranges::sort(open_, std::ranges::greater{}, &moment::due);
}

void moment_queue::lay_out() {
  choose_width();
  buckets_.assign(std::bit_ceil(later_.size()), none);
  next_bucket_ = 0;
  std::vector<moment> beyond;
  for (const auto& one : later_) {
    auto bucket = bucket_of(one.due);
    if (bucket >= buckets_.size()) {
      beyond.push_back(one);
      continue;
    }
    links_[one.replica] = {one.due, buckets_[bucket]};
    buckets_[bucket] = one.replica;
  }
  later_ = std::move(beyond);
}

// The buckets, one for each moment, cover four times the median distance from the earliest: nearly
// all moments of the usual distributions, and at least half of those of any.
void moment_queue::choose_width() {
  auto earliest = std::ranges::min(later_, {}, &moment::due).due;
  std::vector<job_time> distances;
  auto stride = std::max<size_t>(1, later_.size() / sample_size);
  for (size_t i = 0; i < later_.size(); i += stride)
    distances.push_back(later_[i].due - earliest);
  auto median = distances.begin() + static_cast<ptrdiff_t>(distances.size() / 2);
  std::ranges::nth_element(distances, median);
  auto width = 4 * (static_cast<uint64_t>(median->count()) / std::bit_ceil(later_.size()) + 1);
  base_ = earliest;
  // No more than lets all buckets end before clocks run over.
  width_bits_ = std::min(61U, static_cast<unsigned>(std::bit_width(width - 1)));
}

} // namespace troupe
