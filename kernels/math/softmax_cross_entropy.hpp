// SPDX-License-Identifier: Apache-2.0
// The loss of a classifier: how surprised it is by the right answers.
#pragma once

#include "kernels/tensor/context.hpp"
#include "messages/errors/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe {

namespace detail {

/// Asserts that arrays of these sizes, or gradients of them, are those of the losses of so many
/// rows. @returns The number of classes; 0 if there are no rows.
inline size_t classes_of(size_t rows, size_t losses, size_t logits, size_t probabilities) {
  TROUPE_ASSERT(losses == rows, losses, rows);
  TROUPE_ASSERT(logits == probabilities, logits, probabilities);
  if (rows == 0) return 0;
  TROUPE_ASSERT(logits % rows == 0, logits, rows);
  return logits / rows;
}

} // namespace detail

namespace reference {

/// For each row: probabilities = softmax(logits), loss = -log probabilities[label].
///
/// The largest logit is subtracted before anything is raised to a power, so finite logits of any
/// size give finite probabilities, and the loss comes from the logits, so it is right (up to
/// infinity, for a logit of -infinity at the label) even where the probability rounds to 0. A row
/// that holds NaN or +infinity, or -infinity alone, gives NaN everywhere.
///
/// Shape: logits         [rows, classes]  row-major f32 or f64
///        labels         [rows]           each at least 0 and less than classes
///        losses         [rows]
///        probabilities  [rows, classes]  may be logits itself
/// Units: losses in nats.
/// @pre labels.size() == losses.size(); logits.size() is a multiple of it.
template <class T>
void softmax_cross_entropy(const context&, std::span<const T> logits,
                           std::span<const int64_t> labels, std::span<T> losses,
                           std::span<T> probabilities);

/// logits_gradient[r, c] = (probabilities[r, c] - (c == labels[r])) * losses_gradient[r].
/// Shape: probabilities    [rows, classes]  what `softmax_cross_entropy` wrote
///        labels           [rows]
///        losses_gradient  [rows]           of each row's loss; 1 / rows for a mean
///        logits_gradient  [rows, classes]  may be probabilities itself
template <class T>
void softmax_cross_entropy_gradient(const context&, std::span<const T> probabilities,
                                    std::span<const int64_t> labels,
                                    std::span<const T> losses_gradient,
                                    std::span<T> logits_gradient);

} // namespace reference

namespace cpu {

/// As the reference; the sum of a row is added up in 16 partial sums, and divides 1 instead of each
/// probability's power.
template <class T>
void softmax_cross_entropy(const context&, std::span<const T> logits,
                           std::span<const int64_t> labels, std::span<T> losses,
                           std::span<T> probabilities);

/// As the reference, bit for bit.
template <class T>
void softmax_cross_entropy_gradient(const context&, std::span<const T> probabilities,
                                    std::span<const int64_t> labels,
                                    std::span<const T> losses_gradient,
                                    std::span<T> logits_gradient);

} // namespace cpu

namespace cuda {

/// As the cpu twin: the probabilities bit for bit in f32, within 16 units in the last place in f64;
/// losses within 4 units of the larger part, the sum's logarithm or the logit. A label outside the
/// classes gives a loss of NaN, and is not looked for: `find_outside` does that.
template <class T>
void softmax_cross_entropy(const context&, std::span<const T> logits,
                           std::span<const int64_t> labels, std::span<T> losses,
                           std::span<T> probabilities);

/// As the reference, bit for bit.
template <class T>
void softmax_cross_entropy_gradient(const context&, std::span<const T> probabilities,
                                    std::span<const int64_t> labels,
                                    std::span<const T> losses_gradient,
                                    std::span<T> logits_gradient);

} // namespace cuda

} // namespace troupe
