// SPDX-License-Identifier: Apache-2.0
// Wrong clocks, as the virtual world asks for them.
#include "simulation/network/node_clocks.hpp"

#include "actors/world/virtual_coordinator.hpp"
#include "messages/errors/assert.hpp"

#include <utility>

namespace troupe {

node_clocks::~node_clocks() {
  if (are_set_) clock_.set_errors({});
}

void node_clocks::set(node_index node, job_time ahead, double rate) {
  TROUPE_ASSERT(ahead >= job_time{0});
  TROUPE_ASSERT(rate > 0);
  auto& error = errors_[node];
  auto time = clock_.elapsed();
  error = {error.shown_at(time) + ahead - time, rate, time};
  if (std::exchange(are_set_, true)) return;
  clock_.set_errors([this](caf::actor_id actor) {
    auto at = placement_.node_of(actor);
    return at ? &errors_[*at] : nullptr;
  });
}

} // namespace troupe
