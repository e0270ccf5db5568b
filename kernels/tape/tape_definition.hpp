// SPDX-License-Identifier: Apache-2.0
// The operations of a tape, each beside its derivative, and the walk back from a result. For the
// files that compile it for a context.
#pragma once

#include "kernels/tape/tape.hpp"
#include "kernels/tape/tape_checks.hpp"
#include "kernels/tape/tape_kernels.hpp"
#include "messages/assert.hpp"

#include <algorithm>
#include <numeric>
#include <string>
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
  auto form = detail::check_matmul(at(a), at(b), transposed, precision);
  if (!form) return refuse(form.error());
  auto extents = at(a).extents().dims();
  extents.rbegin()[1] = static_cast<int64_t>(form->rows);
  extents.back() = static_cast<int64_t>(form->columns);
  auto output = detail::make(on_, at(a).type(), shape(extents));
  detail::product(on_, *form, at(a), at(b), output);
  return record(std::move(output), {a, b}, [this, a, b, form = *form](const tensor& g) {
    auto [m, n, k, ta, tb, alpha, beta, batch, precision] = form;
    // With c = op(a) op(b): op(a)' = g op(b)^T and op(b)' = op(a)^T g, transposed where stored so.
    matmul_form by_a{.rows = m, .columns = k, .inner = n, .transpose_b = !tb};
    matmul_form by_b{.rows = k, .columns = n, .inner = m, .transpose_a = !ta};
    if (ta) by_a = {.rows = k, .columns = m, .inner = n, .transpose_a = tb, .transpose_b = true};
    if (tb) by_b = {.rows = n, .columns = k, .inner = m, .transpose_a = true, .transpose_b = ta};
    by_a.batch = by_b.batch = batch;
    by_a.precision = by_b.precision = precision;
    contribute_product(a, by_a, ta ? at(b) : g, ta ? g : at(b));
    contribute_product(b, by_b, tb ? g : at(a), tb ? at(a) : g);
  });
}

template <class Context>
expression basic_tape<Context>::add_bias(expression input, expression bias) {
  if (!usable("add_bias", {input, bias})) return {};
  if (!accept(detail::check_bias(at(input), at(bias)))) return {};
  auto output = detail::biased(on_, at(input), at(bias));
  return record(std::move(output), {input, bias}, [this, input, bias](tensor g) {
    if (is_differentiable(bias)) contribute(bias, detail::column_sums(on_, g, at(bias).extents()));
    contribute(input, std::move(g));
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
  auto extents = detail::check_attention(at(packed), heads);
  if (!extents) return refuse(extents.error());
  auto forward = detail::attend(on_, *extents, at(packed));
  auto output = forward.output;
  return record(std::move(output), {packed},
                [this, packed, extents = *extents, forward](const tensor& g) {
                  contribute(packed, detail::attend_gradient(on_, extents, at(packed), forward, g));
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
    = detail::thinned(on_, rate, key, placed, at(input), detail::make_like(on_, at(input)));
  return record(std::move(output), {input}, [this, input, rate, key, placed](tensor g) {
    contribute(input, detail::thinned(on_, rate, key, placed, g, detail::reuse(on_, g)));
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
  return record(detail::mean_of(on_, forward.losses), {logits},
                [this, logits, labels, probabilities = forward.probabilities](const tensor& g) {
                  auto losses = detail::mean_gradient_of(on_, g, labels.extents());
                  contribute(logits, detail::classify_gradient(on_, probabilities, labels, losses));
                });
}

template <class Context>
expression basic_tape<Context>::recompute(tape_part part) {
  if (!usable("recompute", {})) return {};
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

// -- results --------------------------------------------------------------------------------------

template <class Context>
expected<tensor> basic_tape<Context>::value(expression of) const {
  if (failure_.code != errc::none) return tl::unexpected(failure_);
  if (of.index < nodes_.size()) return at(of);
  return fail(errc::invalid_argument, "value: the expression is not on this tape");
}

template <class Context>
expected<std::vector<gradient>>
basic_tape<Context>::gradients(expression loss, std::span<const expression> parameters) {
  auto apart = uncombined_gradients(loss, parameters);
  if (!apart) return tl::unexpected(std::move(apart).error());
  std::vector<gradient> result;
  for (auto& one : *apart)
    result.push_back(combined(one));
  return result;
}

template <class Context>
expected<void> basic_tape<Context>::gradients(expression loss,
                                              std::span<const expression> parameters,
                                              const gradient_ready& ready) {
  if (auto checked = check_gradients(loss, parameters); !checked) return checked;
  std::vector<size_t> by_use(parameters.size());
  std::iota(by_use.begin(), by_use.end(), 0);
  auto use_of = [&](size_t i) { return nodes_[parameters[i].index].first_use; };
  std::ranges::stable_sort(by_use, {}, use_of);
  arrived_.assign(nodes_.size(), {});
  auto tell_from = [&](uint32_t operation) { // nothing before it adds to what it is an operand of
    for (; !by_use.empty() && use_of(by_use.back()) >= operation; by_use.pop_back())
      ready(by_use.back(), combined(collect(parameters[by_use.back()])));
  };
  auto done = walk_back(loss, tell_from);
  if (done) tell_from(0);
  arrived_.clear();
  return done;
}

template <class Context>
gradient basic_tape<Context>::combined(const uncombined_gradient& of) const {
  if (const auto* dense = std::get_if<tensor>(&of)) return *dense;
  return detail::combined(on_, std::get<std::vector<indexed_slices>>(of));
}

template <class Context>
unscaled_gradients basic_tape<Context>::unscaled(std::vector<gradient> scaled, double scale) const {
  auto non_finite = detail::unscale(on_, scaled, scale);
  return {std::move(scaled), std::move(non_finite)};
}

template <class Context>
expected<std::vector<uncombined_gradient>>
basic_tape<Context>::uncombined_gradients(expression loss, std::span<const expression> parameters) {
  if (auto checked = check_gradients(loss, parameters); !checked)
    return tl::unexpected(std::move(checked).error());
  arrived_.assign(nodes_.size(), {});
  auto done = walk_back(loss);
  std::vector<uncombined_gradient> result;
  if (done)
    for (auto parameter : parameters)
      result.push_back(collect(parameter));
  arrived_.clear();
  if (!done) return tl::unexpected(done.error());
  return result;
}

template <class Context>
expected<void> basic_tape<Context>::check_gradients(expression loss,
                                                    std::span<const expression> parameters) {
  usable("gradients", {loss});
  if (failure_.code != errc::none) return tl::unexpected(failure_);
  if (part_.begin != expression::none)
    return fail(errc::invalid_argument, "gradients: not within a part that is computed again");
  if (at(loss).element_count() != 1)
    return fail(errc::invalid_argument,
                "gradients: the loss is a single number, not " + to_string(at(loss).extents()));
  auto is_parameter
    = [&](expression of) { return of.index < nodes_.size() && nodes_[of.index].is_parameter; };
  if (!std::ranges::all_of(parameters, is_parameter))
    return fail(errc::invalid_argument,
                "gradients: differentiates by parameters of this tape only");
  return {};
}

// -- bookkeeping ----------------------------------------------------------------------------------

/// True if nothing has failed, no stop is asked for, and the operands are on this tape.
template <class Context>
bool basic_tape<Context>::usable(std::string_view operation,
                                 std::initializer_list<expression> operands) {
  if (failure_.code != errc::none || !accept(detail::status_of(on_))) return false;
  if (stop_.stop_requested()) {
    failure_ = {errc::cancelled, "the computation was told to stop"};
    return false;
  }
  auto is_here = [this](expression operand) { return operand.index < nodes_.size(); };
  auto is_known = [this](expression operand) {
    return operand.index < part_.stands_for || operand.index >= part_.begin;
  };
  const auto* why = ": an operand is not on this tape";
  if (std::ranges::all_of(operands, is_here)) {
    if (std::ranges::all_of(operands, is_known)) return true;
    why = ": an operand came after the part that is computed again; capture expressions by value";
  }
  failure_ = {errc::invalid_argument, std::string(operation) + why};
  return false;
}

template <class Context>
bool basic_tape<Context>::accept(const expected<void>& checked) {
  if (!checked) failure_ = checked.error();
  return checked.has_value();
}

template <class Context>
expression basic_tape<Context>::refuse(error why) {
  failure_ = std::move(why);
  return {};
}

template <class Context>
expression basic_tape<Context>::leaf(std::string_view operation, const tensor& value,
                                     bool is_parameter) {
  if (!usable(operation, {})) return {};
  if (!accept(detail::check_leaf(operation, value, detail::place_of(on_)))) return {};
  if (is_parameter && part_.begin != expression::none)
    return refuse({errc::invalid_argument, "parameter: make it before a part that is computed "
                                           "again, not within it"});
  nodes_.push_back({value.contiguous(), is_parameter, is_parameter, {}});
  return {static_cast<uint32_t>(nodes_.size() - 1)};
}

template <class Context>
expression basic_tape<Context>::record(tensor value, std::initializer_list<expression> operands,
                                       const backward_function& backward) {
  node added{std::move(value), false, false, {}};
  for (auto operand : operands) {
    added.is_differentiable |= is_differentiable(operand);
    auto& first_use = nodes_[operand.index].first_use;
    first_use = std::min({first_use, node_count(), part_.begin});
  }
  if (added.is_differentiable) added.backward = backward;
  nodes_.push_back(std::move(added));
  return {static_cast<uint32_t>(nodes_.size() - 1)};
}

/// Computes a part: its nodes lie behind all others then.
template <class Context>
expression basic_tape<Context>::run(const tape_part& part, uint32_t stands_for) {
  struct restored { // also when the part throws: the tape can be used further
    running_part& place;
    running_part outer;

    ~restored() { place = outer; }
  };

  auto result = [&] {
    const restored after{part_, part_};
    part_ = {std::min(part_.begin, node_count()), std::min(part_.stands_for, stands_for)};
    return part();
  }();
  return usable("recompute", {result}) ? result : expression{};
}

// -- the way back ---------------------------------------------------------------------------------

template <class Context>
expected<void> basic_tape<Context>::walk_back(expression loss,
                                              const std::function<void(uint32_t)>& on_passed) {
  if (!is_differentiable(loss)) return {};
  contribute(loss, detail::filled(on_, at(loss).type(), at(loss).extents(), 1));
  return walk_nodes(0, loss.index + 1, on_passed);
}

/// Hands on what has arrived at the nodes [begin, end), the last one first.
template <class Context>
expected<void> basic_tape<Context>::walk_nodes(uint32_t begin, uint32_t end,
                                               const std::function<void(uint32_t)>& on_passed) {
  for (auto index = end; index-- > begin;) {
    auto& here = arrived_[index];
    if (here.has_dense && !nodes_[index].is_parameter) {
      if (!usable("gradients", {})) return tl::unexpected(failure_);
      // Operands lie before their operation, so all that ever arrives here has arrived.
      here.has_dense = false;
      nodes_[index].backward(std::move(here.dense));
      if (failure_.code != errc::none) return tl::unexpected(failure_);
    }
    if (on_passed) on_passed(index);
  }
  return {};
}

/// Computes a part again, and hands the gradient of its result on to all that it takes.
template <class Context>
void basic_tape<Context>::walk_part(const tape_part& part, uint32_t stands_for,
                                    tensor output_gradient) {
  const auto begin = node_count();
  auto result = run(part, stands_for);
  if (failure_.code != errc::none) return;
  if (!accept(detail::check_alike("recompute", at(result), output_gradient))) return;
  arrived_.resize(nodes_.size());
  contribute(result, std::move(output_gradient));
  static_cast<void>(walk_nodes(begin, node_count())); // a failure stays on the tape
  nodes_.resize(begin);
  arrived_.resize(begin);
}

template <class Context>
void basic_tape<Context>::contribute(expression to, tensor dense) {
  if (!is_differentiable(to)) return;
  auto& here = arrived_[to.index];
  if (!std::exchange(here.has_dense, true))
    here.dense = std::move(dense);
  else
    here.dense = detail::sum(on_, here.dense, dense, detail::reuse(on_, here.dense));
}

template <class Context>
void basic_tape<Context>::contribute_rows(expression to, const arrived_rows& from) {
  if (!is_differentiable(to)) return;
  auto& here = arrived_[to.index];
  if (nodes_[to.index].is_parameter) {
    here.sparse.push_back(from);
    return;
  }
  auto spread = detail::filled(on_, from.rows.values.type(), from.rows.dense_extents, 0);
  detail::scatter(on_, from.rows.values, from.indices, spread);
  contribute(to, std::move(spread));
}

/// Contributes form(a, b), adding to what has arrived without a second pass over memory.
template <class Context>
void basic_tape<Context>::contribute_product(expression to, const matmul_form& form,
                                             const tensor& a, const tensor& b) {
  if (!is_differentiable(to)) return;
  auto& here = arrived_[to.index];
  if (here.has_dense && here.dense.is_unique()) {
    auto adding = form;
    adding.beta = 1;
    return detail::product(on_, adding, a, b, here.dense);
  }
  auto fresh = detail::make_like(on_, at(to));
  detail::product(on_, form, a, b, fresh);
  contribute(to, std::move(fresh));
}

template <class Context>
uncombined_gradient basic_tape<Context>::collect(expression parameter) {
  auto& here = arrived_[parameter.index];
  if (!here.has_dense && here.sparse.empty())
    contribute(parameter, detail::filled(on_, at(parameter).type(), at(parameter).extents(), 0));
  auto sparse = std::exchange(here.sparse, {});
  if (!here.has_dense) {
    std::vector<indexed_slices> lookups;
    for (auto& from : sparse)
      lookups.push_back(std::move(from.rows));
    return lookups;
  }
  for (const auto& from : sparse) {
    if (!here.dense.is_unique()) here.dense = detail::copied(on_, here.dense);
    detail::scatter(on_, from.rows.values, from.indices, here.dense);
  }
  return here.dense;
}

} // namespace troupe
