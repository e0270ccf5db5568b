// SPDX-License-Identifier: Apache-2.0
// The variable owner: reading, choosing the optimizer, applying updates.
#include "actors/variable_owner.hpp"

#include "actors/optimizer_settings.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

using self_pointer = observed_pointer<variable_owner_actor, variable_owner_state>;

// The gradients of an update where they lie; checked again, since they may come from another node.
expected<std::vector<gradient>> gradients_of(const msg<wire::ApplyUpdate>& update,
                                             const variable_form& variable) {
  auto given = update.reader().getGradients();
  std::vector<gradient> gradients;
  gradients.reserve(given.size());
  for (auto gradient : given) {
    if (auto fits = check_gradient(variable, gradient); !fits)
      return tl::unexpected<error>(fits.error());
    gradients.push_back(to_gradient(read_gradient(gradient, update.owner())));
  }
  if (gradients.empty())
    return fail(errc::invalid_argument,
                fmt::format("an update of '{}' without gradients", variable.name));
  return gradients;
}

// An array that was saved, in memory of its own.
expected<tensor> restored(const variable_form& variable, const std::string& name,
                          tensor_payload saved) {
  auto value = to_tensor(std::move(saved));
  if (value.type() != variable.type)
    return fail(errc::type_mismatch,
                fmt::format("'{}' was saved as {}, but variable '{}' is {}", name,
                            to_string(value.type()), variable.name, to_string(variable.type)));
  if (value.extents() != variable.extents)
    return fail(errc::invalid_argument,
                fmt::format("'{}' was saved with shape {}, but variable '{}' has shape {}", name,
                            to_string(value.extents()), variable.name,
                            to_string(variable.extents)));
  return value.clone();
}

} // namespace

expected<msg<wire::VariableSnapshot>> variable_owner_state::read(int32_t component) {
  if (!snapshot.is_empty() && copies.has(component)) return snapshot;
  auto value = copies.read(component);
  if (!value) return tl::unexpected<error>(value.error());
  auto answer = make_variable_snapshot(copies.first().version, to_payload(*value));
  if (copies.are_together() && config.rule == copy_rule::alike) snapshot = answer;
  return answer;
}

expected<msg<wire::VariableSnapshot>>
variable_owner_state::apply(const msg<wire::ChangeVariable>& wanted) {
  auto said = wanted.reader();
  auto how = static_cast<size_t>(said.getChange());
  if (how >= change_count)
    return fail(errc::malformed, fmt::format("variable '{}' is asked for change {}, which there is "
                                             "not",
                                             config.variable.name, how));
  if (said.getOperand().isNone())
    return fail(errc::invalid_argument,
                fmt::format("variable '{}' is to be changed by nothing", config.variable.name));
  auto operand = to_gradient(read_gradient(said.getOperand(), wanted.owner()));
  auto changed = copies.apply(said.getComponent(), static_cast<change>(how), operand);
  if (!changed) return tl::unexpected<error>(changed.error());
  snapshot = {};
  return make_variable_snapshot(copies.first().version, to_payload(*changed));
}

expected<msg<wire::VariableSnapshot>> variable_owner_state::read_average(const std::string& name) {
  const auto& variable = copies.first();
  if (!variable.average || variable.average->name != name)
    return fail(errc::not_found, fmt::format("no average '{}' is kept of variable '{}'", name,
                                             config.variable.name));
  return make_variable_snapshot(variable.version, to_payload(variable.average->values));
}

expected<msg<wire::OptimizerInUse>>
variable_owner_state::use(const msg<wire::UseOptimizer>& optimizer) {
  auto chosen = to_plan(read_optimizer(optimizer.reader()));
  if (!chosen) return tl::unexpected<error>(chosen.error());
  if (config.variable.type != dtype::f32 && config.variable.type != dtype::f64)
    return fail(errc::type_mismatch,
                fmt::format("variable '{}' is {}; an optimizer updates f32 and f64 only",
                            config.variable.name, to_string(config.variable.type)));
  copies.prepare(*chosen);
  plan = std::move(*chosen);
  const auto& variable = copies.first();
  return make_optimizer_in_use(variable.version, static_cast<uint32_t>(variable.slots.size()));
}

expected<msg<wire::UpdateApplied>>
variable_owner_state::apply(const msg<wire::ApplyUpdate>& update) {
  if (!plan)
    return fail(errc::failed_precondition,
                fmt::format("variable '{}' has no optimizer yet; send UseOptimizer first",
                            config.variable.name));
  auto gradients = gradients_of(update, config.variable);
  if (!gradients) return tl::unexpected<error>(gradients.error());
  gradient_mean mean{*gradients, update.reader().getDivisor()};
  auto began = config.world->now();
  applied_update done{.step = update.reader().getStep()};
  if (update.reader().getMeasure()) done.mean_squared_norm = mean_squared_norm(*gradients);
  if (update.reader().getHold() || update.reader().getMeasure())
    done.squared_norm = squared_norm(copies.first(), mean);
  if (update.reader().getHold())
    held = update;
  else
    apply(mean);
  return make_applied(done, began);
}

double variable_owner_state::mean_squared_norm(std::span<const gradient> gradients) const {
  double sum = 0;
  for (const auto& one : gradients)
    sum += squared_norm(copies.first(), {{&one, 1}});
  return sum / static_cast<double>(gradients.size());
}

expected<msg<wire::UpdateApplied>> variable_owner_state::release(double scale) {
  auto update = std::exchange(held, {});
  if (update.is_empty())
    return fail(errc::failed_precondition,
                fmt::format("variable '{}' holds no update", config.variable.name));
  auto gradients = gradients_of(update, config.variable);
  if (!gradients) return tl::unexpected<error>(gradients.error());
  auto began = config.world->now();
  apply(gradient_mean{*gradients, update.reader().getDivisor(), scale});
  return make_applied({.step = update.reader().getStep()}, began);
}

void variable_owner_state::apply(const gradient_mean& mean) {
  snapshot = {}; // our own share in the old version must not count as somebody's look at it
  copies.update(*plan, mean);
}

msg<wire::UpdateApplied> variable_owner_state::make_applied(applied_update done,
                                                            job_time began) const {
  done.version = copies.first().version;
  done.applied = config.world->now();
  done.took = done.applied - began;
  return make_update_applied(done);
}

msg<wire::VariableState> variable_owner_state::read_state() const {
  auto variable = copies.saved();
  variable_payload state{.version = variable.version,
                         .value = to_payload(variable.value),
                         .optimizer = variable.optimizer,
                         .slots_since = variable.slots_since};
  for (const auto& slot : variable.slots)
    state.slots.push_back({slot.name, to_payload(slot.values)});
  if (variable.average)
    state.average = named_payload{variable.average->name, to_payload(variable.average->values)};
  return make_variable_state(state);
}

expected<msg<wire::OptimizerInUse>>
variable_owner_state::restore(const msg<wire::RestoreState>& saved) {
  auto from = troupe::read_state(saved.reader().getState(), saved.owner());
  variable_state state;
  auto value = restored(config.variable, config.variable.name, std::move(from.value));
  if (!value) return tl::unexpected<error>(value.error());
  state.value = std::move(*value);
  state.version = from.version;
  state.optimizer = from.optimizer;
  state.slots_since = from.slots_since;
  for (auto& slot : from.slots) {
    auto values = restored(config.variable, slot.name, std::move(slot.value));
    if (!values) return tl::unexpected<error>(values.error());
    state.slots.push_back({slot.name, std::move(*values)});
  }
  if (from.average) {
    auto values = restored(config.variable, from.average->name, std::move(from.average->value));
    if (!values) return tl::unexpected<error>(values.error());
    state.average = variable_slot{from.average->name, std::move(*values)};
  }
  auto answer = make_optimizer_in_use(state.version, static_cast<uint32_t>(state.slots.size()));
  copies.restore(std::move(state));
  snapshot = {};
  return answer;
}

variable_owner_actor::behavior_type variable_owner(self_pointer self,
                                                   variable_owner_config config) {
  self->state.copies
    = variable_copies{{config.variable.name, config.copies, config.rule, config.copies_elsewhere},
                      std::exchange(config.initial, {}).clone()};
  self->state.config = std::move(config);
  return {
    [self](const msg<wire::ReadVariable>& wanted) {
      return to_result(self->state.read(wanted.reader().getComponent()));
    },
    [self](const msg<wire::ChangeVariable>& wanted) {
      return to_result(self->state.apply(wanted));
    },
    [self](const msg<wire::ReadAverage>& average) {
      return to_result(self->state.read_average(average.reader().getName()));
    },
    [self](const msg<wire::UseOptimizer>& optimizer) {
      return to_result(self->state.use(optimizer));
    },
    [self](const msg<wire::ApplyUpdate>& update) { return to_result(self->state.apply(update)); },
    [self](const msg<wire::ReleaseUpdate>& release) {
      return to_result(self->state.release(release.reader().getScale()));
    },
    [self](const msg<wire::ReadState>&) { return self->state.read_state(); },
    [self](const msg<wire::RestoreState>& saved) { return to_result(self->state.restore(saved)); },
  };
}

} // namespace troupe
