// SPDX-License-Identifier: Apache-2.0
// Checks that a snapshot is of this job before any variable changes, then restores each owner.
#include "strategies/jobs/restore.hpp"

#include "actors/world/ask.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/training_message.hpp"
#include "strategies/jobs/checkpoint.hpp"

#include <fmt/format.h>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace troupe {

namespace {

template <class... Arguments>
[[noreturn]] void refuse(const job_snapshot& from, fmt::format_string<Arguments...> format,
                         Arguments&&... arguments) {
  throw_failure(errc::failed_precondition, "the checkpoint of step {} {}", from.step,
                fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// The states of a snapshot by the names of their variables: a job may have thousands.
using states_by_name = std::unordered_map<std::string_view, const variable_payload*>;

states_by_name states_of(const job_snapshot& from) {
  states_by_name states;
  for (const auto& [name, state] : from.variables)
    states.emplace(name, &state);
  return states;
}

const variable_payload* find_state(const states_by_name& states, const variable& variable) {
  auto found = states.find(variable.name());
  return found == states.end() ? nullptr : found->second;
}

void check_seed(strategy& strategy, const job_snapshot& from) {
  if (from.seed != strategy.world().seed())
    refuse(from, "is of a world with seed {}, this one has {}", from.seed, strategy.world().seed());
}

void check(strategy& strategy, const sync_replicas_optimizer& optimizer,
           std::span<const variable> variables, const job_snapshot& from,
           const states_by_name& states) {
  check_seed(strategy, from);
  std::unordered_set<std::string_view> names;
  for (const auto& variable : strategy.variables())
    names.insert(variable.name());
  for (const auto& saved : from.variables)
    if (!names.contains(saved.name))
      refuse(from, "holds variable '{}', which this job does not have", saved.name);
  for (const auto& variable : variables) {
    const auto* state = find_state(states, variable);
    if (state == nullptr) refuse(from, "has no variable '{}'", variable.name());
    auto name = name_of(optimizer.plan_for(variable).rule);
    if (state->optimizer != name)
      refuse(from, "was made with the optimizer {}, this job has {}", state->optimizer, name);
  }
}

} // namespace

void restore(strategy& strategy, const sync_replicas_optimizer& optimizer,
             std::span<const variable> variables, const job_snapshot& from) {
  const auto states = states_of(from);
  check(strategy, optimizer, variables, from, states);
  for (const auto& variable : strategy.variables())
    if (const auto* state = find_state(states, variable))
      static_cast<void>(value_or_throw(ask<msg<wire::OptimizerInUse>>(
        strategy.world(), variable.owner(), make_restore_state(*state))));
  strategy.world().set_clock(from.time);
}

void restore(strategy& strategy, const job_snapshot& from) {
  check_seed(strategy, from);
  restore_snapshot(strategy, from);
  strategy.world().set_clock(from.time);
}

} // namespace troupe
