// SPDX-License-Identifier: Apache-2.0
// Draws of which jobs are made.
#pragma once

#include "actors/recording/records.hpp"
#include "kernels/tensor/random.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::test {

/// Draws for one purpose.
class dice {
public:
  dice(uint64_t seed, std::string_view purpose) : stream_(random_key{seed, purpose, 0, 0}) {}

  /// From 0 to below `end`.
  uint32_t below(uint32_t end) { return static_cast<uint32_t>(stream_.uniform() * end); }

  bool one_in(uint32_t count) { return below(count) == 0; }

  job_time between(job_time low, job_time high) {
    auto part = stream_.uniform() * static_cast<double>((high - low).count());
    return low + job_time{static_cast<int64_t>(part)};
  }

  template <class T, size_t size>
  const T& one_of(const std::array<T, size>& all) {
    return all[below(static_cast<uint32_t>(size))];
  }

private:
  random_stream stream_;
};

} // namespace troupe::test
