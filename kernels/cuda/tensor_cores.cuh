// SPDX-License-Identifier: Apache-2.0
// Products of tiles by the units of a GPU that multiply small matrices of rounded operands.
#pragma once

#include "kernels/cuda/tiles.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <mma.h>
#include <type_traits>

namespace troupe::cuda {

// The formats that tensor cores multiply: how operands lie in memory, and how many inner elements
// the units take at a time. Source: NVIDIA, "CUDA C++ Programming Guide", warp matrix functions.

/// 8 bits of exponent, 10 of fraction. A number in the middle goes away from 0.
struct tf32_format {
  using operand = float;
  using element = nvcuda::wmma::precision::tf32;
  static constexpr int inner = 8;

  [[nodiscard]] __device__ operand operator()(float value) const {
    return nvcuda::wmma::__float_to_tf32(value);
  }
};

struct bf16_format {
  using operand = __nv_bfloat16;
  using element = operand;
  static constexpr int inner = 16;

  [[nodiscard]] __device__ operand operator()(float value) const {
    return __float2bfloat16_rn(value);
  }
};

struct f16_format {
  using operand = __half;
  using element = operand;
  static constexpr int inner = 16;

  [[nodiscard]] __device__ operand operator()(float value) const { return __float2half_rn(value); }
};

/// As `full_products`, of operands that are rounded to a format; sums are f32.
template <class Format>
class rounded_products {
  using operand = typename Format::operand;

  static constexpr unsigned size = tile_size<float>;

  /// Inner elements of two slabs that the block shares at a time.
  static constexpr unsigned strip_columns = 128 / sizeof(operand);

  /// Behind each row, so that rows do not begin in one bank.
  static constexpr unsigned gap = packet_bytes / sizeof(operand);

  /// Rows and columns that a warp multiplies by one call. It has so many rows of a tile and, of the
  /// pairs of such parts of its columns, one part each.
  static constexpr int part = 16;
  static constexpr unsigned warps = block_threads / 32, pairs = size / part / 2;
  static_assert(warps == 2 * size / part);

  using sums_part
    = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, part, part, Format::inner, float>;

  struct warp_sums {
    sums_part parts[pairs];
  };

public:
  using value = float;

  struct alignas(32) memory {
    union {
      struct {
        operand left[size][strip_columns + gap];
        operand right[size][strip_columns + gap];
      } strips;

      operand factor[size][size + gap];
      float results[size][size + own<float>];
    };

    operand tile[size][size + gap];
  };

  __device__ explicit rounded_products(memory& shared) : shared_(shared) {}

  /// By one instruction of a GPU: what it is wrong by is far less than a rounding.
  [[nodiscard]] __device__ static float exp(float value) {
    constexpr float log2_e = 1.44269504F;
    return std::exp2(log2_e * value);
  }

  [[nodiscard]] __device__ square<float> multiply_rows(const slab<float>& a,
                                                       const slab<float>& b) const {
    auto& strips = shared_.strips;
    auto sums = zeros();
    for (size_t first = 0; first < a.columns; first += strip_columns) {
      __syncthreads(); // all are done with the memory
      share<strip_columns>(a.columns_from(first), strips.left);
      share<strip_columns>(b.columns_from(first), strips.right);
      __syncthreads();
      add<row_major, col_major>(strips.left, strips.right, {a.columns - first, b.rows}, sums);
    }
    return collect(sums);
  }

  __device__ void add_product(const square<float>& tile, const slab<float>& b,
                              square<float>& sums) const {
    add_product_of<row_major>(tile, b, sums);
  }

  __device__ void add_transposed_product(const square<float>& tile, const slab<float>& b,
                                         square<float>& sums) const {
    add_product_of<col_major>(tile, b, sums);
  }

private:
  using row_major = nvcuda::wmma::row_major;
  using col_major = nvcuda::wmma::col_major;

  /// The part of a tile's product that exists: the rest is 0, and need not be worked out.
  struct product_limits {
    size_t inner;
    size_t columns;
  };

  [[nodiscard]] __device__ static warp_sums zeros() {
    warp_sums sums;
    for (auto& each : sums.parts)
      nvcuda::wmma::fill_fragment(each, 0.F);
    return sums;
  }

  [[nodiscard]] __device__ static unsigned first_row() { return threadIdx.x / 64 * part; }

  [[nodiscard]] __device__ static unsigned first_column(unsigned pair) {
    return (2 * pair + threadIdx.x / 32 % 2) * part;
  }

  /// Writes a tile's rows of a slab, rounded, where the block shares them.
  template <unsigned columns, unsigned step>
  __device__ static void share(const slab<float>& from, operand (&to)[size][step]) {
    if (!from.in_packets) {
#pragma unroll 1
      for (unsigned i = threadIdx.x; i < size * columns; i += block_threads)
        to[i / columns][i % columns] = Format{}(from.at(i / columns, i % columns));
      return;
    }
    constexpr unsigned packets = columns / own<float>;
#pragma unroll
    for (unsigned i = threadIdx.x; i < size * packets; i += block_threads)
      store(to[i / packets], i % packets,
            map_packet<operand>(Format{}, from.packet_at(i / packets, i % packets)));
  }

  __device__ static void share(const square<float>& own_part, operand (&to)[size][size + gap]) {
    for (unsigned i = 0; i < own<float>; ++i) {
      packet<float, own<float>> values;
      for (unsigned j = 0; j < own<float>; ++j)
        values.values[j] = own_part.values[i][j];
      store(to[own_row<float>() + i], own_column<float>() / own<float>,
            map_packet<operand>(Format{}, values));
    }
  }

  /// Where a part of a matrix begins that is stored by rows, or by columns.
  template <class Layout, unsigned step>
  [[nodiscard]] __device__ static const operand* at(const operand (&matrix)[size][step],
                                                    unsigned row, unsigned column) {
    return std::is_same_v<Layout, row_major> ? &matrix[row][column] : &matrix[column][row];
  }

  /// sums += left right.
  template <class LeftLayout, class RightLayout, unsigned left_step, unsigned right_step>
  __device__ static void add(const operand (&left)[size][left_step],
                             const operand (&right)[size][right_step], product_limits limits,
                             warp_sums& sums) {
    using namespace nvcuda::wmma;
    constexpr unsigned inner_max = std::is_same_v<RightLayout, row_major> ? size : right_step - gap;
    using element = typename Format::element;
    fragment<matrix_a, part, part, Format::inner, element, LeftLayout> a;
    fragment<matrix_b, part, part, Format::inner, element, RightLayout> b;
#pragma unroll
    for (unsigned k = 0; k < inner_max; k += Format::inner) {
      if (k >= limits.inner) break;
      load_matrix_sync(a, at<LeftLayout>(left, first_row(), k), left_step);
#pragma unroll
      for (unsigned pair = 0; pair < pairs; ++pair) {
        if (first_column(pair) >= limits.columns) break;
        load_matrix_sync(b, at<RightLayout>(right, k, first_column(pair)), right_step);
        mma_sync(sums.parts[pair], a, b, sums.parts[pair]);
      }
    }
  }

  /// This thread's part of what the warps have.
  [[nodiscard]] __device__ square<float> collect(const warp_sums& sums) const {
    __syncthreads(); // all are done with the memory
    for (unsigned pair = 0; pair < pairs; ++pair)
      nvcuda::wmma::store_matrix_sync(&shared_.results[first_row()][first_column(pair)],
                                      sums.parts[pair], size + own<float>,
                                      nvcuda::wmma::mem_row_major);
    __syncthreads();
    square<float> result;
    for (unsigned i = 0; i < own<float>; ++i) {
      auto values
        = load<own<float>>(shared_.results[own_row<float>() + i], own_column<float>() / own<float>);
      for (unsigned j = 0; j < own<float>; ++j)
        result.values[i][j] = values.values[j];
    }
    return result;
  }

  template <class TileLayout>
  __device__ void add_product_of(const square<float>& tile, const slab<float>& b,
                                 square<float>& sums) const {
    __syncthreads(); // all are done with the memory
    share(tile, shared_.tile);
    share<size>(b, shared_.factor);
    __syncthreads();
    auto products = zeros();
    add<TileLayout, row_major>(shared_.tile, shared_.factor, {b.rows, b.columns}, products);
    auto collected = collect(products);
    for (unsigned i = 0; i < own<float>; ++i)
      for (unsigned j = 0; j < own<float>; ++j)
        sums.values[i][j] += collected.values[i][j];
  }

  memory& shared_;
};

} // namespace troupe::cuda
