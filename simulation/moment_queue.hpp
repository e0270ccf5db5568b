// SPDX-License-Identifier: Apache-2.0
// A queue of moments, one for each of thousands of replicas: which is due next?
#pragma once

#include "actors/recording/records.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

/// A heap moves every moment by a dozen places, and mispredicts as many branches. This is a
/// calendar instead: moments lie unordered in buckets of equal width, and a bucket is sorted when
/// its time comes. Moments beyond the last bucket wait unordered, and get a calendar of
/// their own, with a width that fits them, when all before are gone.
///
/// A moment that comes in before the open bucket ends goes into a heap.
///
/// Cost: a constant time for each moment, as long as most lie within a few times their median
/// distance; that of sorting at most.
/// Source: Brown, "Calendar queues: a fast O(1) priority queue implementation for the simulation
/// event set problem", CACM 31 (1988).
class moment_queue {
public:
  explicit moment_queue(uint32_t replicas) : links_(replicas) {}

  [[nodiscard]] bool empty() const { return count_ == 0; }

  /// @pre The replica is not in the queue; `due` is not before the moment that was taken last.
  void push(job_time due, uint32_t replica);

  /// The earliest moment. @pre Not empty.
  [[nodiscard]] job_time next();

  /// Takes out all replicas that are due at the earliest moment, in any order, and appends them.
  /// @pre Not empty.
  void take_next(std::vector<uint32_t>& replicas);

  void clear();

private:
  struct moment {
    job_time due;
    uint32_t replica;
  };

  /// A replica's place in a bucket.
  struct link {
    job_time due;
    uint32_t next; ///< Replica of the bucket, or `none`.
  };

  static constexpr uint32_t none = ~uint32_t{0};

  [[nodiscard]] uint64_t bucket_of(job_time due) const {
    return static_cast<uint64_t>((due - base_).count()) >> width_bits_;
  }

  void open_bucket();
  void lay_out();
  void choose_width();

  static bool is_later(const moment& one, const moment& other) { return one.due > other.due; }

  [[nodiscard]] bool is_in_heap(job_time due) const {
    return !heap_.empty() && heap_.front().due == due;
  }

  std::vector<moment> open_;      ///< Moments before `open_until_`, descending.
  std::vector<moment> heap_;      ///< Moments before it that came since; the earliest first.
  std::vector<uint32_t> buckets_; ///< The first replica of each, or `none`.
  std::vector<link> links_;       ///< By replica.
  std::vector<moment> later_;     ///< Moments beyond the last bucket, in any order.
  job_time base_{0};              ///< Begin of the first bucket.
  job_time open_until_{job_time::min()};
  unsigned width_bits_ = 0; ///< A bucket is 2^width_bits_ nanoseconds wide.
  size_t next_bucket_ = 0;  ///< The first that was not opened.
  size_t count_ = 0;
};

inline void moment_queue::push(job_time due, uint32_t replica) {
  if (count_ == 0) clear(); // what comes now need not fit a calendar of other moments
  ++count_;
  if (due < open_until_) {
    heap_.push_back({due, replica});
    std::ranges::push_heap(heap_, is_later);
    return;
  }
  auto bucket = bucket_of(due);
  if (bucket >= buckets_.size()) return later_.push_back({due, replica});
  links_[replica] = {due, buckets_[bucket]};
  buckets_[bucket] = replica;
}

inline job_time moment_queue::next() {
  if (open_.empty() && heap_.empty()) open_bucket();
  if (open_.empty()) return heap_.front().due;
  return heap_.empty() ? open_.back().due : std::min(open_.back().due, heap_.front().due);
}

inline void moment_queue::take_next(std::vector<uint32_t>& replicas) {
  auto due = next();
  for (; !open_.empty() && open_.back().due == due; --count_) {
    replicas.push_back(open_.back().replica);
    open_.pop_back();
  }
  for (; is_in_heap(due); --count_) {
    std::ranges::pop_heap(heap_, is_later);
    replicas.push_back(heap_.back().replica);
    heap_.pop_back();
  }
}

} // namespace troupe
