// SPDX-License-Identifier: Apache-2.0
// How the cpu twins share a loop between cores, and use the vectors that the processor has.
#pragma once

#include "kernels/tensor/context.hpp"

#include <array>
#include <cstddef>

/// Before a loop over arrays that are the same or disjoint: no iteration needs another's result.
/// Without it the compiler would look whether they overlap, and give up on vectors where they are
/// the same.
#if defined(__GNUC__) && !defined(__clang__)
#  define TROUPE_INDEPENDENT _Pragma("GCC ivdep")
#else
#  define TROUPE_INDEPENDENT
#endif

namespace troupe::cpu {

/// Two sums that are worked out together.
using sum_pair = std::array<double, 2>;

/// One task works out the sum of so many elements; the chunks of a sum are added up in halves: the
/// first half of them, plus the second, each in halves again.
inline constexpr size_t sum_chunk_elements = 16384;

namespace detail {

void run_chunks(const context& on, size_t count, const void* body,
                void (*call)(const void* body, size_t begin, size_t end));

sum_pair sums_of_chunks(size_t count, const void* body,
                        sum_pair (*call)(const void* body, size_t begin, size_t end));

} // namespace detail

/// Calls `body(begin, end)` for chunks that cover [0, count), on the cores of oneTBB's current
/// arena. The chunks depend on `count` and the grain alone; what fits one chunk stays on this
/// thread.
/// @pre `body` may run for several chunks at the same time. If it throws, one of its exceptions is
/// thrown on; which chunks have been worked on is then open.
template <class Body>
void parallel_chunks(const context& on, size_t count, const Body& body) {
  detail::run_chunks(on, count, &body, [](const void* erased, size_t begin, size_t end) {
    (*static_cast<const Body*>(erased))(begin, end);
  });
}

/// The two sums of `body(begin, end)` over chunks that cover [0, count), shared between cores like
/// `parallel_chunks`. Chunks and order of additions depend on `count` alone, not even on a context.
template <class Body>
[[nodiscard]] sum_pair parallel_sums(size_t count, const Body& body) {
  return detail::sums_of_chunks(count, &body, [](const void* erased, size_t begin, size_t end) {
    return (*static_cast<const Body*>(erased))(begin, end);
  });
}

/// One sum, as each of `parallel_sums`.
template <class Body>
[[nodiscard]] double parallel_sum(size_t count, const Body& body) {
  return parallel_sums(count, [&body](size_t begin, size_t end) {
    return sum_pair{body(begin, end), 0};
  })[0];
}

#if defined(__x86_64__) && defined(__GNUC__)

/// `loop()`, compiled for AVX2 together with everything that it calls in sight.
template <class Loop>
[[gnu::target("avx2"), gnu::flatten]] inline void run_avx2(Loop loop) {
  loop();
}

/// `loop()`, compiled for AVX2 with fused multiply-add.
template <class Loop>
[[gnu::target("avx2,fma"), gnu::flatten]] inline void run_avx2_fma(Loop loop) {
  loop();
}

/// `loop()`, compiled for AVX-512.
template <class Loop>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl"), gnu::flatten]] inline void
run_avx512(Loop loop) {
  loop();
}

#endif

/// Runs `loop()` with vectors of AVX2 where the processor has them. The baseline of x86-64 is SSE2,
/// which cannot keep up with the memory of one core where there is a division or a square root.
/// AVX2 has the same IEEE operations on more lanes, and fused multiply-add is a feature of its own,
/// so the bits are the same, with whatever options a file is compiled.
template <class Loop>
inline void vectorised(Loop loop) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx2")) return run_avx2(loop);
#endif
  loop();
}

/// Runs `loop()` with AVX-512 where the processor has it, and with the instruction for `std::fma`.
/// Compilers fuse on their own, too, unless contraction is off, as it is in Troupe: so this is
/// not for a rule of an optimizer, which a user compiles.
template <class Loop>
inline void with_widest_vectors(Loop loop) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
      && __builtin_cpu_supports("avx512vl"))
    return run_avx512(loop);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return run_avx2_fma(loop);
#endif
  loop();
}

} // namespace troupe::cpu
