// SPDX-License-Identifier: Apache-2.0
// Which kernel an update takes.
#include "actors/update_pass.hpp"

#include "kernels/sparse_update.hpp"
#include "kernels/update.hpp"
#include "messages/assert.hpp"

#include <algorithm>

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

template <class T>
tensor densify(const gradient& sparse, const tensor& table) {
  ordered_rows rows{{&sparse, 1}};
  tensor dense{table.type(), table.extents()};
  cpu::densify<T>({}, {.sources = rows.sources, .order = rows.order, .width = row_width(table)},
                  dense.mutable_values<T>());
  return dense;
}

template <class T>
void update_dense(variable_state& state, const update_rule& rule,
                  std::span<const gradient> gradients, double divisor) {
  std::vector<tensor> densified; // keeps these alive; the others live in their messages
  std::vector<elements> sources;
  sources.reserve(gradients.size());
  for (const auto& gradient : gradients) {
    if (const auto* as_it_lies = std::get_if<tensor>(&gradient))
      sources.emplace_back(*as_it_lies);
    else
      sources.emplace_back(densified.emplace_back(densify<T>(gradient, state.value)));
  }
  std::vector<replaced<T>> slots;
  for (auto& slot : state.slots)
    slots.push_back(in_place(slot.mutable_values<T>()));
  auto after
    = state.value.is_unique() ? state.value : tensor{state.value.type(), state.value.extents()};
  cpu::update<T>({}, rule, {.sources = sources, .divisor = divisor},
                 {state.value.values<T>(), after.mutable_values<T>()}, slots);
  state.value = after;
}

template <class T>
void update_rows(variable_state& state, const update_rule& rule,
                 std::span<const gradient> gradients, uint32_t divisor) {
  ordered_rows rows{gradients};
  std::vector<std::span<T>> slots;
  for (auto& slot : state.slots)
    slots.push_back(slot.mutable_values<T>());
  if (!state.value.is_unique()) state.value = state.value.clone();
  cpu::sparse_update<T>({}, rule,
                        {.sources = rows.sources,
                         .order = rows.order,
                         .width = row_width(state.value),
                         .divisor = static_cast<double>(std::max(divisor, 1U)),
                         .divides_by_count = divisor == 0},
                        state.value.mutable_values<T>(), slots);
}

template <class T>
void update_as(variable_state& state, const update_rule& rule, std::span<const gradient> gradients,
               uint32_t divisor) {
  auto is_sparse = [](const gradient& one) { return std::holds_alternative<indexed_slices>(one); };
  if (std::ranges::all_of(gradients, is_sparse))
    return update_rows<T>(state, rule, gradients, divisor);
  update_dense<T>(state, rule, gradients,
                  divisor == 0 ? static_cast<double>(gradients.size()) : divisor);
}

// Adam's step size depends on the number of the update.
update_rule numbered(update_rule rule, uint64_t update_number) {
  if (auto* settings = std::get_if<rules::adam>(&rule)) settings->step = update_number;
  return rule;
}

} // namespace

void update_variable(variable_state& state, const update_rule& rule,
                     std::span<const gradient> gradients, uint32_t divisor) {
  TROUPE_ASSERT(!gradients.empty());
  auto of_this_update = numbered(rule, ++state.version);
  if (state.value.element_count() == 0) return; // to kernels, a row has a width
  if (state.value.type() == dtype::f32)
    update_as<float>(state, of_this_update, gradients, divisor);
  else
    update_as<double>(state, of_this_update, gradients, divisor);
}

} // namespace troupe
