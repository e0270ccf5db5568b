// SPDX-License-Identifier: Apache-2.0
// Attention row by row: the weights of a row are worked out wherever they are needed.
#include "kernels/math/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::reference {

namespace {

/// The three parts of a position, as they lie side by side.
enum class attention_part : size_t { query, key, value };

/// One head of one sequence.
template <class T>
struct sequence_head {
  const attention_form& form;
  std::span<const T> packed;
  size_t sequence;
  size_t head;

  /// Where element `i` of a part lies.
  [[nodiscard]] size_t place(attention_part part, size_t position, size_t i) const {
    auto row = sequence * form.context + position;
    return (row * 3 + static_cast<size_t>(part)) * form.width() + head * form.head_width + i;
  }

  [[nodiscard]] size_t output_place(size_t position, size_t i) const {
    return (sequence * form.context + position) * form.width() + head * form.head_width + i;
  }

  /// An element of a part, as products take it.
  [[nodiscard]] T operand(attention_part part, size_t position, size_t i) const {
    return rounded(packed[place(part, position, i)], form.precision);
  }

  [[nodiscard]] T score(size_t query, size_t key) const {
    T sum = 0;
    for (size_t i = 0; i < form.head_width; ++i)
      sum += operand(attention_part::query, query, i) * operand(attention_part::key, key, i);
    return sum * static_cast<T>(form.scale());
  }

  /// log of the sum over all keys up to `query` of exp(score).
  [[nodiscard]] T log_sum(size_t query) const {
    T largest = -std::numeric_limits<T>::infinity();
    for (size_t key = 0; key <= query; ++key)
      largest = std::max(largest, score(query, key));
    T sum = 0;
    for (size_t key = 0; key <= query; ++key)
      sum += std::exp(score(query, key) - largest);
    return largest + std::log(sum);
  }
};

template <class T>
void add_gradients_of(const sequence_head<T>& at, size_t query, std::span<const T> output_gradient,
                      std::span<T> packed_gradient) {
  auto width = at.form.head_width;
  auto scale = static_cast<T>(at.form.scale());
  T log_sum = at.log_sum(query);
  auto weight = [&](size_t key) { return std::exp(at.score(query, key) - log_sum); };
  auto arriving = [&](size_t i) {
    return rounded(output_gradient[at.output_place(query, i)], at.form.precision);
  };
  auto weight_gradient = [&](size_t key) {
    T sum = 0;
    for (size_t i = 0; i < width; ++i)
      sum += arriving(i) * at.operand(attention_part::value, key, i);
    return sum;
  };
  T mean = 0;
  for (size_t key = 0; key <= query; ++key)
    mean += weight(key) * weight_gradient(key);
  for (size_t key = 0; key <= query; ++key) {
    T p = weight(key);
    T score_gradient = rounded(p * (weight_gradient(key) - mean) * scale, at.form.precision);
    p = rounded(p, at.form.precision);
    for (size_t i = 0; i < width; ++i) {
      packed_gradient[at.place(attention_part::query, query, i)]
        += score_gradient * at.operand(attention_part::key, key, i);
      packed_gradient[at.place(attention_part::key, key, i)]
        += score_gradient * at.operand(attention_part::query, query, i);
      packed_gradient[at.place(attention_part::value, key, i)] += p * arriving(i);
    }
  }
}

/// Calls `body` with each head of each sequence, and each of its positions.
template <class T, class Body>
void for_positions(const attention_form& form, std::span<const T> packed, Body body) {
  for (size_t sequence = 0; sequence < form.batch; ++sequence)
    for (size_t head = 0; head < form.heads; ++head)
      for (size_t query = 0; query < form.context; ++query)
        body(sequence_head<T>{form, packed, sequence, head}, query);
}

} // namespace

template <class T>
void causal_self_attention(const context&, const attention_form& form, std::span<const T> packed,
                           std::span<T> output, std::span<T> log_sums) {
  detail::check_sizes(form, packed.size(), output.size(), log_sums.size());
  for_positions<T>(form, packed, [&](const sequence_head<T>& at, size_t query) {
    T log_sum = at.log_sum(query);
    for (size_t i = 0; i < form.head_width; ++i) {
      T sum = 0;
      for (size_t key = 0; key <= query; ++key)
        sum += rounded(std::exp(at.score(query, key) - log_sum), form.precision)
               * at.operand(attention_part::value, key, i);
      output[at.output_place(query, i)] = sum;
    }
    log_sums[(at.sequence * form.heads + at.head) * form.context + query] = log_sum;
  });
}

template <class T>
void causal_self_attention_gradient(const context&, const attention_form& form,
                                    std::span<const T> packed, const attention_outcome<T>& forward,
                                    std::span<const T> output_gradient,
                                    std::span<T> packed_gradient) {
  auto sums = forward.log_sums.size();
  detail::check_sizes(form, packed.size(), forward.output.size(), sums);
  detail::check_sizes(form, packed_gradient.size(), output_gradient.size(), sums);
  std::ranges::fill(packed_gradient, T{0});
  for_positions<T>(form, packed, [&](const sequence_head<T>& at, size_t query) {
    add_gradients_of(at, query, output_gradient, packed_gradient);
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

} // namespace troupe::reference
