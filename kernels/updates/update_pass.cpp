// SPDX-License-Identifier: Apache-2.0
// The update of a variable on the CPU, and its oracle.
#include "kernels/updates/update_pass.hpp"

#include "kernels/updates/update_pass_definition.hpp"

namespace troupe {

template void prepare(const cpu::context&, variable_state&, const update_plan&);
template void update_variable(const cpu::context&, variable_state&, const update_plan&,
                              const gradient_mean&);
template std::vector<double> squared_norms(const cpu::context&, std::span<const measured_mean>);

template void prepare(const reference::context&, variable_state&, const update_plan&);
template void update_variable(const reference::context&, variable_state&, const update_plan&,
                              const gradient_mean&);
template std::vector<double> squared_norms(const reference::context&,
                                           std::span<const measured_mean>);

std::vector<tensor*> arrays_of(variable_state& variable) {
  std::vector<tensor*> arrays{&variable.value};
  for (auto& slot : variable.slots)
    arrays.push_back(&slot.values);
  if (variable.average) arrays.push_back(&variable.average->values);
  return arrays;
}

bool updates_rows(const update_plan& plan, const gradient_mean& mean) {
  return detail::are_sparse(mean.gradients) && !plan.sparse_exact && !is_layer_wise(plan.rule);
}

} // namespace troupe
