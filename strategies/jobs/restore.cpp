// SPDX-License-Identifier: Apache-2.0
// Checking that a snapshot is of this job before anything is changed, then giving it out.
#include "strategies/jobs/restore.hpp"

#include "actors/world/ask.hpp"
#include "messages/training_message.hpp"
#include "strategies/jobs/checkpoint.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

namespace {

template <class... Arguments>
[[noreturn]] void refuse(const job_snapshot& from, fmt::format_string<Arguments...> format,
                         Arguments&&... arguments) {
  throw failure{{errc::failed_precondition,
                 fmt::format("the checkpoint of step {} {}", from.step,
                             fmt::format(format, std::forward<Arguments>(arguments)...))}};
}

const variable_payload* find_state(const job_snapshot& from, const variable& of) {
  auto found = std::ranges::find(from.variables, of.name(), &variable_snapshot::name);
  return found == from.variables.end() ? nullptr : &found->state;
}

void check_seed(strategy& strategy, const job_snapshot& from) {
  if (from.seed != strategy.world().seed())
    refuse(from, "is of a world with seed {}, this one has {}", from.seed, strategy.world().seed());
}

void check(strategy& strategy, const sync_replicas_optimizer& optimizer,
           std::span<const variable> variables, const job_snapshot& from) {
  check_seed(strategy, from);
  for (const auto& saved : from.variables)
    if (std::ranges::find(strategy.variables(), saved.name, &variable::name)
        == strategy.variables().end())
      refuse(from, "holds variable '{}', which this job does not have", saved.name);
  for (const auto& variable : variables) {
    const auto* state = find_state(from, variable);
    if (state == nullptr) refuse(from, "has no variable '{}'", variable.name());
    auto name = name_of(optimizer.plan_for(variable).rule);
    if (state->optimizer != name)
      refuse(from, "was made with the optimizer {}, this job has {}", state->optimizer, name);
  }
}

} // namespace

void restore(strategy& strategy, const sync_replicas_optimizer& optimizer,
             std::span<const variable> variables, const job_snapshot& from) {
  check(strategy, optimizer, variables, from);
  for (const auto& variable : strategy.variables())
    if (const auto* state = find_state(from, variable))
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
