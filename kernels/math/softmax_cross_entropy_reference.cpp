// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy in plain loops.
#include "kernels/math/softmax_cross_entropy.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::reference {

template <class T>
void softmax_cross_entropy(const context&, std::span<const T> logits,
                           std::span<const int64_t> labels, std::span<T> losses,
                           std::span<T> probabilities) {
  auto rows = labels.size();
  auto classes = detail::classes_of(rows, losses.size(), logits.size(), probabilities.size());
  for (size_t row = 0; row < rows; ++row) {
    auto in = logits.subspan(row * classes, classes);
    auto out = probabilities.subspan(row * classes, classes);
    auto label = static_cast<size_t>(labels[row]);
    TROUPE_ASSERT(label < classes, label, classes);
    T largest = *std::max_element(in.begin(), in.end());
    T at_label = in[label];
    T sum = 0;
    for (size_t i = 0; i < classes; ++i)
      sum += out[i] = std::exp(in[i] - largest);
    for (size_t i = 0; i < classes; ++i)
      out[i] /= sum;
    losses[row] = std::log(sum) - (at_label - largest);
  }
}

template <class T>
void softmax_cross_entropy_gradient(const context&, std::span<const T> probabilities,
                                    std::span<const int64_t> labels,
                                    std::span<const T> losses_gradient,
                                    std::span<T> logits_gradient) {
  auto classes = detail::classes_of(labels.size(), losses_gradient.size(), probabilities.size(),
                                    logits_gradient.size());
  for (size_t row = 0; row < labels.size(); ++row)
    for (size_t i = 0; i < classes; ++i) {
      T target = static_cast<int64_t>(i) == labels[row] ? 1 : 0;
      logits_gradient[row * classes + i]
        = (probabilities[row * classes + i] - target) * losses_gradient[row];
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

} // namespace troupe::reference
