// SPDX-License-Identifier: Apache-2.0
// Draws from a shuffle buffer, from its start or from anywhere.
#include "strategies/data/shuffle_order.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {

shuffle_order::shuffle_order(uint64_t seed, uint64_t buffer_size, uint64_t element_count)
  : seed_(seed), buffer_size_(std::min(buffer_size, element_count)), element_count_(element_count) {
  TROUPE_ASSERT(buffer_size > 0);
}

uint64_t shuffle_order::at(uint64_t epoch, uint64_t index) {
  TROUPE_ASSERT(index < element_count_, index, element_count_);
  // A short way ahead, as a shard's next element, costs less by drawing all that lie before it.
  const auto is_ahead = epoch == epoch_ && index >= next_;
  if (!is_ahead || index - next_ > buffer_size_) seek(epoch, index);
  while (next_ < index)
    advance();
  return advance();
}

// While elements still come in, what lies in a slot came there with the last draw of that slot. So
// going backwards from the place wanted, the first draw seen of each slot tells what it holds.
void shuffle_order::seek(uint64_t epoch, uint64_t index) {
  epoch_ = epoch;
  epoch_seed_ = random_stream{random_key{seed_, "shuffle epoch", 0, epoch}}.next_u64();
  slots_.resize(buffer_size_);
  std::iota(slots_.begin(), slots_.end(), uint64_t{0});
  next_ = std::min(index, element_count_ - buffer_size_);
  std::vector<bool> is_known(buffer_size_);
  uint64_t unknown = buffer_size_;
  for (uint64_t number = next_; number > 0 && unknown > 0; --number) {
    const auto slot = draw(number - 1);
    if (is_known[slot]) continue;
    is_known[slot] = true;
    --unknown;
    slots_[slot] = number - 1 + buffer_size_;
  }
}

uint64_t shuffle_order::advance() {
  const auto slot = draw(next_);
  const auto element = slots_[slot];
  const auto last = filled(next_) - 1;
  // At the end nothing comes in any more, and the last of the buffer fills the hole.
  slots_[slot] = next_ < element_count_ - buffer_size_ ? next_ + buffer_size_ : slots_[last];
  ++next_;
  return element;
}

uint64_t shuffle_order::draw(uint64_t index) const {
  return random_stream{random_key{epoch_seed_, "shuffle", 0, index}}.below(filled(index));
}

uint64_t shuffle_order::filled(uint64_t index) const {
  return std::min(buffer_size_, element_count_ - index);
}

} // namespace troupe
