// SPDX-License-Identifier: Apache-2.0
// Which kernel an update takes.
#include "actors/training/update_pass.hpp"

#include "kernels/math/clip.hpp"
#include "kernels/math/elementwise.hpp"
#include "kernels/math/reduce.hpp"
#include "kernels/tensor/change.hpp"
#include "kernels/updates/sparse_update.hpp"
#include "kernels/updates/update.hpp"
#include "messages/assert.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

// The rows of some sparse gradients in order, with the memory that the order needs.
struct ordered_rows {
  std::vector<row_source> sources;
  std::vector<row_entry> entries;
  std::vector<size_t> starts;
  row_order order;

  explicit ordered_rows(std::span<const gradient> gradients) {
    for (const auto& sparse : gradients)
      sources.emplace_back(std::get<indexed_slices>(sparse));
    auto rows = row_count(sources);
    entries.resize(2 * rows);
    starts.resize(rows + 1);
    order = order_rows(sources, entries, starts);
  }
};

size_t row_width(const tensor& table) {
  return table.extents()[0] == 0 ? 0
                                 : table.element_count() / static_cast<size_t>(table.extents()[0]);
}

bool are_sparse(std::span<const gradient> gradients) {
  auto is_sparse = [](const gradient& one) { return std::holds_alternative<indexed_slices>(one); };
  return std::ranges::all_of(gradients, is_sparse);
}

sparse_sum mean_of(const ordered_rows& rows, const tensor& table, const gradient_mean& mean) {
  return {.sources = rows.sources,
          .order = rows.order,
          .width = row_width(table),
          .divisor = static_cast<double>(std::max(mean.divisor, 1U)),
          .scale = mean.scale,
          .divides_by_count = mean.divisor == 0};
}

template <class T>
tensor densify(const sparse_sum& rows, const tensor& table) {
  tensor dense{table.type(), table.extents()};
  cpu::densify<T>({}, rows, dense.mutable_values<T>());
  return dense;
}

// Gradients of which at least one is dense: the others are made so.
template <class T>
struct dense_gradients {
  std::vector<tensor> densified; // keeps these alive; the others live in their messages
  std::vector<elements> sources;
  gradient_sum sum;

  dense_gradients(const gradient_mean& mean, const tensor& table) {
    auto count = mean.gradients.size();
    for (const auto& gradient : mean.gradients)
      sources.emplace_back(as_dense(gradient, table));
    sum = {.sources = sources,
           .divisor = mean.divisor == 0 ? static_cast<double>(count) : mean.divisor,
           .scale = mean.scale};
  }

  const tensor& as_dense(const gradient& one, const tensor& table) {
    if (const auto* as_it_lies = std::get_if<tensor>(&one)) return *as_it_lies;
    ordered_rows rows{{&one, 1}};
    sparse_sum alone{.sources = rows.sources, .order = rows.order, .width = row_width(table)};
    return densified.emplace_back(densify<T>(alone, table));
  }
};

// Cuts the mean gradient, dense or sparse, as the plan says.
template <class T, class Sum>
void clip(Sum& sum, const gradient_clip& to) {
  if (to.norm_max > 0)
    sum.scale *= clip_factor(std::sqrt(cpu::squared_norm<T>({}, sum)), to.norm_max);
  if (to.value_max > 0) sum.limit = to.value_max;
}

// The same elements, with no other holder; a checkpoint may be looking at the old ones.
tensor& unshared(tensor& values) {
  if (!values.is_unique()) values = values.clone();
  return values;
}

// One update on its way; T is the variable's type.
template <class T>
struct update_in_work {
  variable_state& state;
  const update_plan& plan;
  update_rule rule; // as it is at this update

  update_in_work(variable_state& of, const update_plan& planned)
    : state(of), plan(planned),
      rule(at_update(planned.schedule.at(planned.rule, of.version), of.version - of.slots_since)) {}

  averaged<T> average() {
    if (!state.average) return {};
    auto& shadow = unshared(state.average->values);
    return {shadow.mutable_values<T>(), 1 - plan.average->decay_at(state.version)};
  }

  void apply_dense(const gradient_sum& sum) {
    std::vector<replaced<T>> slots;
    for (auto& slot : state.slots)
      slots.push_back(in_place(unshared(slot.values).mutable_values<T>()));
    auto after
      = state.value.is_unique() ? state.value : tensor{state.value.type(), state.value.extents()};
    cpu::update<T>({}, rule, sum, {state.value.values<T>(), after.mutable_values<T>()}, slots,
                   average());
    state.value = after;
  }

  void apply_rows(const sparse_sum& sum) {
    std::vector<std::span<T>> slots;
    for (auto& slot : state.slots)
      slots.push_back(unshared(slot.values).mutable_values<T>());
    unshared(state.value);
    cpu::sparse_update<T>({}, rule, sum, state.value.mutable_values<T>(), slots);
    // The shadow of a row that rests still comes nearer to it.
    if (auto [shadow, weight] = average(); !shadow.empty())
      cpu::lerp<T>({}, shadow, state.value.values<T>(), static_cast<T>(weight), shadow);
  }

  void apply(const gradient_mean& mean) {
    if (!are_sparse(mean.gradients)) {
      dense_gradients<T> gradients{mean, state.value};
      clip<T>(gradients.sum, plan.clip);
      return apply_dense(gradients.sum);
    }
    ordered_rows rows{mean.gradients};
    auto sum = mean_of(rows, state.value, mean);
    clip<T>(sum, plan.clip);
    if (updates_rows(plan, mean)) return apply_rows(sum);
    auto dense = densify<T>(sum, state.value);
    const elements sources[] = {elements{dense}};
    apply_dense({.sources = sources});
  }
};

template <class T>
double squared_norm_of(const tensor& value, const gradient_mean& mean) {
  if (!are_sparse(mean.gradients))
    return cpu::squared_norm<T>({}, dense_gradients<T>{mean, value}.sum);
  ordered_rows rows{mean.gradients};
  return cpu::squared_norm<T>({}, mean_of(rows, value, mean));
}

} // namespace

void prepare(variable_state& state, const update_plan& plan) {
  if (state.optimizer != name_of(plan.rule)) {
    auto names = slot_names(plan.rule);
    state.optimizer = name_of(plan.rule);
    state.slots.clear();
    for (size_t slot = 0; slot < names.size(); ++slot)
      state.slots.push_back(
        {std::string{names[slot]},
         filled(state.value.type(), state.value.extents(), initial_slot_value(plan.rule, slot))});
    state.slots_since = state.version;
  }
  if (!plan.average)
    state.average.reset();
  else if (!state.average || state.average->name != plan.average->name)
    state.average = variable_slot{plan.average->name, state.value.clone()};
}

void update_variable(variable_state& state, const update_plan& plan, const gradient_mean& mean) {
  TROUPE_ASSERT(!mean.gradients.empty());
  ++state.version;
  if (state.value.element_count() == 0) return; // to kernels, a row has a width
  if (state.value.type() == dtype::f32)
    update_in_work<float>{state, plan}.apply(mean);
  else
    update_in_work<double>{state, plan}.apply(mean);
}

bool updates_rows(const update_plan& plan, const gradient_mean& mean) {
  return are_sparse(mean.gradients) && !plan.sparse_exact && !is_layer_wise(plan.rule);
}

double squared_norm(const variable_state& state, const gradient_mean& mean) {
  if (state.value.element_count() == 0 || mean.gradients.empty()) return 0;
  return state.value.type() == dtype::f32 ? squared_norm_of<float>(state.value, mean)
                                          : squared_norm_of<double>(state.value, mean);
}

} // namespace troupe
