// SPDX-License-Identifier: Apache-2.0
// Tools of the tests of cuda twins: arrays on the device with guards at both ends.
#pragma once

#include "kernels/cuda/context.hpp"
#include "kernels/tensor/elements.hpp"
#include "tests/kernels/arrays.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace troupe::test {

/// The context that all tests run on.
inline const cuda::context& gpu() {
  static auto made = cuda::context::create(0);
  REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
  return *made;
}

/// Sizes around packets, warps, blocks, tiles and chunks, and odd ones.
inline constexpr size_t device_sizes[]
  = {0, 1, 3, 4, 31, 33, 127, 256, 1023, 1025, 16384, 16385, 40007};

/// The number that `queue(place)` has the device write.
template <class Queue>
double number_from(const Queue& queue) {
  auto place = gpu().memory().allocate(sizeof(double));
  auto* number = reinterpret_cast<double*>(place.get());
  queue(std::span{number, 1});
  return cuda::fetch(gpu(), number);
}

/// An array on the device between canary words, begun so many elements after an aligned place.
template <class T>
class device_array {
public:
  explicit device_array(std::span<const T> values, size_t offset = 0)
    : count_(values.size()), offset_(guard_bytes + offset * sizeof(T)),
      block_(gpu().memory().allocate(2 * guard_bytes + (offset + count_) * sizeof(T))) {
    std::vector<uint8_t> bytes(2 * guard_bytes + (offset + count_) * sizeof(T), canary);
    std::ranges::copy(std::as_bytes(values), reinterpret_cast<std::byte*>(bytes.data()) + offset_);
    REQUIRE(gpu().stream().copy(bytes.data(), block_.get(), bytes.size()));
  }

  explicit device_array(guarded<T>& values, size_t offset = 0)
    : device_array(std::span<const T>{values.view()}, offset) {}

  [[nodiscard]] std::span<T> span() const {
    return {reinterpret_cast<T*>(block_.get() + offset_), count_};
  }

  [[nodiscard]] std::span<const T> view() const { return span(); }

  /// The present content; checks that nothing was written beyond the ends.
  [[nodiscard]] guarded<T> fetch() const {
    std::vector<uint8_t> bytes(offset_ + count_ * sizeof(T) + guard_bytes);
    REQUIRE(gpu().stream().copy(block_.get(), bytes.data(), bytes.size()));
    auto done = gpu().synchronise();
    REQUIRE_MESSAGE(done, (done ? "" : done.error().message));
    auto is_canary = [](uint8_t byte) { return byte == canary; };
    auto begin = bytes.begin() + static_cast<ptrdiff_t>(offset_);
    auto end = begin + static_cast<ptrdiff_t>(count_ * sizeof(T));
    CHECK_MESSAGE(std::all_of(bytes.begin(), begin, is_canary), "written before an array");
    CHECK_MESSAGE(std::all_of(end, bytes.end(), is_canary), "written behind an array");
    guarded<T> result{count_};
    std::copy(begin, end, reinterpret_cast<uint8_t*>(result.span().data()));
    return result;
  }

private:
  static constexpr size_t guard_bytes = 64;
  static constexpr uint8_t canary = 0x5a;
  size_t count_;
  size_t offset_;
  std::shared_ptr<std::byte> block_;
};

/// Whether an array on the device holds these bits.
template <class T>
bool holds_bits(const device_array<T>& array, guarded<T>& expected) {
  auto fetched = array.fetch();
  return same_bits(fetched, expected);
}

} // namespace troupe::test
