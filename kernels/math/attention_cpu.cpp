// SPDX-License-Identifier: Apache-2.0
// Attention by tiles of the weights, each of which stays in the cache between its products.
#include "kernels/math/attention.hpp"

#include "kernels/math/matmul_blocks.hpp"
#include "kernels/tensor/parallel.hpp"
#include "kernels/tensor/vector_math.hpp"
#include "messages/errors/assert.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace troupe::cpu {

namespace {

/// Queries and keys of a tile: a power of 2 that makes products of some use, and leaves two tiles
/// of f64 in 64 KiB.
constexpr size_t tile_size = 64;

template <class T>
using attention_tile = std::array<T, tile_size * tile_size>;

/// A row of a tile, in vectors that the compiler knows the length of.
template <class T>
std::span<T> row_of(attention_tile<T>& tile, size_t row, size_t columns) {
  return std::span<T>{tile}.subspan(row * tile_size, columns);
}

/// The same in whole vectors; elements behind `columns` mean nothing yet.
template <class T>
std::span<T> in_vectors(attention_tile<T>& tile, size_t row, size_t columns) {
  return row_of(tile, row, (columns + detail::lanes - 1) / detail::lanes * detail::lanes);
}

/// Where a head of a sequence lies in `packed`, or in its gradient.
template <class T>
struct packed_head {
  T* queries;
  size_t width;

  [[nodiscard]] size_t row_step() const { return 3 * width; }

  [[nodiscard]] detail::matrix_block<T> query(size_t position) const { return part(0, position); }

  [[nodiscard]] detail::matrix_block<T> key(size_t position) const { return part(1, position); }

  [[nodiscard]] detail::matrix_block<T> value(size_t position) const { return part(2, position); }

private:
  [[nodiscard]] detail::matrix_block<T> part(size_t index, size_t position) const {
    return {queries + index * width + position * row_step(), row_step()};
  }
};

/// One tile: some queries against some keys, none of which lies behind all queries.
struct tile_extents {
  size_t first_query;
  size_t queries;
  size_t first_key;
  size_t keys;

  /// Keys of the tile that a query sees.
  [[nodiscard]] size_t seen_by(size_t query) const {
    return std::min(keys, first_query + query + 1 - first_key);
  }
};

tile_extents tile_at(size_t query, size_t key, size_t context) {
  return {query, std::min(tile_size, context - query), key, std::min(tile_size, context - key)};
}

/// scores = scale * queries keys^T.
template <class T>
void multiply_keys(const tile_extents& tile, const attention_form& form,
                   const packed_head<const T>& in, attention_tile<T>& scores) {
  detail::multiply({.rows = tile.queries,
                    .columns = tile.keys,
                    .inner = form.head_width,
                    .transpose_b = true,
                    .alpha = form.scale()},
                   in.query(tile.first_query), in.key(tile.first_key), {scores.data(), tile_size});
}

/// Rounds a tile, as the operand of a product.
template <class T>
void round_rows(const tile_extents& tile, const attention_form& form, attention_tile<T>& values) {
  if (form.precision == product_precision::full) return;
  for (size_t row = 0; row < tile.queries; ++row) {
    auto columns = row_of(values, row, tile.keys);
    detail::round_operands(columns, form.precision, columns.data());
  }
}

/// The largest score and the sum of weights of each query of a tile, so far.
template <class T>
struct running_softmax {
  std::array<T, tile_size> largest;
  std::array<T, tile_size> sums{};

  running_softmax() { largest.fill(-std::numeric_limits<T>::infinity()); }
};

/// Turns scores into weights relative to the largest score so far, and earlier output with them.
template <class T>
void weigh_scores(const tile_extents& tile, size_t head_width, attention_tile<T>& scores,
                  running_softmax<T>& running, detail::matrix_block<T> output) {
  for (size_t row = 0; row < tile.queries; ++row) {
    auto all = row_of(scores, row, tile.keys);
    auto seen = all.first(tile.seen_by(row));
    auto vectors = in_vectors(scores, row, seen.size());
    std::ranges::fill(vectors.subspan(seen.size()), -std::numeric_limits<T>::infinity());
    T before = running.largest[row];
    T largest = std::max(before, detail::max_lanes(std::span<const T>{vectors}));
    for (auto& value : vectors)
      value = detail::exp(value - largest);
    T sum = detail::sum_lanes<T>(vectors.size(), [&](size_t i) { return vectors[i]; });
    std::ranges::fill(all.subspan(seen.size()), T{0});
    running.largest[row] = largest;
    if (tile.first_key == 0) {
      running.sums[row] = sum;
      continue;
    }
    T correction = detail::exp(before - largest);
    running.sums[row] = running.sums[row] * correction + sum;
    for (auto& value : std::span{output.data + row * output.row_step, head_width})
      value *= correction;
  }
}

template <class T>
void finish_rows(size_t queries, size_t head_width, const running_softmax<T>& running,
                 detail::matrix_block<T> output, T* log_sums) {
  for (size_t row = 0; row < queries; ++row) {
    for (auto& value : std::span{output.data + row * output.row_step, head_width})
      value /= running.sums[row];
    log_sums[row] = running.largest[row] + std::log(running.sums[row]);
  }
}

template <class T>
void attend(const attention_form& form, const packed_head<const T>& in, T* output, T* log_sums) {
  attention_tile<T> weights;
  for (size_t query = 0; query < form.context; query += tile_size) {
    running_softmax<T> running;
    detail::matrix_block<T> out{output + query * form.width(), form.width()};
    for (size_t key = 0; key <= query; key += tile_size) {
      auto tile = tile_at(query, key, form.context);
      multiply_keys(tile, form, in, weights);
      with_widest_vectors([&] { weigh_scores(tile, form.head_width, weights, running, out); });
      round_rows(tile, form, weights);
      detail::multiply({.rows = tile.queries,
                        .columns = form.head_width,
                        .inner = tile.keys,
                        .beta = key == 0 ? 0.0 : 1.0},
                       {weights.data(), tile_size}, in.value(key), out);
    }
    auto queries = std::min(tile_size, form.context - query);
    finish_rows(queries, form.head_width, running, out, log_sums + query);
  }
}

/// The arrays of a head that the backward pass reads.
template <class T>
struct head_outcome {
  packed_head<const T> in;
  const T* output;
  const T* output_gradient;
  const T* log_sums;
  size_t width;

  [[nodiscard]] detail::matrix_block<const T> gradient(size_t position) const {
    return {output_gradient + position * width, width};
  }
};

/// Turns scores into weights, and the gradients of weights into those of scores before scaling.
template <class T>
void differentiate_weights(const tile_extents& tile, const attention_form& form,
                           const head_outcome<T>& head, attention_tile<T>& weights,
                           attention_tile<T>& gradients) {
  auto scale = static_cast<T>(form.scale());
  for (size_t row = 0; row < tile.queries; ++row) {
    auto position = tile.first_query + row;
    const T* out = head.output + position * head.width;
    const T* arriving = head.output_gradient + position * head.width;
    // The mean of the weights' gradients by the weights, without a look at all keys.
    T mean = detail::sum_lanes<T>(form.head_width, [&](size_t i) { return out[i] * arriving[i]; });
    T log_sum = head.log_sums[position];
    auto seen = tile.seen_by(row);
    auto p = row_of(weights, row, tile.keys);
    auto g = row_of(gradients, row, tile.keys);
    auto p_vectors = in_vectors(weights, row, seen), g_vectors = in_vectors(gradients, row, seen);
    for (auto& value : p_vectors)
      value = detail::exp(value - log_sum);
    for (size_t i = 0; i < p_vectors.size(); ++i)
      g_vectors[i] = p_vectors[i] * (g_vectors[i] - mean) * scale;
    std::ranges::fill(p.subspan(seen), T{0});
    std::ranges::fill(g.subspan(seen), T{0});
  }
}

template <class T>
void attend_gradient(const attention_form& form, const head_outcome<T>& head,
                     const packed_head<T>& to) {
  attention_tile<T> weights{}, gradients{}; // whole vectors of them are read
  auto width = form.head_width;
  for (size_t key = 0; key < form.context; key += tile_size)
    for (size_t query = key; query < form.context; query += tile_size) {
      auto tile = tile_at(query, key, form.context);
      auto queries = tile.queries, keys = tile.keys;
      multiply_keys(tile, form, head.in, weights);
      detail::multiply({.rows = queries, .columns = keys, .inner = width, .transpose_b = true},
                       head.gradient(query), head.in.value(key), {gradients.data(), tile_size});
      with_widest_vectors([&] { differentiate_weights(tile, form, head, weights, gradients); });
      round_rows(tile, form, weights);
      round_rows(tile, form, gradients);
      detail::matrix_block<const T> p{weights.data(), tile_size}, g{gradients.data(), tile_size};
      const matmul_form by_key{.rows = keys,
                               .columns = width,
                               .inner = queries,
                               .transpose_a = true,
                               .beta = query == key ? 0.0 : 1.0};
      detail::multiply(by_key, p, head.gradient(query), to.value(key));
      detail::multiply(by_key, g, head.in.query(query), to.key(key));
      detail::multiply(
        {.rows = queries, .columns = width, .inner = keys, .beta = key == 0 ? 0.0 : 1.0}, g,
        head.in.key(key), to.query(query));
    }
}

/// Calls `body(packed, output, log_sums)` with the place at which each head of each sequence begins
/// in these arrays.
template <class Body>
void for_heads(const attention_form& form, Body body) {
  auto width = form.width(), context = form.context;
  for (size_t sequence = 0; sequence < form.batch; ++sequence)
    for (size_t head = 0; head < form.heads; ++head) {
      auto first = sequence * context * width, column = head * form.head_width;
      body(3 * first + column, first + column, (sequence * form.heads + head) * context);
    }
}

} // namespace

template <class T>
void causal_self_attention(const context&, const attention_form& form, std::span<const T> packed,
                           std::span<T> output, std::span<T> log_sums) {
  troupe::detail::check_sizes(form, packed.size(), output.size(), log_sums.size());
  TROUPE_ASSERT(has_precision(dtype_of<T>, form.precision), to_string(form.precision));
  const detail::operand<T> parts{packed, form.precision};
  for_heads(form, [&](size_t at, size_t output_at, size_t sums_at) {
    packed_head<const T> in{parts.at(at), form.width()};
    attend<T>(form, in, output.data() + output_at, log_sums.data() + sums_at);
  });
}

template <class T>
void causal_self_attention_gradient(const context&, const attention_form& form,
                                    std::span<const T> packed, const attention_outcome<T>& forward,
                                    std::span<const T> output_gradient,
                                    std::span<T> packed_gradient) {
  auto sums = forward.log_sums.size();
  troupe::detail::check_sizes(form, packed.size(), forward.output.size(), sums);
  troupe::detail::check_sizes(form, packed_gradient.size(), output_gradient.size(), sums);
  TROUPE_ASSERT(has_precision(dtype_of<T>, form.precision), to_string(form.precision));
  auto width = form.width();
  const detail::operand<T> parts{packed, form.precision}, arriving{output_gradient, form.precision};
  for_heads(form, [&](size_t at, size_t output_at, size_t sums_at) {
    const head_outcome<T> head{{parts.at(at), width},
                               forward.output.data() + output_at,
                               arriving.at(output_at),
                               forward.log_sums.data() + sums_at,
                               width};
    attend_gradient<T>(form, head, {packed_gradient.data() + at, width});
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

} // namespace troupe::cpu
