// SPDX-License-Identifier: Apache-2.0
// Attention on a GPU, by tiles of the weights: a block of threads has one in its registers at a
// time, and memory that they share holds what it is the product of.
#include "kernels/cuda/packet.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/math/attention.hpp"
#include "kernels/tensor/host_device.hpp"
#include "kernels/tensor/vector_math.hpp"
#include "messages/assert.hpp"

#include <cmath>
#include <limits>

namespace troupe::cuda {

namespace {

// Source: Dao, "FlashAttention-2", 2023, algorithms 1 and 2; but a block for the gradients of
// queries and one for those of keys and values work out the same weights, so that no
// two blocks add to one number, in an order that changes from run to run.

/// Rows and columns of a block's threads, each of which has as many rows and columns of a tile.
inline constexpr unsigned side = 16;
static_assert(side * side == block_threads && side == sum_lanes);

template <class T>
inline constexpr unsigned own = packet_bytes / sizeof(T);

/// Queries and keys of a tile.
template <class T>
inline constexpr size_t tile_size = side* own<T>;

/// Inner elements of a product that the block shares at a time.
inline constexpr unsigned strip_rows = 16;

/// A row of a tile in shared memory: a packet for each thread of a side, and one beyond, which
/// keeps columns out of one bank.
template <class T>
struct shared_row {
  packet<T, own<T>> packets[side + 1];

  [[nodiscard]] __device__ T& operator[](unsigned column) {
    return packets[column / own<T>].values[column % own<T>];
  }
};

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

/// Some columns of some positions; 0 beyond them.
template <class T>
struct slab {
  const T* data;
  size_t step; ///< Elements from a position to the next.
  size_t rows;
  size_t columns;

  [[nodiscard]] __device__ T at(size_t row, size_t column) const {
    return row < rows && column < columns ? data[row * step + column] : T{0};
  }

  [[nodiscard]] __device__ slab columns_from(size_t first) const {
    return {data + first, step, rows, columns - first};
  }
};

/// sums += left^T right, for a strip of inner elements.
template <class T>
__device__ void add_strip(const shared_row<T>* left, const shared_row<T>* right, square<T>& sums) {
#pragma unroll
  for (unsigned k = 0; k < strip_rows; ++k) {
    auto a = left[k].packets[threadIdx.x / side];
    auto b = right[k].packets[threadIdx.x % side];
    for (unsigned i = 0; i < own<T>; ++i)
      for (unsigned j = 0; j < own<T>; ++j)
        sums.values[i][j] = std::fma(a.values[i], b.values[j], sums.values[i][j]);
  }
}

/// Two strips that the block shares.
template <class T>
struct shared_strips {
  shared_row<T>* left;
  shared_row<T>* right;
};

/// The products of all rows of `a` and all rows of `b`.
template <class T>
[[nodiscard]] __device__ square<T> multiply_rows(const slab<T>& a, const slab<T>& b,
                                                 const shared_strips<T>& strips) {
  square<T> sums;
  for (size_t first = 0; first < a.columns; first += strip_rows) {
    __syncthreads(); // all are done with the strips
    for (unsigned i = threadIdx.x; i < tile_size<T> * strip_rows; i += block_threads) {
      unsigned row = i / strip_rows, column = i % strip_rows;
      strips.left[column][row] = a.at(row, first + column);
      strips.right[column][row] = b.at(row, first + column);
    }
    __syncthreads();
    add_strip(strips.left, strips.right, sums);
  }
  return sums;
}

/// sums += tile^T b. @param tile Shared, with a row for each row of b; the block need not have met
/// since it was written.
template <class T>
__device__ void add_product(const shared_row<T>* tile, const slab<T>& b, shared_row<T>* strip,
                            square<T>& sums) {
  for (unsigned first = 0; first < tile_size<T> && first < b.rows; first += strip_rows) {
    __syncthreads();
    for (unsigned i = threadIdx.x; i < tile_size<T> * strip_rows; i += block_threads) {
      unsigned row = i / tile_size<T>, column = i % tile_size<T>;
      strip[row][column] = b.at(first + row, column);
    }
    __syncthreads();
    add_strip(tile + first, strip, sums);
  }
}

/// How the work is shared: a block has some positions of a head, and as many columns of it as a
/// tile has.
template <class T>
struct attention_grid {
  attention_extents extents;
  T scale;
  size_t heads;  ///< Of all sequences.
  size_t tiles;  ///< Of the positions of a sequence.
  size_t panels; ///< Of the columns of a head.

  explicit attention_grid(const attention_extents& of)
    : extents(of), scale(static_cast<T>(of.scale())), heads(of.batch * of.heads),
      tiles((of.context + tile_size<T> - 1) / tile_size<T>),
      panels((of.head_width + tile_size<T> - 1) / tile_size<T>) {}

  [[nodiscard]] TROUPE_HOST_DEVICE size_t blocks() const { return heads * tiles * panels; }
};

/// What one block works on.
template <class T>
struct attention_place {
  size_t head;         ///< Of all.
  size_t first;        ///< Position of the tile.
  size_t first_column; ///< Of the panel.
  size_t context;
  size_t head_width;
  size_t width;
  size_t sequence; ///< Its position 0, among those of all.
  size_t column;   ///< Where the head begins in a position.

  __device__ attention_place(const attention_grid<T>& of, size_t block)
    : head(block / of.panels % of.heads), first(block / of.panels / of.heads * tile_size<T>),
      first_column(block % of.panels * tile_size<T>), context(of.extents.context),
      head_width(of.extents.head_width), width(of.extents.heads * head_width),
      sequence(head / of.extents.heads * context), column(head % of.extents.heads * head_width) {}

  /// A part (0 queries, 1 keys, 2 values) of the positions of a tile.
  [[nodiscard]] __device__ slab<T> part(const T* packed, size_t which, size_t position) const {
    return {packed + ((sequence + position) * 3 + which) * width + column, 3 * width,
            context - position, head_width};
  }

  /// The head in an output.
  [[nodiscard]] __device__ slab<T> of_output(const T* output, size_t position) const {
    return {output + (sequence + position) * width + column, width, context - position, head_width};
  }

  /// Calls `body(at, i, j)` for this thread's elements of the panel that are there, which begin
  /// `at` in rows `step` apart.
  template <class Body>
  __device__ void for_own(size_t step, const Body& body) const {
    for (unsigned i = 0; i < own<T>; ++i)
      for (unsigned j = 0; j < own<T>; ++j) {
        size_t row = first + own_row<T>() + i, from = first_column + own_column<T>() + j;
        if (row < context && from < head_width) body((sequence + row) * step + column + from, i, j);
      }
  }

  /// Where sums of a query are kept.
  [[nodiscard]] __device__ size_t sums_of(size_t query) const { return head * context + query; }
};

template <class T>
__global__ void __launch_bounds__(block_threads)
  attention_kernel(attention_grid<T> grid, const T* packed, T* output, T* log_sums) {
  TROUPE_SHARED(shared_row<T>, left, [strip_rows]);
  TROUPE_SHARED(shared_row<T>, right, [strip_rows]);
  TROUPE_SHARED(shared_row<T>, weights, [tile_size<T>]); // by key, so that queries lie side by side
  auto largest_of = [](T a, T b) { return b > a ? b : a; };
  auto sum_of = [](T a, T b) { return a + b; };
  for (size_t block = blockIdx.x; block < grid.blocks(); block += gridDim.x) {
    // Those with most keys come first, so that the last blocks to end are short ones.
    const attention_place<T> at{grid, grid.blocks() - 1 - block};
    square<T> sums;
    T largest[own<T>], divisors[own<T>]{};
    for (auto& value : largest)
      value = -std::numeric_limits<T>::infinity();
    for (size_t first_key = 0; first_key <= at.first; first_key += tile_size<T>) {
      auto scores
        = multiply_rows(at.part(packed, 0, at.first), at.part(packed, 1, first_key), {left, right});
      for (unsigned i = 0; i < own<T>; ++i) {
        T found = largest[i];
        for (unsigned j = 0; j < own<T>; ++j) {
          auto& score = scores.values[i][j];
          bool is_seen = first_key + own_column<T>() + j <= at.first + own_row<T>() + i;
          score = is_seen ? score * grid.scale : -std::numeric_limits<T>::infinity();
          found = largest_of(found, score);
        }
        found = join_row(found, largest_of);
        T correction = cpu::detail::exp(largest[i] - found), sum = 0;
        largest[i] = found;
        for (unsigned j = 0; j < own<T>; ++j) {
          T weight = cpu::detail::exp(scores.values[i][j] - found);
          weights[own_column<T>() + j][own_row<T>() + i] = weight;
          sum += weight;
          sums.values[i][j] *= correction;
        }
        divisors[i] = divisors[i] * correction + join_row(sum, sum_of);
      }
      add_product(weights, at.part(packed, 2, first_key).columns_from(at.first_column), right,
                  sums);
    }
    at.for_own(at.width, [&](size_t to, unsigned i, unsigned j) {
      output[to] = sums.values[i][j] / divisors[i];
    });
    for (unsigned i = 0; i < own<T>; ++i) {
      auto query = at.first + own_row<T>() + i;
      if (at.first_column == 0 && own_column<T>() == 0 && query < at.context)
        log_sums[at.sums_of(query)] = largest[i] + std::log(divisors[i]);
    }
  }
}

/// What the backward pass is given, on the device.
template <class T>
struct attention_memory {
  const T* packed;
  const T* output;
  const T* log_sums;
  const T* output_gradient;
  T* means; ///< As `log_sums`: of the gradients of a query's weights, by the weights.
  T* packed_gradient;
};

template <class T>
__global__ void __launch_bounds__(block_threads)
  attention_means_kernel(attention_extents extents, size_t rows, attention_memory<T> in) {
  for_rows(rows, extents.head_width, [=](size_t row, size_t columns) {
    size_t head = row / extents.context, width = extents.heads * extents.head_width;
    size_t position = head / extents.heads * extents.context + row % extents.context;
    size_t from = position * width + head % extents.heads * extents.head_width;
    T mean = sum_row<T>(
      columns, [=](size_t i) { return in.output[from + i] * in.output_gradient[from + i]; });
    if (columns != 0 && lane_of_row() == 0) in.means[row] = mean;
  });
}

/// Weights of a tile of queries and keys, and the gradients of their scores before scaling.
template <class T>
struct differentiated_tile {
  square<T> weights;
  square<T> gradients;

  __device__ differentiated_tile(const attention_grid<T>& grid, const attention_memory<T>& in,
                                 const attention_place<T>& at, size_t first_query, size_t first_key,
                                 const shared_strips<T>& strips)
    : weights(
      multiply_rows(at.part(in.packed, 0, first_query), at.part(in.packed, 1, first_key), strips)),
      gradients(multiply_rows(at.of_output(in.output_gradient, first_query),
                              at.part(in.packed, 2, first_key), strips)) {
    for (unsigned i = 0; i < own<T>; ++i) {
      auto query = first_query + own_row<T>() + i;
      bool is_there = query < at.context;
      T log_sum = is_there ? in.log_sums[at.sums_of(query)] : T{0};
      T mean = is_there ? in.means[at.sums_of(query)] : T{0};
      for (unsigned j = 0; j < own<T>; ++j) {
        auto& weight = weights.values[i][j];
        auto& gradient = gradients.values[i][j];
        bool is_seen = is_there && first_key + own_column<T>() + j <= query;
        weight = is_seen ? cpu::detail::exp(weight * grid.scale - log_sum) : T{0};
        gradient = is_seen ? weight * (gradient - mean) * grid.scale : T{0};
      }
    }
  }
};

template <class T>
__global__ void __launch_bounds__(block_threads)
  query_gradient_kernel(attention_grid<T> grid, attention_memory<T> in) {
  TROUPE_SHARED(shared_row<T>, left, [strip_rows]);
  TROUPE_SHARED(shared_row<T>, right, [strip_rows]);
  TROUPE_SHARED(shared_row<T>, gradients, [tile_size<T>]); // by key
  for (size_t block = blockIdx.x; block < grid.blocks(); block += gridDim.x) {
    const attention_place<T> at{grid, grid.blocks() - 1 - block};
    square<T> sums;
    for (size_t first_key = 0; first_key <= at.first; first_key += tile_size<T>) {
      const differentiated_tile<T> tile{grid, in, at, at.first, first_key, {left, right}};
      for (unsigned i = 0; i < own<T>; ++i)
        for (unsigned j = 0; j < own<T>; ++j)
          gradients[own_column<T>() + j][own_row<T>() + i] = tile.gradients.values[i][j];
      add_product(gradients, at.part(in.packed, 1, first_key).columns_from(at.first_column), right,
                  sums);
    }
    at.for_own(3 * at.width, [&](size_t to, unsigned i, unsigned j) {
      in.packed_gradient[to] = sums.values[i][j];
    });
  }
}

template <class T>
__global__ void __launch_bounds__(block_threads, 2)
  key_gradient_kernel(attention_grid<T> grid, attention_memory<T> in) {
  TROUPE_SHARED(shared_row<T>, left, [strip_rows]);
  TROUPE_SHARED(shared_row<T>, right, [strip_rows]);
  TROUPE_SHARED(shared_row<T>, weights, [tile_size<T>]); // by query
  TROUPE_SHARED(shared_row<T>, gradients, [tile_size<T>]);
  for (size_t block = blockIdx.x; block < grid.blocks(); block += gridDim.x) {
    const attention_place<T> at{grid, block};
    square<T> by_key, by_value;
    for (size_t query = at.first; query < at.context; query += tile_size<T>) {
      const differentiated_tile<T> tile{grid, in, at, query, at.first, {left, right}};
      for (unsigned i = 0; i < own<T>; ++i)
        for (unsigned j = 0; j < own<T>; ++j) {
          weights[own_row<T>() + i][own_column<T>() + j] = tile.weights.values[i][j];
          gradients[own_row<T>() + i][own_column<T>() + j] = tile.gradients.values[i][j];
        }
      add_product(weights, at.of_output(in.output_gradient, query).columns_from(at.first_column),
                  right, by_value);
      add_product(gradients, at.part(in.packed, 0, query).columns_from(at.first_column), right,
                  by_key);
    }
    at.for_own(3 * at.width, [&](size_t to, unsigned i, unsigned j) {
      in.packed_gradient[to + at.width] = by_key.values[i][j];
      in.packed_gradient[to + 2 * at.width] = by_value.values[i][j];
    });
  }
}

} // namespace

template <class T>
void causal_self_attention(const context& on, const attention_extents& extents,
                           std::span<const T> packed, std::span<T> output, std::span<T> log_sums) {
  auto elements = extents.positions() * extents.width();
  auto rows = extents.positions() * extents.heads;
  TROUPE_ASSERT(packed.size() == 3 * elements, packed.size(), elements);
  TROUPE_ASSERT(output.size() == elements, output.size(), elements);
  TROUPE_ASSERT(log_sums.size() == rows, log_sums.size(), rows);
  if (rows == 0) return;
  const attention_grid<T> grid{extents};
  launch(on, blocks_for(grid.blocks(), 1), block_threads, attention_kernel<T>, grid, packed.data(),
         output.data(), log_sums.data());
}

template <class T>
void causal_self_attention_gradient(const context& on, const attention_extents& extents,
                                    std::span<const T> packed, const attention_outcome<T>& forward,
                                    std::span<const T> output_gradient,
                                    std::span<T> packed_gradient) {
  auto elements = extents.positions() * extents.width();
  auto rows = extents.positions() * extents.heads;
  TROUPE_ASSERT(packed.size() == 3 * elements, packed.size(), elements);
  TROUPE_ASSERT(forward.output.size() == elements, forward.output.size(), elements);
  TROUPE_ASSERT(forward.log_sums.size() == rows, forward.log_sums.size(), rows);
  TROUPE_ASSERT(output_gradient.size() == elements, output_gradient.size(), elements);
  TROUPE_ASSERT(packed_gradient.size() == 3 * elements, packed_gradient.size(), elements);
  if (rows == 0) return;
  auto means = on.workspace(rows * sizeof(T));
  if (means == nullptr) return;
  const attention_memory<T> memory{packed.data(),
                                   forward.output.data(),
                                   forward.log_sums.data(),
                                   output_gradient.data(),
                                   reinterpret_cast<T*>(means.get()),
                                   packed_gradient.data()};
  launch(on, blocks_for(rows, rows_at_once), block_threads, attention_means_kernel<T>, extents,
         rows, memory);
  const attention_grid<T> grid{extents};
  for (auto* kernel : {query_gradient_kernel<T>, key_gradient_kernel<T>})
    launch(on, blocks_for(grid.blocks(), 1), block_threads, kernel, grid, memory);
}

template void causal_self_attention(const context&, const attention_extents&,
                                    std::span<const float>, std::span<float>, std::span<float>);
template void causal_self_attention(const context&, const attention_extents&,
                                    std::span<const double>, std::span<double>, std::span<double>);
template void causal_self_attention_gradient(const context&, const attention_extents&,
                                             std::span<const float>,
                                             const attention_outcome<float>&,
                                             std::span<const float>, std::span<float>);
template void causal_self_attention_gradient(const context&, const attention_extents&,
                                             std::span<const double>,
                                             const attention_outcome<double>&,
                                             std::span<const double>, std::span<double>);

} // namespace troupe::cuda
