// SPDX-License-Identifier: Apache-2.0
// The update element by element: combine the gradients, apply the rule.
#include "kernels/update.hpp"

namespace troupe::reference {

namespace {

template <class T, class Rule>
void update_with(const Rule& rule, const gradient_sum& gradient, const replaced<T>& variable,
                 std::span<const replaced<T>> slots) {
  const typename Rule::template for_elements<T> apply{rule};
  for (size_t i = 0; i < variable.after.size(); ++i) {
    std::array<T, Rule::slot_count> state{};
    for (size_t slot = 0; slot < state.size(); ++slot)
      state[slot] = slots[slot].before[i];
    variable.after[i] = apply(variable.before[i], combined<T>(gradient, i), state);
    for (size_t slot = 0; slot < state.size(); ++slot)
      slots[slot].after[i] = state[slot];
  }
}

} // namespace

template <class T>
void update(const context&, const update_rule& rule, const gradient_sum& gradient,
            const replaced<T>& variable, std::span<const replaced<T>> slots) {
  check(rule, gradient, variable, slots);
  std::visit([&](const auto& settings) { update_with(settings, gradient, variable, slots); }, rule);
}

template void update(const context&, const update_rule&, const gradient_sum&,
                     const replaced<float>&, std::span<const replaced<float>>);
template void update(const context&, const update_rule&, const gradient_sum&,
                     const replaced<double>&, std::span<const replaced<double>>);

} // namespace troupe::reference
