// SPDX-License-Identifier: Apache-2.0
// The kernels on tensors: each function takes memory for its result and picks the element type.
#pragma once

#include "kernels/math/activations.hpp"
#include "kernels/math/attention.hpp"
#include "kernels/math/bias.hpp"
#include "kernels/math/cast.hpp"
#include "kernels/math/dropout.hpp"
#include "kernels/math/elementwise.hpp"
#include "kernels/math/embedding.hpp"
#include "kernels/math/images/convolution.hpp"
#include "kernels/math/images/max_pool.hpp"
#include "kernels/math/layer_norm.hpp"
#include "kernels/math/matmul.hpp"
#include "kernels/math/mean.hpp"
#include "kernels/math/reduce.hpp"
#include "kernels/math/rms_norm.hpp"
#include "kernels/math/softmax_cross_entropy.hpp"
#include "kernels/math/sparse.hpp"
#include "kernels/math/transpose.hpp"
#include "kernels/tensor/placement.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/errors/assert.hpp"
#include "messages/errors/errc.hpp"

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe::detail {

using namespace placement;

// The namespace of `Context` decides which twin runs: the kernels are found through their first
// argument. `tape_checks.hpp` has checked the operands.

/// Calls `visitor` with a zero of the element type.
template <class Visitor>
void compute_in(dtype type, const Visitor& visitor) {
  TROUPE_ASSERT(type == dtype::f32 || type == dtype::f64, to_string(type));
  if (type == dtype::f32)
    visitor(float{});
  else
    visitor(double{});
}

/// `find_outside` for indices of the host.
template <class Context>
[[nodiscard]] size_t find_outside_here(const Context& on, std::span<const int64_t> indices,
                                       int64_t limit) {
  return find_outside(on, indices, limit);
}

[[nodiscard]] inline size_t find_outside_here(const cuda::context&,
                                              std::span<const int64_t> indices, int64_t limit) {
  return find_outside(cpu::context{}, indices, limit);
}

/// out[0] = mean(values).
template <class Context, class T>
void mean_into(const Context& on, std::span<const T> values, std::span<T> out) {
  out[0] = mean(on, values);
}

template <class T>
void mean_into(const cuda::context& on, std::span<const T> values, std::span<T> out) {
  mean(on, values, out);
}

/// number[0] = the elements of all arrays that are infinite or NaN.
template <class Context>
void count_non_finite_into(const Context& on, std::span<const elements> arrays,
                           std::span<double> number) {
  number[0] = 0;
  for (const auto& values : arrays)
    number[0] += static_cast<double>(count_non_finite(on, values));
}

inline void count_non_finite_into(const cuda::context& on, std::span<const elements> arrays,
                                  std::span<double> number) {
  count_non_finite(on, arrays, number);
}

/// c = form(a, b); `c` keeps its part if form.beta is not 0.
template <class Context>
void product(const Context& on, const matmul_form& form, const tensor& a, const tensor& b,
             tensor& c) {
  compute_in(c.type(),
             [&]<class T>(T) { matmul(on, form, in<T>(on, a), in<T>(on, b), out<T>(on, c)); });
}

/// With operands of f32 that may have been cast.
inline void product(const cuda::context& on, const matmul_form& form, const tensor& a,
                    const tensor& b, tensor& c) {
  if (c.type() == dtype::f64)
    return matmul(on, form, in<double>(on, a), in<double>(on, b), out<double>(on, c));
  matmul(on, form, elements{a}, elements{b}, out<float>(on, c));
}

/// Whether operands are cast for products: once for all products that take them. Twins for a CPU
/// round by themselves.
template <class Context>
bool casts_operands(const Context&, product_precision) {
  return false;
}

inline bool casts_operands(const cuda::context&, product_precision precision) {
  return operand_type(precision) != dtype::f32;
}

/// An operand of products of a precision, which has a shorter type.
template <class Context>
tensor narrowed(const Context& on, const tensor& value, product_precision precision) {
  auto result = make(on, operand_type(precision), value.extents());
  cast(on, elements{value}, mutable_elements{result});
  return result;
}

template <class Context>
tensor sum(const Context& on, const tensor& a, const tensor& b, tensor into) {
  compute_in(a.type(), [&]<class T>(T) { add(on, in<T>(on, a), in<T>(on, b), out<T>(on, into)); });
  return into;
}

template <class Context>
tensor elementwise_product(const Context& on, const tensor& a, const tensor& b, tensor into) {
  compute_in(a.type(),
             [&]<class T>(T) { multiply(on, in<T>(on, a), in<T>(on, b), out<T>(on, into)); });
  return into;
}

template <class Context>
tensor scaled(const Context& on, const tensor& input, double factor, tensor into) {
  compute_in(input.type(), [&]<class T>(T) {
    scale(on, static_cast<T>(factor), in<T>(on, input), out<T>(on, into));
  });
  return into;
}

/// Divides gradients by a scale. @returns How many of their elements are infinite or NaN, in f64.
template <class Context>
tensor unscale(const Context& on, std::vector<gradient>& gradients, double scale) {
  auto non_finite = make(on, dtype::f64, shape{});
  std::vector<elements> arrays;
  for (auto& each : gradients) {
    auto* rows = std::get_if<indexed_slices>(&each);
    auto& values = rows == nullptr ? std::get<tensor>(each) : rows->values;
    values = scaled(on, values, 1 / scale, reuse(on, values));
    arrays.emplace_back(values);
  }
  count_non_finite_into(on, arrays, out<double>(on, non_finite));
  return non_finite;
}

template <class Context>
tensor with_bias(const Context& on, const tensor& input, const tensor& bias, tensor into) {
  compute_in(input.type(), [&]<class T>(T) {
    add_bias(on, in<T>(on, input), in<T>(on, bias), out<T>(on, into));
  });
  return into;
}

template <class Context>
tensor column_sums(const Context& on, const tensor& output_gradient, const shape& extents) {
  auto result = make(on, output_gradient.type(), extents);
  compute_in(result.type(), [&]<class T>(T) {
    bias_gradient(on, in<T>(on, output_gradient), out<T>(on, result));
  });
  return result;
}

template <class Context>
tensor activated(const Context& on, activation kind, const tensor& input) {
  auto output = make_like(on, input);
  compute_in(input.type(),
             [&]<class T>(T) { activate(on, kind, in<T>(on, input), out<T>(on, output)); });
  return output;
}

template <class Context>
tensor activated_gradient(const Context& on, activation kind, const tensor& input,
                          const tensor& output, const tensor& output_gradient, tensor into) {
  compute_in(input.type(), [&]<class T>(T) {
    activate_gradient(on, kind, in<T>(on, input), in<T>(on, output), in<T>(on, output_gradient),
                      out<T>(on, into));
  });
  return into;
}

/// @param placed The key where the context computes; no tensor: it is taken from `key`.
template <class Context>
tensor with_dropout(const Context& on, double rate, const random_key& key, const tensor& placed,
                    const tensor& input, tensor into) {
  compute_in(input.type(), [&]<class T>(T) {
    if constexpr (std::is_same_v<Context, cuda::context>) {
      if (placed.data() != nullptr) {
        const auto* there = static_cast<const random_key*>(placed.data());
        return dropout(on, rate, there, in<T>(on, input), out<T>(on, into));
      }
    }
    dropout(on, rate, key, in<T>(on, input), out<T>(on, into));
  });
  return into;
}

template <class Context>
tensor looked_up(const Context& on, const tensor& table, const tensor& indices) {
  auto extents = indices.extents().dims();
  extents.push_back(table.extents()[1]);
  auto output = make(on, table.type(), shape(extents));
  compute_in(table.type(), [&]<class T>(T) {
    embedding(on, in<T>(on, table), in<int64_t>(on, indices), out<T>(on, output));
  });
  return output;
}

/// table[indices] += rows.
template <class Context>
void scatter(const Context& on, const tensor& rows, const tensor& indices, tensor& table) {
  compute_in(table.type(), [&]<class T>(T) {
    embedding_gradient(on, in<T>(on, rows), in<int64_t>(on, indices), out<T>(on, table));
  });
}

template <class Context>
tensor transposed(const Context& on, const tensor& input) {
  auto rows = input.extents()[0], columns = input.extents()[1];
  auto output = make(on, input.type(), {columns, rows});
  compute_in(input.type(), [&]<class T>(T) {
    transpose(on, static_cast<size_t>(rows), in<T>(on, input), out<T>(on, output));
  });
  return output;
}

/// Writes `rows` into `whole`, from row `begin` on.
template <class Context>
void put_rows(const Context& on, const tensor& rows, tensor& whole, int64_t begin) {
  scaled(on, rows, 1, whole.slice(begin, begin + rows.extents()[0]));
}

template <class Context>
tensor mean_of(const Context& on, const tensor& input) {
  auto output = make(on, input.type(), shape{});
  compute_in(input.type(),
             [&]<class T>(T) { mean_into(on, in<T>(on, input), out<T>(on, output)); });
  return output;
}

/// The gradient of `mean_of` by its operand, of those extents.
template <class Context>
tensor mean_gradient_of(const Context& on, const tensor& output_gradient, const shape& extents) {
  auto result = make(on, output_gradient.type(), extents);
  compute_in(result.type(), [&]<class T>(T) {
    mean_gradient(on, in<T>(on, output_gradient), out<T>(on, result));
  });
  return result;
}

/// The output of `layer_norm`, and the statistics that its gradient needs.
struct normalised {
  tensor output;
  tensor means;
  tensor inverse_deviations;

  template <class T, class Context>
  layer_norm_statistics<T> statistics(const Context& on) {
    return {out<T>(on, means), out<T>(on, inverse_deviations)};
  }
};

template <class Context>
normalised normalise(const Context& on, const tensor& input, const tensor& gain, const tensor& bias,
                     double epsilon) {
  auto columns = gain.extents()[0];
  shape rows{columns == 0 ? 0 : input.extents().element_count() / columns};
  normalised result{make_like(on, input), make(on, input.type(), rows),
                    make(on, input.type(), rows)};
  compute_in(input.type(), [&]<class T>(T) {
    layer_norm(on, static_cast<T>(epsilon), in<T>(on, input),
               layer_norm_parameters<T>{in<T>(on, gain), in<T>(on, bias)},
               out<T>(on, result.output), result.statistics<T>(on));
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
  normalised_gradients result{reuse(on, output_gradient), make_like(on, gain), make_like(on, gain)};
  compute_in(input.type(), [&]<class T>(T) {
    layer_norm_gradient(on, in<T>(on, input), in<T>(on, gain), forward.statistics<T>(on),
                        in<T>(on, output_gradient),
                        layer_norm_gradients<T>{out<T>(on, result.input), out<T>(on, result.gain),
                                                out<T>(on, result.bias)});
  });
  return result;
}

/// The output of `rms_norm`, and the numbers that its gradient needs besides.
struct scaled_rows {
  tensor output;
  tensor inverse_roots;
};

template <class Context>
scaled_rows scale_rows(const Context& on, const tensor& input, const tensor& gain, double epsilon) {
  auto columns = gain.extents()[0];
  shape rows{columns == 0 ? 0 : input.extents().element_count() / columns};
  scaled_rows result{make_like(on, input), make(on, input.type(), rows)};
  compute_in(input.type(), [&]<class T>(T) {
    rms_norm(on, static_cast<T>(epsilon), in<T>(on, input), in<T>(on, gain),
             out<T>(on, result.output), out<T>(on, result.inverse_roots));
  });
  return result;
}

/// The gradients of `scale_rows` by its two operands.
struct scaled_rows_gradients {
  tensor input;
  tensor gain;
};

template <class Context>
scaled_rows_gradients scale_rows_gradient(const Context& on, const tensor& input,
                                          const tensor& gain, const scaled_rows& forward,
                                          const tensor& output_gradient) {
  scaled_rows_gradients result{reuse(on, output_gradient), make_like(on, gain)};
  compute_in(input.type(), [&]<class T>(T) {
    rms_norm_gradient(on, in<T>(on, input), in<T>(on, gain), in<T>(on, forward.inverse_roots),
                      in<T>(on, output_gradient), out<T>(on, result.input),
                      out<T>(on, result.gain));
  });
  return result;
}

/// The output of `causal_self_attention`, and what its gradient needs besides.
struct attended {
  tensor output;
  tensor log_sums;
};

template <class Context>
attended attend(const Context& on, const attention_form& form, const tensor& packed) {
  auto batch = packed.extents()[0], context = packed.extents()[1];
  attended result{
    make(on, packed.type(), shape{batch, context, static_cast<int64_t>(form.width())}),
    make(on, packed.type(), shape{batch, static_cast<int64_t>(form.heads), context})};
  compute_in(packed.type(), [&]<class T>(T) {
    causal_self_attention(on, form, in<T>(on, packed), out<T>(on, result.output),
                          out<T>(on, result.log_sums));
  });
  return result;
}

template <class Context>
tensor attend_gradient(const Context& on, const attention_form& form, const tensor& packed,
                       const attended& forward, const tensor& output_gradient) {
  auto result = make_like(on, packed);
  compute_in(packed.type(), [&]<class T>(T) {
    causal_self_attention_gradient(
      on, form, in<T>(on, packed),
      attention_outcome<T>{in<T>(on, forward.output), in<T>(on, forward.log_sums)},
      in<T>(on, output_gradient), out<T>(on, result));
  });
  return result;
}

/// Memory for the outputs of the windows of images, with so many numbers for each window.
template <class Context>
tensor make_outputs(const Context& on, dtype type, const image_windows& windows, size_t numbers) {
  return make(on, type,
              shape{static_cast<int64_t>(windows.batch),
                    static_cast<int64_t>(windows.output_height()),
                    static_cast<int64_t>(windows.output_width()), static_cast<int64_t>(numbers)});
}

template <class Context>
tensor convolved(const Context& on, const convolution_extents& extents, const tensor& input,
                 const tensor& weights) {
  auto output = make_outputs(on, input.type(), extents, extents.outputs);
  compute_in(input.type(), [&]<class T>(T) {
    convolve(on, extents, in<T>(on, input), in<T>(on, weights), out<T>(on, output));
  });
  return output;
}

template <class Context>
tensor convolved_input_gradient(const Context& on, const convolution_extents& extents,
                                const tensor& input, const tensor& weights,
                                const tensor& output_gradient) {
  auto result = make_like(on, input);
  compute_in(input.type(), [&]<class T>(T) {
    convolve_input_gradient(on, extents, in<T>(on, weights), in<T>(on, output_gradient),
                            out<T>(on, result));
  });
  return result;
}

template <class Context>
tensor convolved_weights_gradient(const Context& on, const convolution_extents& extents,
                                  const tensor& input, const tensor& weights,
                                  const tensor& output_gradient) {
  auto result = make_like(on, weights);
  compute_in(input.type(), [&]<class T>(T) {
    convolve_weights_gradient(on, extents, in<T>(on, input), in<T>(on, output_gradient),
                              out<T>(on, result));
  });
  return result;
}

template <class Context>
tensor pooled(const Context& on, const image_windows& windows, const tensor& input) {
  auto output = make_outputs(on, input.type(), windows, windows.channels);
  compute_in(input.type(),
             [&]<class T>(T) { max_pool(on, windows, in<T>(on, input), out<T>(on, output)); });
  return output;
}

template <class Context>
tensor pooled_gradient(const Context& on, const image_windows& windows, const tensor& input,
                       const tensor& output_gradient) {
  auto result = make_like(on, input);
  compute_in(input.type(), [&]<class T>(T) {
    max_pool_gradient(on, windows, in<T>(on, input), in<T>(on, output_gradient),
                      out<T>(on, result));
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
  classified result{make(on, logits.type(), labels.extents()), make_like(on, logits)};
  compute_in(logits.type(), [&]<class T>(T) {
    softmax_cross_entropy(on, in<T>(on, logits), in<int64_t>(on, labels), out<T>(on, result.losses),
                          out<T>(on, result.probabilities));
  });
  return result;
}

template <class Context>
tensor classify_gradient(const Context& on, const tensor& probabilities, const tensor& labels,
                         const tensor& losses_gradient) {
  auto result = make_like(on, probabilities);
  compute_in(result.type(), [&]<class T>(T) {
    softmax_cross_entropy_gradient(on, in<T>(on, probabilities), in<int64_t>(on, labels),
                                   in<T>(on, losses_gradient), out<T>(on, result));
  });
  return result;
}

/// A tensor filled with one value.
template <class Context>
tensor filled(const Context& on, dtype type, const shape& extents, double value) {
  auto output = make(on, type, extents);
  compute_in(type, [&]<class T>(T) { fill(on, out<T>(on, output), static_cast<T>(value)); });
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
  indexed_slices result{{dtype::i64, shape{rows}},
                        make(on, lookups.front().values.type(), shape{rows, table[1]}),
                        table};
  auto indices = result.indices.template mutable_values<int64_t>();
  for (size_t i = 0; i < indices.size(); ++i)
    indices[i] = sum.order.index(i);
  if (sum.width == 0) return result;
  compute_in(result.values.type(),
             [&]<class T>(T) { combine(on, sum, out<T>(on, result.values)); });
  return result;
}

} // namespace troupe::detail
