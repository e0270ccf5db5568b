// SPDX-License-Identifier: Apache-2.0
// The lazy update element by element.
#include "kernels/updates/sparse_update.hpp"

#include "kernels/math/combine_row.hpp"
#include "kernels/updates/rule_block.hpp"

#include <array>

namespace troupe::reference {

namespace {

template <class T, class Rule>
void update_with(const Rule& rule, const sparse_sum& gradient, std::span<T> variable,
                 std::span<const std::span<T>> slots) {
  const typename Rule::template for_elements<T> apply{rule};
  for (size_t position = 0; position < gradient.order.distinct(); ++position)
    for (size_t column = 0; column < gradient.width; ++column) {
      size_t i = place(gradient, position, column);
      std::array<T, cpu::state_size<Rule>> state{};
      for (size_t slot = 0; slot < slots.size(); ++slot)
        state[slot] = slots[slot][i];
      variable[i] = apply(variable[i], combined<T>(gradient, position, column), state);
      for (size_t slot = 0; slot < slots.size(); ++slot)
        slots[slot][i] = state[slot];
    }
}

} // namespace

template <class T>
void sparse_update(const context&, const update_rule& rule, const sparse_sum& gradient,
                   std::span<T> variable, std::span<const std::span<T>> slots) {
  check(rule, gradient, variable, slots);
  std::visit([&](const auto& settings) { update_with(settings, gradient, variable, slots); }, rule);
}

template void sparse_update(const context&, const update_rule&, const sparse_sum&, std::span<float>,
                            std::span<const std::span<float>>);
template void sparse_update(const context&, const update_rule&, const sparse_sum&,
                            std::span<double>, std::span<const std::span<double>>);

} // namespace troupe::reference
