// SPDX-License-Identifier: Apache-2.0
// The variable owner: from gradients in messages to one pass over memory.
#include "actors/variable_owner.hpp"

#include "actors/optimizer_settings.hpp"
#include "kernels/update.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

using self_pointer = variable_owner_actor::stateful_pointer<variable_owner_state>;

// Adam's step size depends on the number of the update, which the owner counts.
update_rule rule_for(update_rule rule, uint64_t update_number) {
  if (auto* settings = std::get_if<rules::adam>(&rule)) settings->step = update_number;
  return rule;
}

std::vector<gradient> gradients_of(const msg<wire::ApplyUpdate>& update) {
  std::vector<gradient> gradients;
  for (auto gradient : update.reader().getGradients())
    gradients.push_back(to_gradient(read_gradient(gradient, update.owner())));
  return gradients;
}

template <class T>
void update_dense(const update_rule& rule, const std::vector<tensor>& gradients, double divisor,
                  const tensor& before, tensor& after, std::vector<tensor>& slots) {
  std::vector<elements> sources;
  for (const auto& gradient : gradients)
    sources.emplace_back(gradient);
  std::vector<replaced<T>> replaced_slots;
  for (auto& slot : slots)
    replaced_slots.push_back(in_place(slot.mutable_values<T>()));
  cpu::update<T>(cpu::context{}, rule, gradient_sum{.sources = sources, .divisor = divisor},
                 {before.values<T>(), after.mutable_values<T>()}, replaced_slots);
}

} // namespace

msg<wire::VariableSnapshot> variable_owner_state::read() {
  if (snapshot.is_empty()) snapshot = make_variable_snapshot(version, to_payload(value));
  return snapshot;
}

expected<msg<wire::OptimizerInUse>>
variable_owner_state::use(const msg<wire::UseOptimizer>& optimizer) {
  auto chosen = to_rule(read_optimizer(optimizer.reader()));
  if (!chosen) return tl::unexpected<error>(chosen.error());
  if (!has_rule || chosen->index() != rule.index()) {
    slots.clear();
    for (size_t i = 0; i < slot_count(*chosen); ++i)
      slots.push_back(zeros(form.extents, form.type));
  }
  rule = *chosen;
  has_rule = true;
  return make_optimizer_in_use(version, static_cast<uint32_t>(slots.size()));
}

expected<msg<wire::UpdateApplied>>
variable_owner_state::apply(const msg<wire::ApplyUpdate>& update) {
  if (!has_rule)
    return fail(
      errc::failed_precondition,
      fmt::format("variable '{}' has no optimizer yet; send UseOptimizer first", form.name));
  auto gradients = gradients_of(update);
  if (gradients.empty())
    return fail(errc::invalid_argument,
                fmt::format("an update of '{}' without gradients", form.name));
  auto asked = update.reader();
  auto divisor = asked.getDivisor() == 0 ? gradients.size() : asked.getDivisor();
  std::vector<tensor> dense;
  for (auto& gradient : gradients) {
    if (auto* d = std::get_if<tensor>(&gradient))
      dense.push_back(*d);
    else
      return fail(errc::unimplemented, "sparse");
  }
  snapshot = {};
  auto before = value;
  auto after = value.is_unique() ? value : tensor{form.type, form.extents};
  ++version;
  auto numbered = rule_for(rule, version);
  if (form.type == dtype::f32)
    update_dense<float>(numbered, dense, static_cast<double>(divisor), before, after, slots);
  else
    update_dense<double>(numbered, dense, static_cast<double>(divisor), before, after, slots);
  value = after;
  return make_update_applied(version, asked.getStep());
}

variable_owner_actor::behavior_type variable_owner(self_pointer self,
                                                   variable_owner_config config) {
  self->state.form = std::move(config.variable);
  self->state.value = config.initial.clone();
  return {
    [self](const msg<wire::ReadVariable>&) { return self->state.read(); },
    [self](const msg<wire::UseOptimizer>& optimizer) {
      return to_result(self->state.use(optimizer));
    },
    [self](const msg<wire::ApplyUpdate>& update) { return to_result(self->state.apply(update)); },
  };
}

} // namespace troupe
