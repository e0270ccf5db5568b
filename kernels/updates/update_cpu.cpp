// SPDX-License-Identifier: Apache-2.0
// The fused update in blocks, on vectors and all cores.
#include "kernels/updates/update.hpp"

#include "kernels/math/elementwise.hpp"
#include "kernels/tensor/parallel.hpp"
#include "kernels/updates/rule_block.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#if defined(__SSE2__)
#  include <emmintrin.h>
#endif

namespace troupe::cpu {

namespace {

/// A new version of a variable of this size or more is written past the caches: it is not read
/// before the pass is over, and then it has long been displaced. An ordinary store would first read
/// the line that it is about to overwrite. Smaller variables are better left in the cache.
constexpr size_t streamed_bytes_min = size_t{4} << 20;

constexpr size_t cache_line_bytes = 64;

/// Copies a block past the caches, where the processor can and the block is aligned for it: a chunk
/// begins wherever a context's grain has it.
template <class T>
void stream(const T* from, size_t count, T* to) {
#if defined(__SSE2__)
  constexpr size_t lanes = sizeof(__m128i) / sizeof(T);
  bool is_aligned = reinterpret_cast<uintptr_t>(to) % sizeof(__m128i) == 0;
  size_t whole = is_aligned ? count - count % lanes : 0;
  for (size_t i = 0; i < whole; i += lanes)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(from + i)));
  std::copy(from + whole, from + count, to + whole);
#else
  std::copy(from, from + count, to);
#endif
}

/// Makes streamed blocks visible to any thread that this one synchronises with next.
void finish_streaming() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

/// Everything that the pass reads and writes.
template <class T>
struct dense_pass {
  const gradient_sum& gradient;
  const replaced<T>& variable;
  std::span<const replaced<T>> slots;
  const averaged<T>& average;
  bool streams; ///< Whether the variable's new version goes past the caches.

  /// Combines the gradients of `count` elements from `begin` on. @returns Where all arrays lie.
  [[nodiscard]] block<T> combine(size_t begin, size_t count, T* combined) const {
    combine_block(gradient, begin, count, combined);
    block<T> result{count, combined, variable.before.data() + begin,
                    streams ? combined : variable.after.data() + begin};
    for (size_t slot = 0; slot < slots.size(); ++slot) {
      result.slots_before[slot] = slots[slot].before.data() + begin;
      result.slots_after[slot] = slots[slot].after.data() + begin;
    }
    return result;
  }

  /// Brings the average of elements from `begin` on up to date.
  void follow(std::span<const T> values, size_t begin) const {
    if (average.shadow.empty()) return;
    auto shadow = average.shadow.subspan(begin, values.size());
    lerp<T>({}, shadow, values, static_cast<T>(average.weight), shadow);
  }
};

template <class Rule, class T>
void update_chunk(const typename Rule::template for_elements<T>& apply, const dense_pass<T>& pass,
                  size_t begin, size_t end) {
  alignas(cache_line_bytes) T combined[block_elements];
  for (size_t at = begin; at < end; at += block_elements) {
    size_t count = std::min(block_elements, end - at);
    auto block = pass.combine(at, count, combined);
    apply_to<Rule>(block, apply);
    pass.follow({block.after, count}, at);
    if (pass.streams) stream(combined, count, pass.variable.after.data() + at);
  }
  if (pass.streams) finish_streaming();
}

double sum_of(std::array<double, 16> lanes) {
  for (size_t width = lanes.size() / 2; width > 0; width /= 2)
    for (size_t lane = 0; lane < width; ++lane)
      lanes[lane] += lanes[lane + width];
  return lanes[0];
}

template <class Rule, class T>
rules::layer_norms norms_of(const Rule& settings, const dense_pass<T>& pass) {
  const typename Rule::template for_elements<T> rule{settings};
  auto squares = parallel_sums(pass.variable.after.size(), [&](size_t begin, size_t end) {
    squared_lanes sums;
    alignas(cache_line_bytes) T combined[block_elements];
    for (size_t at = begin; at < end; at += block_elements)
      add_squares<Rule>(pass.combine(at, std::min(block_elements, end - at), combined), rule, sums);
    return sum_pair{sum_of(sums.variable), sum_of(sums.direction)};
  });
  return {std::sqrt(squares[0]), std::sqrt(squares[1])};
}

template <class T>
bool is_streamed(const replaced<T>& variable) {
  return variable.before.data() != variable.after.data()
         && variable.after.size_bytes() >= streamed_bytes_min
         && reinterpret_cast<uintptr_t>(variable.after.data()) % cache_line_bytes == 0;
}

} // namespace

template <class T>
void update(const context& on, const update_rule& rule, const gradient_sum& gradient,
            const replaced<T>& variable, std::span<const replaced<T>> slots,
            const averaged<T>& average) {
  check(rule, gradient, variable, slots, average);
  const dense_pass<T> pass{gradient, variable, slots, average, is_streamed(variable)};
  auto update_with = [&]<class Rule>(const Rule& settings) {
    const auto apply
      = rule_for_elements<T>(settings, [&](const auto& rule) { return norms_of(rule, pass); });
    parallel_chunks(on, variable.after.size(),
                    [&](size_t begin, size_t end) { update_chunk<Rule>(apply, pass, begin, end); });
  };
  std::visit(update_with, rule);
}

template void update(const context&, const update_rule&, const gradient_sum&,
                     const replaced<float>&, std::span<const replaced<float>>,
                     const averaged<float>&);
template void update(const context&, const update_rule&, const gradient_sum&,
                     const replaced<double>&, std::span<const replaced<double>>,
                     const averaged<double>&);

} // namespace troupe::cpu
