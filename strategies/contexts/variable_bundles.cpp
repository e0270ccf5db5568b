// SPDX-License-Identifier: Apache-2.0
// Borrows variables from their owners, and gives them to bundles.
#include "strategies/contexts/variable_bundles.hpp"

#include "actors/world/ask.hpp"
#include "strategies/contexts/strategy.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

std::vector<lent_variables> lent_together(strategy& strategy, std::span<const variable> variables) {
  std::vector<lent_variables> groups;
  for (size_t i = 0; i < variables.size(); ++i)
    for (auto place : variables[i].places()) {
      if (place.kind == device_kind::cpu) continue;
      auto lent = value_or_throw(
        ask<lent_variable>(strategy.world(), variables[i].owners_here()[0], lend_variable{place}));
      auto found = std::ranges::find_if(groups, [&lent](const lent_variables& group) {
        return group.owner == lent.device && group.stream == lent.stream;
      });
      if (found == groups.end())
        found = groups.insert(groups.end(), {lent.device, lent.stream, place, {}, {}});
      found->positions.push_back(i);
      found->variables.push_back(std::move(lent.variable));
    }
  std::erase_if(groups, [](const lent_variables& group) { return group.positions.size() < 2; });
  return groups;
}

void variable_bundles::make() {
  const auto count = strategy_.variables().size();
  if (count == made_of_) return;
  end();
  made_of_ = count;
  if (strategy_.layout().variable_devices.empty()) return;
  auto& world = strategy_.world();
  const auto trained = strategy_.trainable_variables(); // an update has gradients for all of them
  for (const auto& lent : lent_together(strategy_, trained)) {
    auto name = fmt::format("{} and {} more", trained[lent.positions.front()].name(),
                            lent.positions.size() - 1);
    auto holder = world.system().spawn(
      variable_bundle, bundle_config{name, lent.variables, lent.owner, lent.stream, &world});
    world.introduce(holder.id(), "bundle of " + name);
    auto& bundle
      = bundles_.emplace_back(bundle_of_variables{.holder = holder, .where = lent.where});
    for (auto position : lent.positions) {
      caf::anon_send(trained[position].owners_here()[0], use_bundle{holder});
      bundle.variables.push_back(trained[position].index());
    }
  }
}

void variable_bundles::end() {
  for (const auto& bundle : bundles_)
    caf::anon_send_exit(bundle.holder, caf::exit_reason::user_shutdown);
  bundles_.clear();
  made_of_ = 0;
}

} // namespace troupe
