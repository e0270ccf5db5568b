// SPDX-License-Identifier: Apache-2.0
// The nodes of a tape, and the walk back from a result: for the files that instantiate it.
#pragma once

#include "kernels/tape/tape.hpp"
#include "kernels/tape/tape_checks.hpp"
#include "kernels/tape/tape_kernels.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace troupe {

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
  auto uncombined = uncombined_gradients(loss, parameters);
  if (!uncombined) return tl::unexpected(std::move(uncombined).error());
  std::vector<gradient> result;
  for (const auto& each : *uncombined)
    result.push_back(combined(each));
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
  auto report_from = [&](uint32_t operation) { // nothing before it adds to what it is an operand of
    for (; !by_use.empty() && use_of(by_use.back()) >= operation; by_use.pop_back())
      ready(by_use.back(), combined(collect(parameters[by_use.back()])));
  };
  return walk_back(loss, report_from);
}

template <class Context>
gradient basic_tape<Context>::combined(const uncombined_gradient& parts) const {
  if (const auto* dense = std::get_if<tensor>(&parts)) return *dense;
  return detail::combined(on_, std::get<std::vector<indexed_slices>>(parts));
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
  std::vector<uncombined_gradient> result;
  auto collect_all = [&](uint32_t operation) {
    if (operation > 0) return;
    for (auto parameter : parameters)
      result.push_back(collect(parameter));
  };
  if (auto done = walk_back(loss, collect_all); !done)
    return tl::unexpected(std::move(done).error());
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
  const auto* reason = ": an operand is not on this tape";
  if (std::ranges::all_of(operands, is_here)) {
    if (std::ranges::all_of(operands, is_known)) return true;
    reason
      = ": an operand came after the part that is computed again; capture expressions by value";
  }
  failure_ = {errc::invalid_argument, std::string(operation) + reason};
  return false;
}

template <class Context>
bool basic_tape<Context>::accept(const expected<void>& checked) {
  if (!checked) failure_ = checked.error();
  return checked.has_value();
}

template <class Context>
expression basic_tape<Context>::refuse(error failure) {
  failure_ = std::move(failure);
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

/// Hands on the gradients that arrive, and calls `on_passed` with each operation after that; with
/// 0 at last.
template <class Context>
expected<void> basic_tape<Context>::walk_back(expression loss,
                                              const std::function<void(uint32_t)>& on_passed) {
  struct put_aside { // `on_passed` may ask for other gradients, or throw
    std::vector<arrived>& place;
    std::vector<arrived> outer;

    ~put_aside() { place = std::move(outer); }
  };

  const put_aside until_done{arrived_, std::exchange(arrived_, std::vector<arrived>(node_count()))};
  if (!is_differentiable(loss)) {
    if (on_passed) on_passed(0);
    return {};
  }
  contribute(loss, detail::filled(on_, at(loss).type(), at(loss).extents(), 1));
  return walk_nodes(0, loss.index + 1, on_passed);
}

/// Hands on the gradients that have arrived at the nodes [begin, end), the last node first.
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

/// Contributes the gradients of both operands of a product. @param g That of the product.
template <class Context>
void basic_tape<Context>::contribute_factors(expression a, expression b, const matmul_form& form,
                                             const tensor& g) {
  auto [m, n, k, ta, tb, alpha, beta, batch, precision] = form;
  // With c = op(a) op(b): op(a)' = g op(b)^T and op(b)' = op(a)^T g, transposed where stored so.
  matmul_form by_a{.rows = m, .columns = k, .inner = n, .transpose_b = !tb};
  matmul_form by_b{.rows = k, .columns = n, .inner = m, .transpose_a = !ta};
  if (ta) by_a = {.rows = k, .columns = m, .inner = n, .transpose_a = tb, .transpose_b = true};
  if (tb) by_b = {.rows = n, .columns = k, .inner = m, .transpose_a = true, .transpose_b = ta};
  by_a.batch = by_b.batch = batch;
  by_a.precision = by_b.precision = precision;
  const auto& left = operand(a, precision);
  const auto& right = operand(b, precision);
  auto arriving = detail::casts_operands(on_, precision) ? detail::narrowed(on_, g, precision) : g;
  contribute_product(a, by_a, ta ? right : arriving, ta ? arriving : right);
  contribute_product(b, by_b, tb ? arriving : left, tb ? left : arriving);
}

template <class Context>
uncombined_gradient basic_tape<Context>::collect(expression parameter) {
  auto& here = arrived_[parameter.index];
  if (!here.has_dense && here.sparse.empty())
    contribute(parameter, detail::filled(on_, at(parameter).type(), at(parameter).extents(), 0));
  if (!here.has_dense) {
    std::vector<indexed_slices> lookups; // which stay: a parameter may be listed twice
    for (const auto& from : here.sparse)
      lookups.push_back(from.rows);
    return lookups;
  }
  for (const auto& from : std::exchange(here.sparse, {})) {
    if (!here.dense.is_unique()) here.dense = detail::copied(on_, here.dense);
    detail::scatter(on_, from.rows.values, from.indices, here.dense);
  }
  return here.dense;
}

} // namespace troupe
