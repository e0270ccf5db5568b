// SPDX-License-Identifier: Apache-2.0
// The fused update in blocks, on vectors and all cores.
#include "kernels/update.hpp"

#include "kernels/parallel.hpp"
#include "kernels/rule_block.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#if defined(__SSE2__)
#  include <emmintrin.h>
#endif

namespace troupe::cpu {

namespace {

/// A new version of a variable of this size or more is written past the caches: nobody reads it
/// before the pass is over, and then it has long been displaced. An ordinary store would first read
/// the line that it is about to overwrite. Smaller variables are better left in the cache.
constexpr size_t streamed_bytes_min = size_t{4} << 20;

constexpr size_t cache_line_bytes = 64;

/// Copies a block past the caches, where the processor can. @pre `to` is 16-byte aligned.
template <class T>
void stream(const T* from, size_t count, T* to) {
#if defined(__SSE2__)
  constexpr size_t lanes = sizeof(__m128i) / sizeof(T);
  size_t whole = count - count % lanes;
  for (size_t i = 0; i < whole; i += lanes)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(from + i)));
  std::copy(from + whole, from + count, to + whole);
#else
  std::copy(from, from + count, to);
#endif
}

/// Makes streamed blocks visible to whoever this thread tells next that they are there.
void finish_streaming() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

/// Everything that the pass reads and writes.
template <class T>
struct pass {
  const gradient_sum& gradient;
  const replaced<T>& variable;
  std::span<const replaced<T>> slots;
  bool streams; ///< Whether the variable's new version goes past the caches.

  template <size_t... Slot>
  [[nodiscard]] block<T, sizeof...(Slot)> block_at(size_t begin, size_t count, T* combined,
                                                   std::index_sequence<Slot...>) const {
    return {count,
            combined,
            variable.before.data() + begin,
            streams ? combined : variable.after.data() + begin,
            {slots[Slot].before.data() + begin...},
            {slots[Slot].after.data() + begin...}};
  }
};

template <class Rule, class T>
void update_chunk(const typename Rule::template for_elements<T>& apply, const pass<T>& over,
                  size_t begin, size_t end) {
  constexpr std::make_index_sequence<Rule::slot_count> slots;
  alignas(cache_line_bytes) T combined[block_elements];
  for (size_t at = begin; at < end; at += block_elements) {
    size_t count = std::min(block_elements, end - at);
    combine_block(over.gradient, at, count, combined);
    auto block = over.block_at(at, count, combined, slots);
    vectorised([=] { apply_to(block, apply, slots); });
    if (over.streams) stream(combined, count, over.variable.after.data() + at);
  }
  if (over.streams) finish_streaming();
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
            const replaced<T>& variable, std::span<const replaced<T>> slots) {
  check(rule, gradient, variable, slots);
  const pass<T> over{gradient, variable, slots, is_streamed(variable)};
  auto update_with = [&]<class Rule>(const Rule& settings) {
    const typename Rule::template for_elements<T> apply{settings};
    parallel_chunks(on, variable.after.size(),
                    [&](size_t begin, size_t end) { update_chunk<Rule>(apply, over, begin, end); });
  };
  std::visit(update_with, rule);
}

template void update(const context&, const update_rule&, const gradient_sum&,
                     const replaced<float>&, std::span<const replaced<float>>);
template void update(const context&, const update_rule&, const gradient_sum&,
                     const replaced<double>&, std::span<const replaced<double>>);

} // namespace troupe::cpu
