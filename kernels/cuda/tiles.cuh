// SPDX-License-Identifier: Apache-2.0
// Products of tiles on a GPU: a block of threads makes one together, and each thread has some of
// its rows and columns in registers.
#pragma once

#include "kernels/cuda/packet.cuh"
#include "kernels/tensor/vector_math.hpp"

#include <cmath>
#include <cstddef>

namespace troupe::cuda {

/// Rows and columns of a block's threads, each of which has as many rows and columns of a tile.
inline constexpr unsigned side = 16;
static_assert(side * side == block_threads);

template <class T>
inline constexpr unsigned own = packet_bytes / sizeof(T);

/// Rows and columns of a tile.
template <class T>
inline constexpr size_t tile_size = side* own<T>;

/// This thread's part of a tile.
template <class T>
struct square {
  T values[own<T>][own<T>]{};
};

template <class T>
[[nodiscard]] __device__ unsigned own_row() {
  return threadIdx.x / side * own<T>;
}

template <class T>
[[nodiscard]] __device__ unsigned own_column() {
  return threadIdx.x % side * own<T>;
}

/// Some columns of some rows of a matrix; 0 beyond them.
template <class T>
struct slab {
  const T* data;
  size_t step; ///< Elements from a row to the next.
  size_t rows;
  size_t columns;
  bool in_packets; ///< Whether each row is of whole packets, which lie where packets may.

  [[nodiscard]] __device__ T at(size_t row, size_t column) const {
    return row < rows && column < columns ? data[row * step + column] : T{0};
  }

  /// Packet `i` of a row. @pre in_packets
  [[nodiscard]] __device__ packet<T, own<T>> packet_at(size_t row, size_t i) const {
    if (row < rows && i * own<T> < columns) return load<own<T>>(data + row * step, i);
    return {};
  }

  /// @pre first % own<T> == 0
  [[nodiscard]] __device__ slab columns_from(size_t first) const {
    return {data + first, step, rows, columns - first, in_packets};
  }
};

/// Products of operands as they are. All threads of a block call each function together.
template <class T>
class full_products {
  /// Inner elements of a product that the block shares at a time.
  static constexpr unsigned strip_rows = 16;

  /// A row of a tile in shared memory: a packet for each thread of a side, and one beyond, which
  /// keeps columns out of one bank.
  struct shared_row {
    packet<T, own<T>> packets[side + 1];

    [[nodiscard]] __device__ T& operator[](unsigned column) {
      return packets[column / own<T>].values[column % own<T>];
    }
  };

public:
  using value = T;

  /// Memory that the threads of a block share.
  struct memory {
    shared_row left[strip_rows];
    shared_row right[strip_rows];
    shared_row tile[tile_size<T>]; ///< By inner element.
  };

  __device__ explicit full_products(memory& shared) : shared_(shared) {}

  /// With the bits of the CPU.
  [[nodiscard]] __device__ static T exp(T value) { return cpu::detail::exp(value); }

  /// The products of all rows of `a` and all rows of `b`.
  [[nodiscard]] __device__ square<T> multiply_rows(const slab<T>& a, const slab<T>& b) const {
    square<T> sums;
    for (size_t first = 0; first < a.columns; first += strip_rows) {
      __syncthreads(); // all are done with the strips
      for (unsigned i = threadIdx.x; i < tile_size<T> * strip_rows; i += block_threads) {
        unsigned row = i / strip_rows, column = i % strip_rows;
        shared_.left[column][row] = a.at(row, first + column);
        shared_.right[column][row] = b.at(row, first + column);
      }
      __syncthreads();
      add_strip(shared_.left, sums);
    }
    return sums;
  }

  /// sums += tile b, with a column of the tile for each row of `b`.
  __device__ void add_product(const square<T>& tile, const slab<T>& b, square<T>& sums) const {
    __syncthreads(); // all are done with the tile
    for (unsigned i = 0; i < own<T>; ++i)
      for (unsigned j = 0; j < own<T>; ++j)
        shared_.tile[own_column<T>() + j][own_row<T>() + i] = tile.values[i][j];
    add_product_of_shared(b, sums);
  }

  /// sums += tile^T b, with a row of the tile for each row of `b`.
  __device__ void add_transposed_product(const square<T>& tile, const slab<T>& b,
                                         square<T>& sums) const {
    __syncthreads();
    for (unsigned i = 0; i < own<T>; ++i)
      for (unsigned j = 0; j < own<T>; ++j)
        shared_.tile[own_row<T>() + i][own_column<T>() + j] = tile.values[i][j];
    add_product_of_shared(b, sums);
  }

private:
  /// sums += left^T right, for a strip of inner elements.
  __device__ void add_strip(const shared_row* left, square<T>& sums) const {
#pragma unroll
    for (unsigned k = 0; k < strip_rows; ++k) {
      auto a = left[k].packets[threadIdx.x / side];
      auto b = shared_.right[k].packets[threadIdx.x % side];
      for (unsigned i = 0; i < own<T>; ++i)
        for (unsigned j = 0; j < own<T>; ++j)
          sums.values[i][j] = std::fma(a.values[i], b.values[j], sums.values[i][j]);
    }
  }

  __device__ void add_product_of_shared(const slab<T>& b, square<T>& sums) const {
    for (unsigned first = 0; first < tile_size<T> && first < b.rows; first += strip_rows) {
      __syncthreads();
      for (unsigned i = threadIdx.x; i < tile_size<T> * strip_rows; i += block_threads) {
        unsigned row = i / tile_size<T>, column = i % tile_size<T>;
        shared_.right[row][column] = b.at(first + row, column);
      }
      __syncthreads();
      add_strip(shared_.tile + first, sums);
    }
  }

  memory& shared_;
};

} // namespace troupe::cuda
