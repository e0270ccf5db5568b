// SPDX-License-Identifier: Apache-2.0
// Stands for CUDA's header of this name: products of small matrices by a warp, as much of them as
// Troupe's kernels use. Each lane has eight elements of a sum, and for them a copy of both factors.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <type_traits>

namespace troupe::emulated {

/// Returns when all lanes of the warp have come here. Aborts unless a matrix may lie there: on 32
/// bytes, in rows of whole 16.
void meet_at_matrix(const void* first, size_t row_bytes);

} // namespace troupe::emulated

namespace nvcuda::wmma {

struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;

namespace precision {

struct tf32;

} // namespace precision

enum layout_t { mem_row_major };

template <class Use, int m, int n, int k, class T, class Layout = void>
struct fragment {
  static constexpr int rows = std::is_same_v<Use, matrix_a> ? m : k;
  static constexpr int columns = std::is_same_v<Use, matrix_a> ? k : n;
  float values[rows][columns];
};

template <int m, int n, int k>
struct fragment<accumulator, m, n, k, float> {
  static constexpr int lanes = 32, of_lane = m * n / lanes;
  float values[of_lane];

  /// Calls `body(value, row, column)` for those of this lane.
  template <class Body>
  void for_own(const Body& body) {
    auto first = static_cast<int>(threadIdx.x % lanes) * of_lane;
    for (int i = 0; i < of_lane; ++i)
      body(values[i], (first + i) / n, (first + i) % n);
  }
};

inline float __float_to_tf32(float value) {
  return __builtin_bit_cast(float, (__builtin_bit_cast(uint32_t, value) + 0x1000) & 0xffffe000);
}

// What was not rounded loses its last bits.
inline float element_of(float value) {
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, value) & 0xffffe000);
}

inline float element_of(__half value) {
  return __half2float(value);
}

inline float element_of(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

template <int m, int n, int k>
void fill_fragment(fragment<accumulator, m, n, k, float>& to, float value) {
  for (auto& each : to.values)
    each = value;
}

template <class Use, int m, int n, int k, class T, class Layout, class Stored>
void load_matrix_sync(fragment<Use, m, n, k, T, Layout>& to, const Stored* from, unsigned step) {
  troupe::emulated::meet_at_matrix(from, step * sizeof(Stored));
  for (int row = 0; row < to.rows; ++row)
    for (int column = 0; column < to.columns; ++column) {
      auto at = std::is_same_v<Layout, row_major> ? row * step + column : column * step + row;
      to.values[row][column] = element_of(from[at]);
    }
}

template <int m, int n, int k, class T, class LayoutA, class LayoutB>
void mma_sync(fragment<accumulator, m, n, k, float>& to,
              const fragment<matrix_a, m, n, k, T, LayoutA>& a,
              const fragment<matrix_b, m, n, k, T, LayoutB>& b,
              const fragment<accumulator, m, n, k, float>& sums) {
  to = sums;
  to.for_own([&](float& value, int row, int column) {
    for (int i = 0; i < k; ++i)
      value += a.values[row][i] * b.values[i][column];
  });
}

template <int m, int n, int k>
void store_matrix_sync(float* to, fragment<accumulator, m, n, k, float> from, unsigned step,
                       layout_t) {
  troupe::emulated::meet_at_matrix(to, step * sizeof(float));
  from.for_own([&](float value, int row, int column) { to[row * step + column] = value; });
}

} // namespace nvcuda::wmma
