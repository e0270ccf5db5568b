// SPDX-License-Identifier: Apache-2.0
// The variables of a strategy as a snapshot without a job.
#include "strategies/checkpoint.hpp"

#include "actors/ask.hpp"
#include "actors/checkpoint/checkpoint_directory.hpp"
#include "actors/checkpoint/job_file.hpp"
#include "actors/tensor_payload.hpp"
#include "messages/training_message.hpp"
#include "strategies/checkpoint_saver_hook.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace troupe {

namespace {

// Processes that go on from different steps would train different variables.
void check_same_step(strategy& strategy, const std::optional<found_checkpoint>& found) {
  tensor own{dtype::i64, {1}};
  own.mutable_values<int64_t>()[0] = found ? static_cast<int64_t>(found->snapshot.step) : -1;
  auto all = strategy.cross_replica([own](cross_replica_context& context) {
    auto work = [own](process_exchange* exchange) { return exchange->gather({&own, 1}); };
    return context.exchanged("restore_checkpoint", 0, work);
  });
  auto steps = all.values<int64_t>();
  auto other = std::ranges::find_if(steps, [&](int64_t step) { return step != steps[0]; });
  if (other == steps.end()) return;
  auto describe = [](int64_t step) {
    return step < 0 ? std::string{"no checkpoint"} : fmt::format("that of step {}", step);
  };
  const auto& names = strategy.layout().group->names;
  throw failure{{errc::failed_precondition,
                 fmt::format("{} finds {}, {} {}; have all processes restore the same checkpoint",
                             names[static_cast<size_t>(other - steps.begin())], describe(*other),
                             names[0], describe(steps[0]))}};
}

} // namespace

void save_checkpoint(strategy& strategy, const std::filesystem::path& folder, uint64_t step) {
  context_check::blocking("save_checkpoint", strategy);
  auto& world = strategy.world();
  std::map<std::string, tensor_payload> combined; // with the copies of other processes
  if (strategy.layout().group)
    for (const auto& variable : strategy.variables())
      if (variable.synchronization() == variable_synchronization::on_read
          && variable.aggregation() != variable_aggregation::none)
        combined.emplace(variable.name(), to_payload(strategy.read(variable)));
  if (!strategy.layout().should_checkpoint) return;
  job_snapshot taken{.step = step, .time = world.now(), .seed = world.seed()};
  for (const auto& variable : strategy.variables()) {
    auto state
      = value_or_throw(ask<msg<wire::VariableState>>(world, variable.owner(), make_read_state()));
    taken.variables.push_back({variable.name(), read_state(state.reader(), state.owner())});
    if (auto whole = combined.find(variable.name()); whole != combined.end())
      taken.variables.back().state.value = whole->second;
  }
  auto directory = value_or_throw(checkpoint_directory::open(folder));
  auto content = to_content(taken);
  value_or_throw(directory.write(step, content.tensors, content.metadata));
}

std::optional<uint64_t> restore_checkpoint(strategy& strategy,
                                           const std::filesystem::path& folder) {
  context_check::blocking("restore_checkpoint", strategy);
  auto found = find_checkpoint(folder);
  if (strategy.layout().group) check_same_step(strategy, found);
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
