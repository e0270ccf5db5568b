// SPDX-License-Identifier: Apache-2.0
// The lazy update in blocks of rows, on vectors and all cores.
#include "kernels/updates/sparse_update.hpp"

#include "kernels/math/combine_row.hpp"
#include "kernels/updates/rule_block.hpp"

namespace troupe::cpu {

namespace {

template <class Rule, class T>
void update_with(const context& on, const Rule& settings, const sparse_sum& gradient,
                 std::span<T> variable, std::span<const std::span<T>> slots) {
  const typename Rule::template for_elements<T> apply{settings};
  for_row_blocks(on, gradient, [&](size_t position, size_t column, size_t count) {
    T combined[block_elements];
    combine_row(gradient, position, column, count, combined);
    size_t at = place(gradient, position, column);
    T* values = variable.data() + at;
    block<T> row{count, combined, values, values};
    for (size_t slot = 0; slot < slots.size(); ++slot)
      row.slots_before[slot] = row.slots_after[slot] = slots[slot].data() + at;
    apply_to<Rule>(row, apply);
  });
}

} // namespace

template <class T>
void sparse_update(const context& on, const update_rule& rule, const sparse_sum& gradient,
                   std::span<T> variable, std::span<const std::span<T>> slots) {
  check(rule, gradient, variable, slots);
  std::visit([&](const auto& settings) { update_with(on, settings, gradient, variable, slots); },
             rule);
}

template void sparse_update(const context&, const update_rule&, const sparse_sum&, std::span<float>,
                            std::span<const std::span<float>>);
template void sparse_update(const context&, const update_rule&, const sparse_sum&,
                            std::span<double>, std::span<const std::span<double>>);

} // namespace troupe::cpu
