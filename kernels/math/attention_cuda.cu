// SPDX-License-Identifier: Apache-2.0
// Attention on a GPU, by tiles of the weights: a block of threads has one in its registers at a
// time, and the factors of its product in memory that the threads share.
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/tensor_cores.cuh"
#include "kernels/cuda/tiles.cuh"
#include "kernels/math/attention.hpp"
#include "kernels/tensor/host_device.hpp"
#include "messages/errors/assert.hpp"

#include <cmath>
#include <limits>
#include <type_traits>

namespace troupe::cuda {

namespace {

// Source: Dao, "FlashAttention-2", 2023, algorithms 1 and 2; but a block for the gradients of
// queries and one for those of keys and values work out the same weights, so that no
// two blocks add to one number, in an order that changes from run to run.

/// How the work is shared: a block has some positions of a head, and as many columns of it as a
/// tile has.
template <class T>
struct attention_grid {
  attention_form form;
  T scale;
  size_t heads;    ///< Heads of all sequences.
  size_t tiles;    ///< Tiles that a sequence's positions make.
  size_t panels;   ///< Panels that a head's columns make.
  bool in_packets; ///< As in `slab`.

  /// @param arrays The arrays that hold the heads.
  template <class... Arrays>
  explicit attention_grid(const attention_form& extents, Arrays... arrays)
    : form(extents), scale(static_cast<T>(form.scale())), heads(form.batch * form.heads),
      tiles((form.context + tile_size<T> - 1) / tile_size<T>),
      panels((form.head_width + tile_size<T> - 1) / tile_size<T>),
      in_packets(form.head_width % own<T> == 0 && are_aligned(packet_bytes, arrays...)) {}

  [[nodiscard]] TROUPE_HOST_DEVICE size_t blocks() const { return heads * tiles * panels; }
};

/// The part of the work that one block does.
template <class T>
struct attention_place {
  size_t head;         ///< Its number among the heads of all sequences.
  size_t first;        ///< First position of the tile.
  size_t first_column; ///< First column of the panel.
  size_t context;
  size_t head_width;
  size_t width;
  size_t sequence; ///< Its position 0, among those of all.
  size_t column;   ///< Where the head begins in a position.
  bool in_packets;

  __device__ attention_place(const attention_grid<T>& grid, size_t block)
    : head(block / grid.panels % grid.heads),
      first(block / grid.panels / grid.heads * tile_size<T>),
      first_column(block % grid.panels * tile_size<T>), context(grid.form.context),
      head_width(grid.form.head_width), width(grid.form.heads * head_width),
      sequence(head / grid.form.heads * context), column(head % grid.form.heads * head_width),
      in_packets(grid.in_packets) {}

  /// A part (0 queries, 1 keys, 2 values) of the positions of a tile.
  [[nodiscard]] __device__ slab<T> part(const T* packed, size_t index, size_t position) const {
    return {packed + ((sequence + position) * 3 + index) * width + column, 3 * width,
            context - position, head_width, in_packets};
  }

  /// The head in an output.
  [[nodiscard]] __device__ slab<T> of_output(const T* output, size_t position) const {
    return {output + (sequence + position) * width + column, width, context - position, head_width,
            in_packets};
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

/// @param Products `full_products` or `rounded_products`.
template <class Products, class T = typename Products::value>
__global__ void __launch_bounds__(block_threads)
  attention_kernel(attention_grid<T> grid, const T* packed, T* output, T* log_sums) {
  TROUPE_SHARED(typename Products::memory, shared);
  const Products products{shared};
  auto largest_of = [](T a, T b) { return b > a ? b : a; };
  auto sum_of = [](T a, T b) { return a + b; };
  for (size_t block = blockIdx.x; block < grid.blocks(); block += gridDim.x) {
    // Blocks with the most keys come first, so that the last blocks to end are short ones.
    const attention_place<T> at{grid, grid.blocks() - 1 - block};
    square<T> sums;
    T largest[own<T>], divisors[own<T>]{};
    for (auto& value : largest)
      value = -std::numeric_limits<T>::infinity();
    for (size_t first_key = 0; first_key <= at.first; first_key += tile_size<T>) {
      auto scores
        = products.multiply_rows(at.part(packed, 0, at.first), at.part(packed, 1, first_key));
      for (unsigned i = 0; i < own<T>; ++i) {
        T found = largest[i];
        for (unsigned j = 0; j < own<T>; ++j) {
          auto& score = scores.values[i][j];
          bool is_seen = first_key + own_column<T>() + j <= at.first + own_row<T>() + i;
          score = is_seen ? score * grid.scale : -std::numeric_limits<T>::infinity();
          found = largest_of(found, score);
        }
        found = join_row(found, largest_of);
        T correction = Products::exp(largest[i] - found), sum = 0;
        largest[i] = found;
        for (unsigned j = 0; j < own<T>; ++j) {
          auto& weight = scores.values[i][j];
          weight = Products::exp(weight - found);
          sum += weight;
          sums.values[i][j] *= correction;
        }
        divisors[i] = divisors[i] * correction + join_row(sum, sum_of);
      }
      products.add_product(scores, at.part(packed, 2, first_key).columns_from(at.first_column),
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

/// The arrays of the backward pass, on the device.
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
  attention_means_kernel(attention_form form, size_t rows, attention_memory<T> in) {
  for_rows(rows, form.head_width, [=](size_t row, size_t columns) {
    size_t head = row / form.context, width = form.heads * form.head_width;
    size_t position = head / form.heads * form.context + row % form.context;
    size_t from = position * width + head % form.heads * form.head_width;
    T mean = sum_row<T>(columns, [=](size_t i) {
      return in.output[from + i] * rounded(in.output_gradient[from + i], form.precision);
    });
    if (columns != 0 && lane_of_row() == 0) in.means[row] = mean;
  });
}

/// Weights of a tile of queries and keys, and the gradients of their scores before scaling.
template <class T>
struct differentiated_tile {
  square<T> weights;
  square<T> gradients;

  template <class Products>
  __device__ differentiated_tile(const attention_grid<T>& grid, const attention_memory<T>& in,
                                 const attention_place<T>& at, size_t first_query, size_t first_key,
                                 const Products& products)
    : weights(
      products.multiply_rows(at.part(in.packed, 0, first_query), at.part(in.packed, 1, first_key))),
      gradients(products.multiply_rows(at.of_output(in.output_gradient, first_query),
                                       at.part(in.packed, 2, first_key))) {
    for (unsigned i = 0; i < own<T>; ++i) {
      auto query = first_query + own_row<T>() + i;
      bool is_there = query < at.context;
      T log_sum = is_there ? in.log_sums[at.sums_of(query)] : T{0};
      T mean = is_there ? in.means[at.sums_of(query)] : T{0};
      for (unsigned j = 0; j < own<T>; ++j) {
        auto& weight = weights.values[i][j];
        auto& gradient = gradients.values[i][j];
        bool is_seen = is_there && first_key + own_column<T>() + j <= query;
        weight = is_seen ? Products::exp(weight * grid.scale - log_sum) : T{0};
        gradient = is_seen ? weight * (gradient - mean) * grid.scale : T{0};
      }
    }
  }
};

template <class Products, class T = typename Products::value>
__global__ void __launch_bounds__(block_threads)
  query_gradient_kernel(attention_grid<T> grid, attention_memory<T> in) {
  TROUPE_SHARED(typename Products::memory, shared);
  const Products products{shared};
  for (size_t block = blockIdx.x; block < grid.blocks(); block += gridDim.x) {
    const attention_place<T> at{grid, grid.blocks() - 1 - block};
    square<T> sums;
    for (size_t first_key = 0; first_key <= at.first; first_key += tile_size<T>) {
      const differentiated_tile<T> tile{grid, in, at, at.first, first_key, products};
      products.add_product(tile.gradients,
                           at.part(in.packed, 1, first_key).columns_from(at.first_column), sums);
    }
    at.for_own(3 * at.width, [&](size_t to, unsigned i, unsigned j) {
      in.packed_gradient[to] = sums.values[i][j];
    });
  }
}

template <class Products, class T = typename Products::value>
__global__ void __launch_bounds__(block_threads, 2)
  key_gradient_kernel(attention_grid<T> grid, attention_memory<T> in) {
  TROUPE_SHARED(typename Products::memory, shared);
  const Products products{shared};
  for (size_t block = blockIdx.x; block < grid.blocks(); block += gridDim.x) {
    const attention_place<T> at{grid, block};
    square<T> by_key, by_value;
    for (size_t query = at.first; query < at.context; query += tile_size<T>) {
      const differentiated_tile<T> tile{grid, in, at, query, at.first, products};
      products.add_transposed_product(
        tile.weights, at.of_output(in.output_gradient, query).columns_from(at.first_column),
        by_value);
      products.add_transposed_product(
        tile.gradients, at.part(in.packed, 0, query).columns_from(at.first_column), by_key);
    }
    at.for_own(3 * at.width, [&](size_t to, unsigned i, unsigned j) {
      in.packed_gradient[to + at.width] = by_key.values[i][j];
      in.packed_gradient[to + 2 * at.width] = by_value.values[i][j];
    });
  }
}

/// Calls `body` with the kind of products for T of such a precision.
template <class T, class Body>
void with_products(product_precision precision, const Body& body) {
  TROUPE_ASSERT(has_precision(dtype_of<T>, precision), to_string(precision));
  if constexpr (std::is_same_v<T, float>) {
    switch (precision) {
    case product_precision::full:
      break;
    case product_precision::tf32:
      return body(std::type_identity<rounded_products<tf32_format>>{});
    case product_precision::bf16:
      return body(std::type_identity<rounded_products<bf16_format>>{});
    case product_precision::f16:
      return body(std::type_identity<rounded_products<f16_format>>{});
    }
  }
  body(std::type_identity<full_products<T>>{});
}

} // namespace

template <class T>
void causal_self_attention(const context& on, const attention_form& form, std::span<const T> packed,
                           std::span<T> output, std::span<T> log_sums) {
  troupe::detail::check_sizes(form, packed.size(), output.size(), log_sums.size());
  if (log_sums.empty()) return;
  const attention_grid<T> grid{form, packed.data()};
  with_products<T>(form.precision, [&]<class Products>(std::type_identity<Products>) {
    launch(on, blocks_for(grid.blocks(), 1), block_threads, attention_kernel<Products>, grid,
           packed.data(), output.data(), log_sums.data());
  });
}

template <class T>
void causal_self_attention_gradient(const context& on, const attention_form& form,
                                    std::span<const T> packed, const attention_outcome<T>& forward,
                                    std::span<const T> output_gradient,
                                    std::span<T> packed_gradient) {
  auto rows = forward.log_sums.size();
  troupe::detail::check_sizes(form, packed.size(), forward.output.size(), rows);
  troupe::detail::check_sizes(form, packed_gradient.size(), output_gradient.size(), rows);
  if (rows == 0) return;
  auto means = on.workspace(rows * sizeof(T));
  if (means == nullptr) return;
  const attention_memory<T> memory{packed.data(),
                                   forward.output.data(),
                                   forward.log_sums.data(),
                                   output_gradient.data(),
                                   reinterpret_cast<T*>(means.get()),
                                   packed_gradient.data()};
  launch(on, blocks_for(rows, rows_at_once), block_threads, attention_means_kernel<T>, form, rows,
         memory);
  const attention_grid<T> grid{form, packed.data(), output_gradient.data()};
  with_products<T>(form.precision, [&]<class Products>(std::type_identity<Products>) {
    for (auto* kernel : {query_gradient_kernel<Products>, key_gradient_kernel<Products>})
      launch(on, blocks_for(grid.blocks(), 1), block_threads, kernel, grid, memory);
  });
}

template void causal_self_attention(const context&, const attention_form&, std::span<const float>,
                                    std::span<float>, std::span<float>);
template void causal_self_attention(const context&, const attention_form&, std::span<const double>,
                                    std::span<double>, std::span<double>);
template void causal_self_attention_gradient(const context&, const attention_form&,
                                             std::span<const float>,
                                             const attention_outcome<float>&,
                                             std::span<const float>, std::span<float>);
template void causal_self_attention_gradient(const context&, const attention_form&,
                                             std::span<const double>,
                                             const attention_outcome<double>&,
                                             std::span<const double>, std::span<double>);

} // namespace troupe::cuda
