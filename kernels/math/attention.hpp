// SPDX-License-Identifier: Apache-2.0
// Causal self-attention: each position of a sequence combines the values of all up to it.
#pragma once

#include "kernels/math/product_precision.hpp"
#include "kernels/tensor/context.hpp"
#include "messages/errors/assert.hpp"

#include <cmath>
#include <cstddef>
#include <span>

namespace troupe {

/// Extents and precision of an attention.
struct attention_form {
  size_t batch = 0;      ///< Sequences.
  size_t context = 0;    ///< Positions of a sequence.
  size_t heads = 1;      ///< Parts of a position that attend apart from each other.
  size_t head_width = 1; ///< Elements of a head.
  /// Precision of products, forward and back. Their operands are rounded: queries, keys, values,
  /// weights, and the gradients of the output and of scores.
  product_precision precision = product_precision::full;

  /// Elements of a position, all heads together.
  [[nodiscard]] size_t width() const { return heads * head_width; }

  /// Positions of all sequences.
  [[nodiscard]] size_t positions() const { return batch * context; }

  /// Factor of the products of queries and keys, so that their variance is about 1.
  [[nodiscard]] double scale() const { return 1 / std::sqrt(static_cast<double>(head_width)); }
};

/// The arrays that the forward pass wrote.
/// Shape: output    [batch, context, width]
///        log_sums  [batch, heads, context]  log of the sum that divides a position's weights
template <class T>
struct attention_outcome {
  std::span<const T> output;
  std::span<const T> log_sums;
};

namespace detail {

/// Asserts that arrays of these sizes, or gradients of them, are those of an attention.
inline void check_sizes(const attention_form& form, size_t packed, size_t output, size_t log_sums) {
  auto elements = form.positions() * form.width();
  TROUPE_ASSERT(packed == 3 * elements, packed, elements);
  TROUPE_ASSERT(output == elements, output, elements);
  TROUPE_ASSERT(log_sums == form.positions() * form.heads, log_sums, form.positions(), form.heads);
  TROUPE_ASSERT(form.head_width > 0, form.heads);
}

} // namespace detail

// With q, k and v the three parts of `packed` at one head, position i of a sequence gives
// output[i] = sum over j <= i of softmax_j(scale * q[i] . k[j]) v[j].
//
// All inputs are finite: a NaN may spread to earlier positions.
//
// Memory is linear in the context: the backward pass works out the weights again from `log_sums`.
// With a batch of 32, a context of 64 and 4 heads of 32, one core of a Xeon with AVX-512 takes 3.5
// ms forward and back, of which working them out again is 0.6. Keeping them would take 0.1, which
// makes a whole layer faster by 2 %, but takes 2 MB of memory for each layer, and 512 MB for a
// context of 1024.
// Source: Dao, "FlashAttention-2", 2023, algorithms 1 and 2.

namespace reference {

/// Shape: packed    [batch, context, 3 * width]  queries, keys and values side by side, each of
///                                               them head by head; row-major f32 or f64
///        output    [batch, context, width]
///        log_sums  [batch, heads, context]
template <class T>
void causal_self_attention(const context&, const attention_form& form, std::span<const T> packed,
                           std::span<T> output, std::span<T> log_sums);

/// The gradient of `causal_self_attention` by `packed`. It works out the weights by itself.
/// Shape: output_gradient  [batch, context, width]
///        packed_gradient  [batch, context, 3 * width]  aliases nothing
template <class T>
void causal_self_attention_gradient(const context&, const attention_form& form,
                                    std::span<const T> packed, const attention_outcome<T>& forward,
                                    std::span<const T> output_gradient,
                                    std::span<T> packed_gradient);

} // namespace reference

namespace cpu {

/// As the reference, by tiles of 64 positions that stay in the cache; the calling thread alone.
template <class T>
void causal_self_attention(const context&, const attention_form& form, std::span<const T> packed,
                           std::span<T> output, std::span<T> log_sums);

/// As the reference, from what the forward pass wrote.
template <class T>
void causal_self_attention_gradient(const context&, const attention_form& form,
                                    std::span<const T> packed, const attention_outcome<T>& forward,
                                    std::span<const T> output_gradient,
                                    std::span<T> packed_gradient);

} // namespace cpu

namespace cuda {

/// As the reference, by tiles of 64 positions, of f64 32. Sums have a fixed order.
template <class T>
void causal_self_attention(const context&, const attention_form& form, std::span<const T> packed,
                           std::span<T> output, std::span<T> log_sums);

/// As the reference, from what the forward pass wrote. Sums have a fixed order.
template <class T>
void causal_self_attention_gradient(const context&, const attention_form& form,
                                    std::span<const T> packed, const attention_outcome<T>& forward,
                                    std::span<const T> output_gradient,
                                    std::span<T> packed_gradient);

} // namespace cuda

} // namespace troupe
