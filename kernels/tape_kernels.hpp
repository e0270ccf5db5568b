// SPDX-License-Identifier: Apache-2.0
// The kernels on tensors: each function takes memory for its result and picks the element type.
#pragma once

#include "kernels/activations.hpp"
#include "kernels/bias.hpp"
#include "kernels/dropout.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/embedding.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/matmul.hpp"
#include "kernels/mean.hpp"
#include "kernels/softmax_cross_entropy.hpp"
#include "kernels/sparse.hpp"
#include "kernels/tensor.hpp"
#include "messages/assert.hpp"

#include <vector>

namespace troupe::detail {

// The namespace of `Context` decides which twin runs: the kernels are found through their first
// argument. Operands were checked before, in `tape_checks.hpp`.

/// Calls `visitor` with a zero of the element type.
template <class Visitor>
void compute_in(dtype type, const Visitor& visitor) {
  TROUPE_ASSERT(type == dtype::f32 || type == dtype::f64, to_string(type));
  if (type == dtype::f32)
    visitor(float{});
  else
    visitor(double{});
}

/// `given` itself if nobody else looks at its memory, else fresh memory of the same kind.
[[nodiscard]] inline tensor reuse(const tensor& given) {
  if (given.is_unique() && !given.read_only()) return given;
  return {given.type(), given.extents()};
}

/// c = form(a, b); `c` keeps its part if form.beta is not 0.
template <class Context>
void product(const Context& on, const matmul_form& form, const tensor& a, const tensor& b,
             tensor& c) {
  compute_in(c.type(), [&](auto zero) {
    using T = decltype(zero);
    matmul(on, form, a.values<T>(), b.values<T>(), c.mutable_values<T>());
  });
}

template <class Context>
tensor sum(const Context& on, const tensor& a, const tensor& b, tensor into) {
  compute_in(a.type(), [&](auto zero) {
    using T = decltype(zero);
    add(on, a.values<T>(), b.values<T>(), into.mutable_values<T>());
  });
  return into;
}

template <class Context>
tensor elementwise_product(const Context& on, const tensor& a, const tensor& b, tensor into) {
  compute_in(a.type(), [&](auto zero) {
    using T = decltype(zero);
    multiply(on, a.values<T>(), b.values<T>(), into.mutable_values<T>());
  });
  return into;
}

template <class Context>
tensor scaled(const Context& on, const tensor& input, double factor, tensor into) {
  compute_in(input.type(), [&](auto zero) {
    using T = decltype(zero);
    scale(on, static_cast<T>(factor), input.values<T>(), into.mutable_values<T>());
  });
  return into;
}

template <class Context>
tensor biased(const Context& on, const tensor& input, const tensor& bias) {
  tensor output(input.type(), input.extents());
  compute_in(input.type(), [&](auto zero) {
    using T = decltype(zero);
    add_bias(on, input.values<T>(), bias.values<T>(), output.mutable_values<T>());
  });
  return output;
}

template <class Context>
tensor column_sums(const Context& on, const tensor& output_gradient, const shape& extents) {
  tensor result(output_gradient.type(), extents);
  compute_in(result.type(), [&](auto zero) {
    using T = decltype(zero);
    bias_gradient(on, output_gradient.values<T>(), result.mutable_values<T>());
  });
  return result;
}

template <class Context>
tensor activated(const Context& on, activation kind, const tensor& input) {
  tensor output(input.type(), input.extents());
  compute_in(input.type(), [&](auto zero) {
    using T = decltype(zero);
    activate(on, kind, input.values<T>(), output.mutable_values<T>());
  });
  return output;
}

template <class Context>
tensor activated_gradient(const Context& on, activation kind, const tensor& input,
                          const tensor& output, const tensor& output_gradient, tensor into) {
  compute_in(input.type(), [&](auto zero) {
    using T = decltype(zero);
    activate_gradient(on, kind, input.values<T>(), output.values<T>(), output_gradient.values<T>(),
                      into.mutable_values<T>());
  });
  return into;
}

template <class Context>
tensor thinned(const Context& on, double rate, const random_key& key, const tensor& input,
               tensor into) {
  compute_in(input.type(), [&](auto zero) {
    using T = decltype(zero);
    dropout(on, rate, key, input.values<T>(), into.mutable_values<T>());
  });
  return into;
}

template <class Context>
tensor looked_up(const Context& on, const tensor& table, const tensor& indices) {
  auto extents = indices.extents().dims();
  extents.push_back(table.extents()[1]);
  tensor output(table.type(), shape(extents));
  compute_in(table.type(), [&](auto zero) {
    using T = decltype(zero);
    embedding(on, table.values<T>(), indices.values<int64_t>(), output.mutable_values<T>());
  });
  return output;
}

/// table += rows.
template <class Context>
void scatter(const Context& on, const indexed_slices& rows, tensor& table) {
  compute_in(table.type(), [&](auto zero) {
    using T = decltype(zero);
    embedding_gradient(on, rows.values.values<T>(), rows.indices.values<int64_t>(),
                       table.mutable_values<T>());
  });
}

template <class Context>
tensor mean_of(const Context& on, const tensor& input) {
  tensor output(input.type(), shape{});
  compute_in(input.type(), [&](auto zero) {
    using T = decltype(zero);
    output.mutable_values<T>()[0] = mean(on, input.values<T>());
  });
  return output;
}

/// What `layer_norm` computes, and the statistics that its gradient needs.
struct normalised {
  tensor output;
  tensor means;
  tensor inverse_deviations;

  template <class T>
  layer_norm_statistics<T> statistics() {
    return {means.mutable_values<T>(), inverse_deviations.mutable_values<T>()};
  }
};

template <class Context>
normalised normalise(const Context& on, const tensor& input, const tensor& gain, const tensor& bias,
                     double epsilon) {
  auto columns = gain.extents()[0];
  shape rows{columns == 0 ? 0 : input.extents().element_count() / columns};
  normalised result{{input.type(), input.extents()}, {input.type(), rows}, {input.type(), rows}};
  compute_in(input.type(), [&](auto zero) {
    using T = decltype(zero);
    layer_norm(on, static_cast<T>(epsilon), input.values<T>(),
               layer_norm_parameters<T>{gain.values<T>(), bias.values<T>()},
               result.output.mutable_values<T>(), result.statistics<T>());
  });
  return result;
}

/// The gradients of `normalise` by its three operands.
struct normalised_gradients {
  tensor input;
  tensor gain;
  tensor bias;
};

template <class Context>
normalised_gradients normalise_gradient(const Context& on, const tensor& input, const tensor& gain,
                                        normalised& forward, const tensor& output_gradient) {
  normalised_gradients result{
    reuse(output_gradient), {gain.type(), gain.extents()}, {gain.type(), gain.extents()}};
  compute_in(input.type(), [&](auto zero) {
    using T = decltype(zero);
    layer_norm_gradient(
      on, input.values<T>(), gain.values<T>(), forward.statistics<T>(), output_gradient.values<T>(),
      layer_norm_gradients<T>{result.input.mutable_values<T>(), result.gain.mutable_values<T>(),
                              result.bias.mutable_values<T>()});
  });
  return result;
}

/// Losses of the rows and the probabilities behind them.
struct classified {
  tensor losses;
  tensor probabilities;
};

template <class Context>
classified classify(const Context& on, const tensor& logits, const tensor& labels) {
  classified result{{logits.type(), labels.extents()}, {logits.type(), logits.extents()}};
  compute_in(logits.type(), [&](auto zero) {
    using T = decltype(zero);
    softmax_cross_entropy(on, logits.values<T>(), labels.values<int64_t>(),
                          result.losses.mutable_values<T>(),
                          result.probabilities.mutable_values<T>());
  });
  return result;
}

template <class Context>
tensor classify_gradient(const Context& on, const tensor& probabilities, const tensor& labels,
                         double row_gradient) {
  tensor result(probabilities.type(), probabilities.extents());
  compute_in(result.type(), [&](auto zero) {
    using T = decltype(zero);
    softmax_cross_entropy_gradient(on, probabilities.values<T>(), labels.values<int64_t>(),
                                   static_cast<T>(row_gradient), result.mutable_values<T>());
  });
  return result;
}

/// A tensor filled with one value.
template <class Context>
tensor filled(const Context& on, dtype type, const shape& extents, double value) {
  tensor output(type, extents);
  compute_in(type, [&](auto zero) {
    using T = decltype(zero);
    fill(on, output.mutable_values<T>(), static_cast<T>(value));
  });
  return output;
}

/// The rows of all lookups in one table, added up: each index once, ascending.
/// @pre At least one lookup.
template <class Context>
indexed_slices combined(const Context& on, const std::vector<indexed_slices>& lookups) {
  std::vector<row_source> sources(lookups.begin(), lookups.end());
  std::vector<row_entry> entries(2 * row_count(sources));
  std::vector<size_t> starts(row_count(sources) + 1);
  const auto& table = lookups.front().dense_extents;
  sparse_sum sum{.sources = sources,
                 .order = order_rows(sources, entries, starts),
                 .width = static_cast<size_t>(table[1])};
  auto rows = static_cast<int64_t>(sum.order.distinct());
  indexed_slices result{
    {dtype::i64, shape{rows}}, {lookups.front().values.type(), shape{rows, table[1]}}, table};
  auto indices = result.indices.template mutable_values<int64_t>();
  for (size_t i = 0; i < indices.size(); ++i)
    indices[i] = sum.order.index(i);
  compute_in(result.values.type(), [&](auto zero) {
    using T = decltype(zero);
    combine(on, sum, result.values.mutable_values<T>());
  });
  return result;
}

/// The only element.
[[nodiscard]] inline double scalar_of(const tensor& value) {
  return value.type() == dtype::f32 ? value.values<float>()[0] : value.values<double>()[0];
}

} // namespace troupe::detail
