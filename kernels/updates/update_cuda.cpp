// SPDX-License-Identifier: Apache-2.0
// The fused update on a GPU: the choice of the rule's loop.
#include "kernels/updates/update.hpp"

#include "kernels/updates/rule_launch.hpp"

namespace troupe::cuda {

template <class T>
void update(const context& on, const update_rule& rule, const gradient_sum& gradient,
            const replaced<T>& variable, std::span<const replaced<T>> slots,
            const averaged<T>& average) {
  check(rule, gradient, variable, slots, average);
  TROUPE_ASSERT(slots.size() <= slot_count_max, slots.size());
  update_places<T> at{variable.after.size(), variable.before.data(), variable.after.data()};
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    at.slots_before[slot] = slots[slot].before.data();
    at.slots_after[slot] = slots[slot].after.data();
  }
  at.shadow = average.shadow.data();
  at.average_weight = static_cast<T>(average.weight);
  auto update_with = [&]<class Rule>(const Rule& settings) {
    if constexpr (std::same_as<Rule, rules::custom>)
      on.note(no_code_for(settings));
    else
      queue_update(on, settings, gradient, at);
  };
  std::visit(update_with, rule);
}

template void update(const context&, const update_rule&, const gradient_sum&,
                     const replaced<float>&, std::span<const replaced<float>>,
                     const averaged<float>&);
template void update(const context&, const update_rule&, const gradient_sum&,
                     const replaced<double>&, std::span<const replaced<double>>,
                     const averaged<double>&);

} // namespace troupe::cuda
