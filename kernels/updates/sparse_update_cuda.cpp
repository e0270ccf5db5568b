// SPDX-License-Identifier: Apache-2.0
// The lazy update on a GPU: the choice of the rule's loop.
#include "kernels/updates/sparse_update.hpp"

#include "kernels/updates/rule_launch.hpp"

namespace troupe::cuda {

template <class T>
void sparse_update(const context& on, const update_rule& rule, const sparse_sum& gradient,
                   std::span<T> variable, std::span<const std::span<T>> slots) {
  check(rule, gradient, variable, slots);
  auto update_with = [&]<class Rule>(const Rule& settings) {
    if constexpr (std::same_as<Rule, rules::custom>)
      on.note(no_code_for(settings));
    else if constexpr (!is_layer_wise_rule<Rule>)
      queue_sparse_update(on, settings, gradient, variable, slots);
  };
  std::visit(update_with, rule);
}

template void sparse_update(const context&, const update_rule&, const sparse_sum&, std::span<float>,
                            std::span<const std::span<float>>);
template void sparse_update(const context&, const update_rule&, const sparse_sum&,
                            std::span<double>, std::span<const std::span<double>>);

} // namespace troupe::cuda
