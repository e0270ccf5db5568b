// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy with vectorised exponentials.
#include "kernels/math/softmax_cross_entropy.hpp"

#include "kernels/tensor/parallel.hpp"
#include "kernels/tensor/vector_math.hpp"
#include "messages/errors/assert.hpp"

#include <cmath>

namespace troupe::cpu {

namespace {

/// Turns one row of logits into probabilities and returns its loss.
template <class T>
T normalise(std::span<const T> in, size_t label, std::span<T> out) {
  T largest = detail::max_lanes(in);
  T at_label = in[label];
  for (size_t i = 0; i < in.size(); ++i)
    out[i] = detail::exp(in[i] - largest);
  T sum = detail::sum_lanes<T>(out.size(), [&](size_t i) { return out[i]; });
  T scale = T{1} / sum; // one division for the row
  for (auto& value : out)
    value *= scale;
  return std::log(sum) - (at_label - largest);
}

} // namespace

template <class T>
void softmax_cross_entropy(const context&, std::span<const T> logits,
                           std::span<const int64_t> labels, std::span<T> losses,
                           std::span<T> probabilities) {
  auto rows = labels.size();
  auto classes
    = troupe::detail::classes_of(rows, losses.size(), logits.size(), probabilities.size());
  for (size_t row = 0; row < rows; ++row) {
    auto label = static_cast<size_t>(labels[row]);
    TROUPE_ASSERT(label < classes, label, classes);
    with_widest_vectors([&] {
      losses[row] = normalise(logits.subspan(row * classes, classes), label,
                              probabilities.subspan(row * classes, classes));
    });
  }
}

template <class T>
void softmax_cross_entropy_gradient(const context&, std::span<const T> probabilities,
                                    std::span<const int64_t> labels,
                                    std::span<const T> losses_gradient,
                                    std::span<T> logits_gradient) {
  auto classes = troupe::detail::classes_of(labels.size(), losses_gradient.size(),
                                            probabilities.size(), logits_gradient.size());
  for (size_t row = 0; row < labels.size(); ++row) {
    const T* from = probabilities.data() + row * classes;
    T* to = logits_gradient.data() + row * classes;
    auto label = static_cast<size_t>(labels[row]);
    TROUPE_ASSERT(label < classes, label, classes);
    T scale = losses_gradient[row];
    T at_label = (from[label] - 1) * scale;
    for (size_t i = 0; i < classes; ++i)
      to[i] = from[i] * scale;
    to[label] = at_label;
  }
}

template void softmax_cross_entropy(const context&, std::span<const float>,
                                    std::span<const int64_t>, std::span<float>, std::span<float>);
template void softmax_cross_entropy(const context&, std::span<const double>,
                                    std::span<const int64_t>, std::span<double>, std::span<double>);
template void softmax_cross_entropy_gradient(const context&, std::span<const float>,
                                             std::span<const int64_t>, std::span<const float>,
                                             std::span<float>);
template void softmax_cross_entropy_gradient(const context&, std::span<const double>,
                                             std::span<const int64_t>, std::span<const double>,
                                             std::span<double>);

} // namespace troupe::cpu
