// SPDX-License-Identifier: Apache-2.0
// The phases of a variable owner: no message is sent here.
#include "actors/training/variable_owner.hpp"
#include "messages/errors/assert.hpp"

#include <utility>

namespace troupe {

variable_owner_state::variable_owner_state(variable_owner_config from)
  : config(std::move(from)), variable(std::make_shared<owned_variable>(config)),
    now_in(config.mirrored ? phase::mirroring : phase::holding) {
  for (size_t place = 1; place < config.places.size(); ++place)
    devices.elsewhere.push_back(std::make_shared<owned_variable>(config, place));
  config.initial = {}; // the variable has a copy
}

void variable_owner_state::enter(phase next) {
  now_in.enter(next);
  TROUPE_ASSERT(returned.has_value() == (next == phase::returning), static_cast<int>(next));
  for (const auto& answer : std::exchange(delayed_answers, {}))
    answer();
}

void variable_owner_state::become_certain() {
  if (now_in == phase::unsure) enter(phase::holding);
}

void variable_owner_state::become_newcomer(const come_back& newcomer) {
  mirror.handle = nullptr;
  mirror.changes.forget();
  config.mirrored = newcomer.other;
  returned = newcomer;
  enter(phase::returning);
}

} // namespace troupe
