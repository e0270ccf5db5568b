// SPDX-License-Identifier: Apache-2.0
// Dropout, sixteen random blocks at a time.
#include "kernels/math/dropout.hpp"

#include "kernels/tensor/parallel.hpp"

#include <algorithm>
#include <array>

namespace troupe::cpu {

namespace {

/// The words of so many blocks are drawn together: as many as keep the vector registers busy.
constexpr size_t blocks_at_once = 16;

/// The words of the blocks from `position` on, in the order of the stream.
using random_words = std::array<uint32_t, 4 * blocks_at_once>;

void draw(const random_key& key, uint32_t position, random_words& words) {
  for (size_t i = 0; i < blocks_at_once; ++i) {
    auto block = key.block(position + static_cast<uint32_t>(i));
    for (size_t word = 0; word < 4; ++word)
      words[4 * i + word] = block[word];
  }
}

} // namespace

template <class T>
void dropout(const context&, double rate, const random_key& key, std::span<const T> input,
             std::span<T> output) {
  troupe::detail::check_dropout(rate, input.size(), output.size());
  auto scale = static_cast<T>(1 / (1 - rate));
  auto threshold = dropout_threshold(rate);
  with_widest_vectors([&] {
    random_words words{};
    for (size_t begin = 0; begin < input.size(); begin += words.size()) {
      draw(key, static_cast<uint32_t>(begin / 4), words);
      const T* from = input.data() + begin;
      T* to = output.data() + begin;
      auto count = std::min(words.size(), input.size() - begin);
      for (size_t i = 0; i < count; ++i) {
        T kept = from[i] * scale;
        to[i] = words[i] < threshold ? T{0} : kept;
      }
    }
  });
}

template void dropout(const context&, double, const random_key&, std::span<const float>,
                      std::span<float>);
template void dropout(const context&, double, const random_key&, std::span<const double>,
                      std::span<double>);

} // namespace troupe::cpu
