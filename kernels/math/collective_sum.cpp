// SPDX-License-Identifier: Apache-2.0
// Sums in order: floats by the kernels that add up gradients, integers by plain loops.
#include "kernels/math/collective_sum.hpp"

#include "kernels/math/cast.hpp"
#include "kernels/math/reduce.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

namespace troupe {

namespace {

constexpr cpu::context this_thread{.grain_elements = std::numeric_limits<size_t>::max()};

template <class T>
void sum_integers(std::span<const elements> sources, std::span<T> out) {
  using bits = std::make_unsigned_t<T>;
  std::ranges::copy(sources[0].as<T>(), out.begin());
  for (const auto& source : sources.subspan(1)) {
    auto from = source.as<T>();
    TROUPE_ASSERT(from.size() == out.size(), from.size(), out.size());
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<T>(static_cast<bits>(out[i]) + static_cast<bits>(from[i]));
  }
}

/// Sums 16-bit types block by block, so that sums in f32 never leave the cache.
void sum_halves(std::span<const elements> sources, const mutable_elements& out) {
  constexpr size_t block_elements = 4096;
  std::array<float, block_elements> block;
  std::vector<elements> pieces(sources.begin(), sources.end());
  for (size_t begin = 0; begin < out.count; begin += block_elements) {
    auto count = std::min(block_elements, out.count - begin);
    for (size_t i = 0; i < sources.size(); ++i) {
      const auto* from = static_cast<const std::byte*>(sources[i].data);
      pieces[i] = {from + begin * element_bytes(sources[i].type), sources[i].type, count};
    }
    std::span<float> sum{block.data(), count};
    cpu::reduce<float>(this_thread, {.sources = pieces}, sum);
    mutable_elements to;
    to.data = static_cast<std::byte*>(out.data) + begin * element_bytes(out.type);
    to.type = out.type;
    to.count = count;
    cpu::cast(this_thread, elements{sum}, to);
  }
}

} // namespace

void sum_in_order(std::span<const elements> sources, const mutable_elements& out) {
  TROUPE_ASSERT(!sources.empty());
  if (out.count == 0) return;
  if (sources.size() == 1 && sources[0].type == out.type) {
    TROUPE_ASSERT(sources[0].count == out.count, sources[0].count, out.count);
    std::memcpy(out.data, sources[0].data, out.count * element_bytes(out.type));
    return;
  }
  switch (out.type) {
  case dtype::f32:
    return cpu::reduce<float>(this_thread, {.sources = sources}, out.as<float>());
  case dtype::f64:
    return cpu::reduce<double>(this_thread, {.sources = sources}, out.as<double>());
  case dtype::i32:
    return sum_integers(sources, out.as<int32_t>());
  case dtype::i64:
    return sum_integers(sources, out.as<int64_t>());
  default:
    return sum_halves(sources, out);
  }
}

} // namespace troupe
