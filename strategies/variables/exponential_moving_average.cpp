// SPDX-License-Identifier: Apache-2.0
// Asks owners for the averages of variables, and keeps those of plain tensors.
#include "strategies/variables/exponential_moving_average.hpp"

#include "actors/world/ask.hpp"
#include "kernels/math/cast.hpp"
#include "kernels/math/elementwise.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/context.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

namespace troupe {

namespace {

/// Calls `body` with an element of the type in which a tensor is averaged.
void visit_average(dtype type, const auto& body) {
  type == dtype::f64 ? body(double{}) : body(float{});
}

} // namespace

exponential_moving_average::exponential_moving_average(double decay, average_options options)
  : settings_{std::move(options.name), decay, options.num_updates},
    zero_debias_(options.zero_debias) {
  update_plan plan;
  plan.average = settings_;
  value_or_throw(validate(plan));
}

std::string exponential_moving_average::average_name(const variable& variable) const {
  return average_name(variable.name());
}

std::string exponential_moving_average::average_name(const std::string& tensor_name) const {
  return tensor_name + "/" + settings_.name;
}

std::optional<tensor> exponential_moving_average::average(strategy& strategy,
                                                          const variable& variable) const {
  context_check::waiting("average", "look at averages outside of steps");
  check_same_world("average", strategy.world(), variable);
  auto snapshot = ask<msg<wire::VariableSnapshot>>(strategy.world(), variable.owner(),
                                                   make_read_average(settings_.name));
  if (!snapshot && snapshot.error().code == errc::not_found) return {};
  return value_of(std::move(snapshot));
}

std::map<std::string, variable>
exponential_moving_average::variables_to_restore(std::span<const variable> variables,
                                                 std::span<const variable> averaged) const {
  std::map<std::string, variable> names;
  for (const auto& variable : averaged)
    names.emplace(average_name(variable), variable);
  for (const auto& variable : variables)
    if (std::ranges::find(averaged, variable) == averaged.end())
      names.emplace(variable.name(), variable);
  return names;
}

std::map<std::string, variable>
exponential_moving_average::variables_to_restore(std::span<const variable> variables) const {
  std::vector<variable> trainable;
  std::ranges::copy_if(variables, std::back_inserter(trainable), &variable::trainable);
  return variables_to_restore(variables, trainable);
}

void exponential_moving_average::apply(const std::string& tensor_name, const tensor& value) {
  auto refuse = [&](errc code, const std::string& reason) {
    throw_failure(code, "the average of '{}' takes no such tensor: {}", tensor_name, reason);
  };
  value.check_on_host();
  if (!is_floating(value.type()))
    refuse(errc::type_mismatch, fmt::format("it is {}", to_string(value.type())));
  auto wide = value.type() == dtype::f64 ? dtype::f64 : dtype::f32;
  auto found = tensors_.find(tensor_name);
  if (found == tensors_.end())
    found
      = tensors_.emplace(tensor_name, tensor_average{value.type(), zeros(value.extents(), wide)})
          .first;
  auto& kept = found->second;
  if (kept.type != value.type())
    refuse(errc::type_mismatch, fmt::format("it is {}, and was {} before", to_string(value.type()),
                                            to_string(kept.type)));
  if (kept.shadow.extents() != value.extents())
    refuse(errc::invalid_argument,
           fmt::format("it is of shape {}, and was of {} before", to_string(value.extents()),
                       to_string(kept.shadow.extents())));
  ++kept.updates;
  auto from = cast(value, wide).contiguous();
  visit_average(wide, [&]<class T>(T) {
    auto shadow = kept.shadow.template mutable_values<T>();
    auto weight = static_cast<T>(1 - settings_.decay_at(kept.updates));
    cpu::lerp<T>({}, shadow, from.values<T>(), weight, shadow);
  });
}

std::optional<tensor> exponential_moving_average::average(const std::string& tensor_name) const {
  auto found = tensors_.find(tensor_name);
  if (found == tensors_.end()) return {};
  const auto& kept = found->second;
  auto result = kept.shadow.clone();
  auto decay = settings_.decay_at(kept.updates);
  if (!zero_debias_ || decay == 1) return result; // at 1 nothing ever came in
  visit_average(result.type(), [&]<class T>(T) {
    auto values = result.mutable_values<T>();
    auto correction = 1 / (1 - std::pow(decay, static_cast<double>(kept.updates)));
    cpu::scale<T>({}, static_cast<T>(correction), values, values);
  });
  return result;
}

} // namespace troupe
