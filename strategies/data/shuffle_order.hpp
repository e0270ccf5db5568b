// SPDX-License-Identifier: Apache-2.0
// The order that a shuffle buffer gives to its elements, without the elements.
#pragma once

#include "kernels/tensor/random.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// A shuffle buffer is filled with the first `buffer_size` elements; then, again and again, one of
/// them is drawn and the next element takes its place; at the end the rest is drawn. Which one is
/// drawn depends on the number of the draw alone, never on what was drawn before. So the state at
/// any place follows from the draws just before it, and a reader that resumes in the middle of a
/// large dataset neither stores the buffer nor reads a single element twice.
///
/// The order of TensorFlow's `Dataset.shuffle`, drawn from our own random streams.
class shuffle_order {
public:
  /// @param element_count Elements of one epoch; `UINT64_MAX`: without end.
  /// @pre buffer_size > 0.
  shuffle_order(uint64_t seed, uint64_t buffer_size, uint64_t element_count);

  /// Which element comes out as number `index` of an epoch; each epoch has an order of its own.
  /// Cost: a draw for each index since the one before, if that is at most a buffer of B ahead, else
  /// about B ln B draws; 8 B bytes of memory.
  /// @pre index < element_count.
  [[nodiscard]] uint64_t at(uint64_t epoch, uint64_t index);

private:
  /// Gets ready for `index`, or for one not far before it.
  void seek(uint64_t epoch, uint64_t index);
  uint64_t advance();
  [[nodiscard]] uint64_t draw(uint64_t index) const;
  [[nodiscard]] uint64_t filled(uint64_t index) const;

  uint64_t seed_;
  uint64_t buffer_size_;
  uint64_t element_count_;
  uint64_t epoch_ = 0;
  uint64_t epoch_seed_ = 0;
  uint64_t next_ = UINT64_MAX;  ///< The number that `slots_` is ready for.
  std::vector<uint64_t> slots_; ///< Which element lies in each place of the buffer.
};

} // namespace troupe
