// SPDX-License-Identifier: Apache-2.0
// The variables of a strategy as a snapshot without a job.
#include "strategies/checkpoint.hpp"

#include "actors/ask.hpp"
#include "actors/checkpoint/checkpoint_directory.hpp"
#include "actors/checkpoint/job_file.hpp"
#include "messages/training_message.hpp"
#include "strategies/checkpoint_saver_hook.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

void save_checkpoint(strategy& strategy, const std::filesystem::path& folder, uint64_t step) {
  context_check::blocking("save_checkpoint", strategy);
  if (!strategy.layout().should_checkpoint) return;
  auto& world = strategy.world();
  job_snapshot taken{.step = step, .time = world.now(), .seed = world.seed()};
  for (const auto& variable : strategy.variables()) {
    auto state
      = value_or_throw(ask<msg<wire::VariableState>>(world, variable.owner(), make_read_state()));
    taken.variables.push_back({variable.name(), read_state(state.reader(), state.owner())});
  }
  auto directory = value_or_throw(checkpoint_directory::open(folder));
  auto content = to_content(taken);
  value_or_throw(directory.write(step, content.tensors, content.metadata));
}

std::optional<uint64_t> restore_checkpoint(strategy& strategy,
                                           const std::filesystem::path& folder) {
  context_check::blocking("restore_checkpoint", strategy);
  auto found = find_checkpoint(folder);
  if (!found) return std::nullopt;
  const auto& saved = found->snapshot.variables;
  auto saved_as = [&](const variable& wanted) {
    return std::ranges::find(saved, wanted.name(), &variable_snapshot::name);
  };
  for (const auto& variable : strategy.variables())
    if (saved_as(variable) == saved.end())
      throw failure{{errc::not_found, fmt::format("the checkpoint of step {} has no variable '{}'",
                                                  found->snapshot.step, variable.name())}};
  for (const auto& variable : strategy.variables())
    static_cast<void>(value_or_throw(ask<msg<wire::OptimizerInUse>>(
      strategy.world(), variable.owner(), make_restore_state(saved_as(variable)->state))));
  return found->snapshot.step;
}

} // namespace troupe
