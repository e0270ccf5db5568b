// SPDX-License-Identifier: Apache-2.0
// The choice of the kernels of an update, written once for all contexts.
#pragma once

#include "kernels/math/clip.hpp"
#include "kernels/math/elementwise.hpp"
#include "kernels/math/reduce.hpp"
#include "kernels/tensor/change.hpp"
#include "kernels/tensor/placement.hpp"
#include "kernels/updates/sparse_update.hpp"
#include "kernels/updates/update.hpp"
#include "kernels/updates/update_batch.hpp"
#include "kernels/updates/update_pass.hpp"
#include "messages/errors/assert.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

// The kernels are found through their first argument, as those of the tape.
namespace troupe::detail {

/// The rows of some sparse gradients in order, with the memory that the order needs.
struct ordered_rows {
  std::vector<tensor> placed_values; ///< Where the context computes.
  std::vector<row_source> sources;
  std::vector<row_entry> entries;
  std::vector<size_t> starts;
  row_order order;

  template <class Context>
  ordered_rows(const Context& on, std::span<const gradient> gradients) {
    for (const auto& sparse : gradients) {
      const auto& slices = std::get<indexed_slices>(sparse);
      const auto& there = placed_values.emplace_back(placement::placed(on, slices.values));
      sources.emplace_back(slices.indices.values<int64_t>(), elements{there});
    }
    auto rows = row_count(sources);
    entries.resize(2 * rows);
    starts.resize(rows + 1);
    order = order_rows(sources, entries, starts);
  }
};

inline size_t row_width(const tensor& table) {
  return table.extents()[0] == 0 ? 0
                                 : table.element_count() / static_cast<size_t>(table.extents()[0]);
}

inline bool are_sparse(std::span<const gradient> gradients) {
  auto is_sparse = [](const gradient& one) { return std::holds_alternative<indexed_slices>(one); };
  return std::ranges::all_of(gradients, is_sparse);
}

inline sparse_sum mean_of(const ordered_rows& rows, const tensor& table,
                          const gradient_mean& mean) {
  return {.sources = rows.sources,
          .order = rows.order,
          .width = row_width(table),
          .divisor = static_cast<double>(std::max(mean.divisor, 1U)),
          .scale = mean.scale,
          .divides_by_count = mean.divisor == 0};
}

template <class T, class Context>
tensor dense_form(const Context& on, const sparse_sum& rows, const tensor& table) {
  auto dense = placement::make_like(on, table);
  densify<T>(on, rows, placement::out<T>(on, dense));
  return dense;
}

/// Gradients of which at least one is dense: the others are made so.
template <class T, class Context>
struct dense_gradients {
  const Context& on;
  std::vector<tensor> arrays; ///< Where the context computes.
  std::vector<elements> sources;
  gradient_sum sum;

  dense_gradients(const Context& context, const gradient_mean& mean, const tensor& table)
    : on(context) {
    auto count = mean.gradients.size();
    for (const auto& gradient : mean.gradients)
      sources.emplace_back(arrays.emplace_back(as_dense(gradient, table)));
    sum = {.sources = sources,
           .divisor = mean.divisor == 0 ? static_cast<double>(count) : mean.divisor,
           .scale = mean.scale};
  }

  tensor as_dense(const gradient& given, const tensor& table) {
    if (const auto* dense = std::get_if<tensor>(&given)) return placement::placed(on, *dense);
    ordered_rows rows{on, {&given, 1}};
    sparse_sum alone{.sources = rows.sources, .order = rows.order, .width = row_width(table)};
    return dense_form<T>(on, alone, table);
  }
};

/// Scales a mean gradient to a norm. @returns The memory of the scale; null, if it is `sum.scale`.
template <class T, class Context, class Sum>
std::shared_ptr<std::byte> clip_by_norm(const Context& on, Sum& sum, double norm_max) {
  sum.scale *= clip_factor(std::sqrt(squared_norm<T>(on, sum)), norm_max);
  return nullptr;
}

template <class T, class Sum>
std::shared_ptr<std::byte> clip_by_norm(const cuda::context& on, Sum& sum, double norm_max);

/// Cuts the mean gradient, dense or sparse, as the plan says. @returns As `clip_by_norm`.
template <class T, class Context, class Sum>
std::shared_ptr<std::byte> clip(const Context& on, Sum& sum, const gradient_clip& limits) {
  if (limits.value_max > 0) sum.limit = limits.value_max;
  return limits.norm_max > 0 ? clip_by_norm<T>(on, sum, limits.norm_max) : nullptr;
}

/// The same elements, with no other holder; a checkpoint may be looking at the old ones.
template <class Context>
tensor& unshared(const Context& on, tensor& values) {
  if (!values.is_unique()) values = placement::copied(on, values);
  return values;
}

/// One update on its way; T is the variable's type.
template <class T, class Context>
struct update_in_work {
  const Context& on;
  variable_state& state;
  const update_plan& plan;
  update_rule rule; // as it is at this update

  update_in_work(const Context& context, variable_state& variable, const update_plan& all)
    : on(context), state(variable), plan(all),
      rule(
        at_update(plan.schedule.at(plan.rule, state.version), state.version - state.slots_since)) {}

  averaged<T> average() {
    if (!state.average) return {};
    auto& shadow = unshared(on, state.average->values);
    return {placement::out<T>(on, shadow), 1 - plan.average->decay_at(state.version)};
  }

  prepared_update<T> dense(gradient_sum sum, std::vector<tensor> gradients,
                           std::vector<elements> sources, std::shared_ptr<std::byte> scale = {}) {
    std::vector<replaced<T>> slots;
    for (auto& slot : state.slots)
      slots.push_back(in_place(placement::out<T>(on, unshared(on, slot.values))));
    auto after = placement::reuse(on, state.value);
    replaced<T> value{placement::in<T>(on, state.value), placement::out<T>(on, after)};
    sum.sources = sources;
    return {{rule, sum, value, std::move(slots), average()},
            std::move(gradients),
            std::move(sources),
            state.value,
            std::move(after),
            std::move(scale)};
  }

  void apply_rows(const sparse_sum& sum) {
    std::vector<std::span<T>> slots;
    for (auto& slot : state.slots)
      slots.push_back(placement::out<T>(on, unshared(on, slot.values)));
    auto values = placement::out<T>(on, unshared(on, state.value));
    sparse_update<T>(on, rule, sum, values, slots);
    // The shadow of a row that rests still comes nearer to it.
    if (auto [shadow, weight] = average(); !shadow.empty())
      lerp<T>(on, shadow, values, static_cast<T>(weight), shadow);
  }

  /// @returns The dense pass that is left to do; nothing, if only rows changed.
  std::optional<prepared_update<T>> begin(const gradient_mean& mean) {
    if (!are_sparse(mean.gradients)) {
      dense_gradients<T, Context> gradients{on, mean, state.value};
      auto scale = clip<T>(on, gradients.sum, plan.clip);
      return dense(gradients.sum, std::move(gradients.arrays), std::move(gradients.sources),
                   std::move(scale));
    }
    ordered_rows rows{on, mean.gradients};
    auto sum = mean_of(rows, state.value, mean);
    auto scale = clip<T>(on, sum, plan.clip);
    if (updates_rows(plan, mean)) {
      apply_rows(sum);
      return std::nullopt;
    }
    auto whole = dense_form<T>(on, sum, state.value);
    return dense({}, {whole}, {elements{whole}});
  }

  void apply(const gradient_mean& mean) {
    auto prepared = begin(mean);
    if (!prepared) return;
    const auto& with = prepared->arguments;
    update<T>(on, with.rule, with.gradient, with.variable, with.slots, with.average);
    state.value = prepared->after;
  }
};

/// Calls `work` with the next update of a variable.
template <class Context, class Work>
void next_update(const Context& on, variable_state& state, const update_plan& plan,
                 const Work& work) {
  ++state.version;
  if (state.value.element_count() == 0) return; // to kernels, a row has a width
  if (state.value.type() == dtype::f32)
    work(update_in_work<float, Context>{on, state, plan});
  else
    work(update_in_work<double, Context>{on, state, plan});
}

/// The sums of squares of mean gradients, which a context adds up one by one and returns together.
template <class Context>
class measured_squares {
public:
  measured_squares(const Context& on, size_t count) : on_(on), numbers_(count) {}

  template <class T>
  void add(size_t i, dense_gradients<T, Context> gradients) {
    numbers_[i] = squared_norm<T>(on_, gradients.sum);
  }

  template <class T>
  void add(size_t i, const sparse_sum& rows) {
    numbers_[i] = squared_norm<T>(on_, rows);
  }

  [[nodiscard]] std::vector<double> fetched() { return std::move(numbers_); }

private:
  const Context& on_;
  std::vector<double> numbers_; ///< 0 where nothing was added.
};

template <class T, class Context>
void add_squares(const Context& on, const measured_mean& measured, size_t i,
                 measured_squares<Context>& squares) {
  const auto& [variable, mean] = measured;
  if (!are_sparse(mean.gradients))
    return squares.template add<T>(i, dense_gradients<T, Context>{on, mean, variable.value});
  const ordered_rows rows{on, mean.gradients};
  squares.template add<T>(i, mean_of(rows, variable.value, mean));
}

} // namespace troupe::detail

namespace troupe {

template <class Context>
void prepare(const Context& on, variable_state& state, const update_plan& plan) {
  if (state.optimizer != name_of(plan.rule)) {
    auto names = slot_names(plan.rule);
    std::vector<variable_slot> slots;
    for (size_t slot = 0; slot < names.size(); ++slot) {
      auto initial // may throw: the code of a user
        = filled(state.value.type(), state.value.extents(), initial_slot_value(plan.rule, slot));
      slots.push_back({std::string{names[slot]}, placement::placed(on, initial)});
    }
    state.optimizer = name_of(plan.rule);
    state.slots = std::move(slots);
    state.slots_since = state.version;
  }
  if (!plan.average)
    state.average.reset();
  else if (!state.average || state.average->name != plan.average->name)
    state.average = variable_slot{plan.average->name, placement::copied(on, state.value)};
}

template <class Context>
void update_variable(const Context& on, variable_state& state, const update_plan& plan,
                     const gradient_mean& mean) {
  TROUPE_ASSERT(!mean.gradients.empty());
  detail::next_update(on, state, plan, [&](auto update) { update.apply(mean); });
}

template <class Context>
std::vector<double> squared_norms(const Context& on, std::span<const measured_mean> means) {
  detail::measured_squares<Context> squares{on, means.size()};
  for (size_t i = 0; i < means.size(); ++i) {
    const auto& value = means[i].variable.value;
    if (value.element_count() == 0 || means[i].mean.gradients.empty()) continue;
    if (value.type() == dtype::f32)
      detail::add_squares<float>(on, means[i], i, squares);
    else
      detail::add_squares<double>(on, means[i], i, squares);
  }
  return squares.fetched();
}

} // namespace troupe
