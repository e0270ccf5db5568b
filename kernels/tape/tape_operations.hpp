// SPDX-License-Identifier: Apache-2.0
// The operations of a tape, each beside its derivative: for the files that instantiate it.
#pragma once

#include "kernels/tape/tape.hpp"
#include "kernels/tape/tape_checks.hpp"
#include "kernels/tape/tape_kernels.hpp"

#include <utility>

namespace troupe {

template <class Context>
basic_tape<Context>::basic_tape(std::stop_token stop, Context on, product_precision precision)
  : on_(std::move(on)), stop_(std::move(stop)), precision_(precision) {}

// -- operations -----------------------------------------------------------------------------------

template <class Context>
expression basic_tape<Context>::parameter(const tensor& value) {
  return leaf("parameter", value, true);
}

template <class Context>
expression basic_tape<Context>::constant(const tensor& value) {
  if (!usable("constant", {})) return {};
  return leaf("constant", detail::placed(on_, value), false);
}

template <class Context>
expression basic_tape<Context>::matmul(expression a, expression b, transposition transposed) {
  return multiply_matrices(a, b, transposed, precision_);
}

template <class Context>
expression basic_tape<Context>::multiply_matrices(expression a, expression b,
                                                  transposition transposed,
                                                  product_precision precision) {
  if (!usable("matmul", {a, b})) return {};
  auto form = detail::check_matmul("matmul", at(a), at(b), transposed, precision);
  if (!form) return refuse(form.error());
  return record(product_of(a, b, *form), {a, b},
                [this, a, b, form = *form](const tensor& g) { contribute_factors(a, b, form, g); });
}

/// The value of an expression as products take it, kept for the next one.
template <class Context>
const tensor& basic_tape<Context>::operand(expression of, product_precision precision) {
  auto& here = nodes_[of.index];
  if (!detail::casts_operands(on_, precision)) return here.value;
  if (here.narrow.type() != operand_type(precision))
    here.narrow = detail::narrowed(on_, here.value, precision);
  return here.narrow;
}

template <class Context>
tensor basic_tape<Context>::product_of(expression a, expression b, const matmul_form& form) {
  auto extents = at(a).extents().dims();
  extents.rbegin()[1] = static_cast<int64_t>(form.rows);
  extents.back() = static_cast<int64_t>(form.columns);
  auto output = detail::make(on_, at(a).type(), shape(extents));
  detail::product(on_, form, operand(a, form.precision), operand(b, form.precision), output);
  return output;
}

template <class Context>
expression basic_tape<Context>::add_bias(expression input, expression bias) {
  if (!usable("add_bias", {input, bias})) return {};
  if (!accept(detail::check_bias(at(input), at(bias)))) return {};
  auto output = detail::with_bias(on_, at(input), at(bias), detail::make_like(on_, at(input)));
  return record(std::move(output), {input, bias}, [this, input, bias](tensor g) {
    if (is_differentiable(bias)) contribute(bias, detail::column_sums(on_, g, at(bias).extents()));
    contribute(input, std::move(g));
  });
}

template <class Context>
expression basic_tape<Context>::linear(expression input, expression weights, expression bias) {
  if (!usable("linear", {input, weights, bias})) return {};
  auto form = detail::check_matmul("linear", at(input), at(weights), {}, precision_);
  if (!form) return refuse(form.error());
  auto product = product_of(input, weights, *form);
  if (!accept(detail::check_row_vector("linear", product, "bias", at(bias)))) return {};
  auto output = detail::with_bias(on_, product, at(bias), product);
  return record(std::move(output), {input, weights, bias},
                [this, input, weights, bias, form = *form](const tensor& g) {
                  if (is_differentiable(bias))
                    contribute(bias, detail::column_sums(on_, g, at(bias).extents()));
                  contribute_factors(input, weights, form, g);
                });
}

template <class Context>
expression basic_tape<Context>::add(expression a, expression b) {
  if (!usable("add", {a, b})) return {};
  if (!accept(detail::check_alike("add", at(a), at(b)))) return {};
  auto output = detail::sum(on_, at(a), at(b), detail::make_like(on_, at(a)));
  return record(std::move(output), {a, b}, [this, a, b](tensor g) {
    contribute(a, g);
    contribute(b, std::move(g));
  });
}

template <class Context>
expression basic_tape<Context>::multiply(expression a, expression b) {
  if (!usable("multiply", {a, b})) return {};
  if (!accept(detail::check_alike("multiply", at(a), at(b)))) return {};
  auto output = detail::elementwise_product(on_, at(a), at(b), detail::make_like(on_, at(a)));
  return record(std::move(output), {a, b}, [this, a, b](tensor g) {
    if (is_differentiable(a))
      contribute(a, detail::elementwise_product(on_, g, at(b), detail::make_like(on_, g)));
    if (is_differentiable(b))
      contribute(b, detail::elementwise_product(on_, g, at(a), detail::reuse(on_, g)));
  });
}

template <class Context>
expression basic_tape<Context>::scale(expression input, double factor) {
  if (!usable("scale", {input})) return {};
  auto output = detail::scaled(on_, at(input), factor, detail::make_like(on_, at(input)));
  return record(std::move(output), {input}, [this, input, factor](tensor g) {
    contribute(input, detail::scaled(on_, g, factor, detail::reuse(on_, g)));
  });
}

template <class Context>
expression basic_tape<Context>::activate(activation kind, expression input) {
  if (!usable(to_string(kind), {input})) return {};
  auto output = detail::activated(on_, kind, at(input));
  expression self{static_cast<uint32_t>(nodes_.size())};
  return record(std::move(output), {input}, [this, kind, input, self](tensor g) {
    contribute(
      input, detail::activated_gradient(on_, kind, at(input), at(self), g, detail::reuse(on_, g)));
  });
}

template <class Context>
expression basic_tape<Context>::layer_norm(expression input, expression gain, expression bias,
                                           double epsilon) {
  if (!usable("layer_norm", {input, gain, bias})) return {};
  if (!accept(detail::check_row_vector("layer_norm", at(input), "gain", at(gain)))) return {};
  if (!accept(detail::check_row_vector("layer_norm", at(input), "bias", at(bias)))) return {};
  auto forward = detail::normalise(on_, at(input), at(gain), at(bias), epsilon);
  auto output = forward.output;
  return record(std::move(output), {input, gain, bias},
                [this, input, gain, bias, forward](const tensor& g) mutable {
                  auto result = detail::normalise_gradient(on_, at(input), at(gain), forward, g);
                  contribute(input, std::move(result.input));
                  contribute(gain, std::move(result.gain));
                  contribute(bias, std::move(result.bias));
                });
}

template <class Context>
expression basic_tape<Context>::rms_norm(expression input, expression gain, double epsilon) {
  if (!usable("rms_norm", {input, gain})) return {};
  if (!accept(detail::check_row_vector("rms_norm", at(input), "gain", at(gain)))) return {};
  auto forward = detail::scale_rows(on_, at(input), at(gain), epsilon);
  auto output = forward.output;
  return record(std::move(output), {input, gain}, [this, input, gain, forward](const tensor& g) {
    auto result = detail::scale_rows_gradient(on_, at(input), at(gain), forward, g);
    contribute(input, std::move(result.input));
    contribute(gain, std::move(result.gain));
  });
}

template <class Context>
expression basic_tape<Context>::causal_self_attention(expression packed, int64_t heads) {
  if (!usable("causal_self_attention", {packed})) return {};
  auto form = detail::check_attention(at(packed), heads, precision_);
  if (!form) return refuse(form.error());
  auto forward = detail::attend(on_, *form, at(packed));
  auto output = forward.output;
  return record(std::move(output), {packed},
                [this, packed, form = *form, forward](const tensor& g) {
                  contribute(packed, detail::attend_gradient(on_, form, at(packed), forward, g));
                });
}

template <class Context>
expression basic_tape<Context>::conv2d(expression input, expression weights, window_steps steps) {
  if (!usable("conv2d", {input, weights})) return {};
  auto extents = detail::check_convolution(at(input), at(weights), steps);
  if (!extents) return refuse(extents.error());
  return record(detail::convolved(on_, *extents, at(input), at(weights)), {input, weights},
                [this, input, weights, extents = *extents](const tensor& g) {
                  if (is_differentiable(weights))
                    contribute(weights, detail::convolved_weights_gradient(on_, extents, at(input),
                                                                           at(weights), g));
                  if (is_differentiable(input))
                    contribute(input, detail::convolved_input_gradient(on_, extents, at(input),
                                                                       at(weights), g));
                });
}

template <class Context>
expression basic_tape<Context>::max_pool2d(expression input, int64_t window, window_steps steps) {
  if (!usable("max_pool2d", {input})) return {};
  auto windows = detail::check_max_pool(at(input), window, steps);
  if (!windows) return refuse(windows.error());
  return record(detail::pooled(on_, *windows, at(input)), {input},
                [this, input, windows = *windows](const tensor& g) {
                  contribute(input, detail::pooled_gradient(on_, windows, at(input), g));
                });
}

template <class Context>
expression basic_tape<Context>::dropout(expression input, double rate, const random_key& key,
                                        const tensor& placed) {
  if (!usable("dropout", {input})) return {};
  if (!accept(detail::check_dropout(at(input), rate))) return {};
  auto where = detail::place_of(on_);
  if (!accept(detail::check_placed("dropout", key_elements, placed, where))) return {};
  if (rate == 0) return input;
  auto output
    = detail::with_dropout(on_, rate, key, placed, at(input), detail::make_like(on_, at(input)));
  return record(std::move(output), {input}, [this, input, rate, key, placed](tensor g) {
    contribute(input, detail::with_dropout(on_, rate, key, placed, g, detail::reuse(on_, g)));
  });
}

template <class Context>
expression basic_tape<Context>::embedding(expression table, const tensor& given,
                                          const tensor& placed) {
  if (!usable("embedding", {table})) return {};
  if (!accept(detail::check_embedding(at(table), given))) return {};
  auto where = detail::place_of(on_);
  if (!accept(detail::check_placed("embedding", count_of(given), placed, where))) return {};
  auto indices = given.contiguous();
  auto limit = at(table).extents()[0];
  auto found = detail::find_outside_here(on_, indices.template values<int64_t>(), limit);
  if (found < indices.element_count())
    return refuse(detail::outside("embedding", indices, found, limit).value());
  auto there
    = placed.data() == nullptr ? detail::placed(on_, indices) : placed.reshape(indices.extents());
  auto output = detail::looked_up(on_, at(table), there);
  return record(std::move(output), {table}, [this, table, indices, there](const tensor& g) {
    auto rows = static_cast<int64_t>(indices.element_count());
    auto extents = at(table).extents();
    contribute_rows(table,
                    {{indices.reshape({rows}), g.reshape({rows, extents[1]}), extents}, there});
  });
}

template <class Context>
expression basic_tape<Context>::reshape(expression input, const shape& extents) {
  if (!usable("reshape", {input})) return {};
  if (!accept(detail::check_reshape(at(input), extents))) return {};
  return record(at(input).reshape(extents), {input}, [this, input](const tensor& g) {
    contribute(input, g.reshape(at(input).extents()));
  });
}

template <class Context>
expression basic_tape<Context>::transpose(expression input) {
  if (!usable("transpose", {input})) return {};
  if (!accept(detail::check_transpose(at(input)))) return {};
  return record(detail::transposed(on_, at(input)), {input},
                [this, input](const tensor& g) { contribute(input, detail::transposed(on_, g)); });
}

template <class Context>
expression basic_tape<Context>::slice(expression input, int64_t begin, int64_t end) {
  if (!usable("slice", {input})) return {};
  if (!accept(detail::check_slice(at(input), begin, end))) return {};
  return record(at(input).slice(begin, end), {input}, [this, input, begin](const tensor& g) {
    auto whole = detail::filled(on_, g.type(), at(input).extents(), 0);
    detail::put_rows(on_, g, whole, begin);
    contribute(input, std::move(whole));
  });
}

template <class Context>
expression basic_tape<Context>::concatenate(expression a, expression b) {
  if (!usable("concatenate", {a, b})) return {};
  if (!accept(detail::check_concatenate(at(a), at(b)))) return {};
  auto extents = at(a).extents().dims();
  auto middle = extents[0];
  extents[0] += at(b).extents()[0];
  auto output = detail::make(on_, at(a).type(), shape(extents));
  detail::put_rows(on_, at(a), output, 0);
  detail::put_rows(on_, at(b), output, middle);
  return record(std::move(output), {a, b}, [this, a, b, middle](const tensor& g) {
    contribute(a, g.slice(0, middle));
    contribute(b, g.slice(middle, g.extents()[0]));
  });
}

template <class Context>
expression basic_tape<Context>::row_sums(expression input) {
  if (!usable("row_sums", {input})) return {};
  if (!accept(detail::check_row_sums(at(input)))) return {};
  auto extents = at(input).extents().dims();
  auto columns = extents.back();
  extents.pop_back();
  const shape rows{extents};
  auto ones = constant(detail::filled(on_, at(input).type(), {columns, 1}, 1));
  auto matrix = reshape(input, {rows.element_count(), columns});
  return reshape(multiply_matrices(matrix, ones, {}, product_precision::full), rows); // sums
}

template <class Context>
expression basic_tape<Context>::mean(expression input) {
  if (!usable("mean", {input})) return {};
  if (!accept(detail::check_mean(at(input)))) return {};
  return record(detail::mean_of(on_, at(input)), {input}, [this, input](const tensor& g) {
    contribute(input, detail::mean_gradient_of(on_, g, at(input).extents()));
  });
}

template <class Context>
expression basic_tape<Context>::softmax_cross_entropy(expression logits, const tensor& given,
                                                      const tensor& placed) {
  if (!usable("softmax_cross_entropy", {logits})) return {};
  if (!accept(detail::check_labels(at(logits), given))) return {};
  auto where = detail::place_of(on_);
  if (!accept(detail::check_placed("softmax_cross_entropy", count_of(given), placed, where)))
    return {};
  auto labels = given.contiguous();
  auto classes = at(logits).extents()[1];
  auto found = detail::find_outside_here(on_, labels.template values<int64_t>(), classes);
  if (found < labels.element_count())
    return refuse(detail::outside("softmax_cross_entropy", labels, found, classes).value());
  labels = placed.data() == nullptr ? detail::placed(on_, labels) : placed.reshape(given.extents());
  auto forward = detail::classify(on_, at(logits), labels);
  auto mean = labels.element_count() > 0 ? detail::mean_of(on_, forward.losses)
                                         : detail::filled(on_, at(logits).type(), {}, 0);
  return record(mean, {logits},
                [this, logits, labels, probabilities = forward.probabilities](const tensor& g) {
                  auto losses = detail::mean_gradient_of(on_, g, labels.extents());
                  contribute(logits, detail::classify_gradient(on_, probabilities, labels, losses));
                });
}

template <class Context>
expression basic_tape<Context>::recompute(tape_part part) {
  if (!usable("recompute", {})) return {};
  if (!part) return refuse({errc::invalid_argument, "recompute: the part is empty"});
  const auto begin = node_count();
  auto result = run(part);
  if (failure_.code != errc::none || result.index < begin) return result;
  node kept{at(result), false, is_differentiable(result), {}};
  if (kept.is_differentiable)
    kept.backward
      = [this, begin, part = std::move(part)](tensor g) { walk_part(part, begin, std::move(g)); };
  nodes_.resize(begin);
  nodes_.push_back(std::move(kept));
  return {begin};
}

} // namespace troupe
