// SPDX-License-Identifier: Apache-2.0
// The fused update on a GPU: the choice of the rule's loop.
#include "kernels/updates/update.hpp"

#include "kernels/updates/rule_launch.hpp"

#include <type_traits>

namespace troupe::cuda {

namespace {

template <class T>
update_places<T> places_of(const dense_update<T>& update) {
  const auto& [rule, gradient, variable, slots, average] = update;
  check<T>(rule, gradient, variable, slots, average);
  TROUPE_ASSERT(slots.size() <= slot_count_max, slots.size());
  update_places<T> at{variable.after.size(), variable.before.data(), variable.after.data()};
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    at.slots_before[slot] = slots[slot].before.data();
    at.slots_after[slot] = slots[slot].after.data();
  }
  at.shadow = average.shadow.data();
  at.average_weight = static_cast<T>(average.weight);
  return at;
}

template <class Rule, class T>
void update_by(const context& on, std::span<const dense_update<T>> updates) {
  std::vector<rule_update<Rule, T>> by_rule;
  for (const auto& update : updates)
    if (const auto* settings = std::get_if<Rule>(&update.rule))
      by_rule.push_back({*settings, update.gradient, places_of(update)});
  if (by_rule.empty()) return;
  if constexpr (std::same_as<Rule, rules::custom>)
    on.note(no_code_for(by_rule.front().settings));
  else
    queue_updates<Rule, T>(on, by_rule);
}

template <class... Rules, class T>
void update_by_each(std::type_identity<std::variant<Rules...>> /*of*/, const context& on,
                    std::span<const dense_update<T>> updates) {
  (update_by<Rules>(on, updates), ...);
}

} // namespace

template <class T>
void update(const context& on, std::span<const dense_update<T>> updates) {
  update_by_each(std::type_identity<update_rule>{}, on, updates);
}

template <class T>
void update(const context& on, const update_rule& rule, const gradient_sum& gradient,
            const replaced<T>& variable, std::span<const replaced<T>> slots,
            const averaged<T>& average) {
  const dense_update<T> single{rule, gradient, variable, {slots.begin(), slots.end()}, average};
  update<T>(on, {&single, 1});
}

template void update(const context&, std::span<const dense_update<float>>);
template void update(const context&, std::span<const dense_update<double>>);

template void update(const context&, const update_rule&, const gradient_sum&,
                     const replaced<float>&, std::span<const replaced<float>>,
                     const averaged<float>&);
template void update(const context&, const update_rule&, const gradient_sum&,
                     const replaced<double>&, std::span<const replaced<double>>,
                     const averaged<double>&);

} // namespace troupe::cuda
