// SPDX-License-Identifier: Apache-2.0
// The lazy update in blocks of rows, on vectors and all cores.
#include "kernels/sparse_update.hpp"

#include "kernels/combine_row.hpp"
#include "kernels/rule_block.hpp"

namespace troupe::cpu {

namespace {

template <class T, class Apply, size_t... Slot>
void update_with(const context& on, const Apply& apply, const sparse_sum& gradient,
                 std::span<T> variable, std::span<const std::span<T>> slots,
                 std::index_sequence<Slot...> slot_numbers) {
  for_row_blocks(on, gradient, [&](size_t position, size_t column, size_t count) {
    T combined[block_elements];
    combine_row(gradient, position, column, count, combined);
    size_t at = place(gradient, position, column);
    T* values = variable.data() + at;
    const block<T, sizeof...(Slot)> row{
      count, combined, values, values, {slots[Slot].data() + at...}, {slots[Slot].data() + at...}};
    vectorised([=] { apply_to(row, apply, slot_numbers); });
  });
}

} // namespace

template <class T>
void sparse_update(const context& on, const update_rule& rule, const sparse_sum& gradient,
                   std::span<T> variable, std::span<const std::span<T>> slots) {
  check(rule, gradient, variable, slots);
  auto visitor = [&]<class Rule>(const Rule& settings) {
    const typename Rule::template for_elements<T> apply{settings};
    update_with(on, apply, gradient, variable, slots, std::make_index_sequence<Rule::slot_count>{});
  };
  std::visit(visitor, rule);
}

template void sparse_update(const context&, const update_rule&, const sparse_sum&, std::span<float>,
                            std::span<const std::span<float>>);
template void sparse_update(const context&, const update_rule&, const sparse_sum&,
                            std::span<double>, std::span<const std::span<double>>);

} // namespace troupe::cpu
