// SPDX-License-Identifier: Apache-2.0
// Borrowing variables of owners, and giving them to bundles.
#include "strategies/contexts/variable_bundles.hpp"

#include "actors/world/ask.hpp"
#include "strategies/contexts/strategy.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

std::vector<lent_variables> lent_together(strategy& of, std::span<const variable> among) {
  std::vector<lent_variables> found;
  for (size_t i = 0; i < among.size(); ++i)
    for (auto where : among[i].places()) {
      if (where.kind == device_kind::cpu) continue;
      auto lent = value_or_throw(
        ask<lent_variable>(of.world(), among[i].owners_here()[0], lend_variable{where}));
      auto together = std::ranges::find_if(found, [&lent](const lent_variables& others) {
        return others.owner == lent.device && others.stream == lent.stream;
      });
      if (together == found.end())
        together = found.insert(found.end(), {lent.device, lent.stream, where, {}, {}});
      together->positions.push_back(i);
      together->variables.push_back(std::move(lent.variable));
    }
  std::erase_if(found, [](const lent_variables& one) { return one.positions.size() < 2; });
  return found;
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
    auto& made = bundles_.emplace_back(bundle_of_variables{.holder = holder, .where = lent.where});
    for (auto position : lent.positions) {
      caf::anon_send(trained[position].owners_here()[0], use_bundle{holder});
      made.variables.push_back(trained[position].index());
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
