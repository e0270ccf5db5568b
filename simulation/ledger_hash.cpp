// SPDX-License-Identifier: Apache-2.0
// The hash of step records.
#include "simulation/ledger_hash.hpp"

#include "actors/world/moment_rank.hpp"

namespace troupe {

void ledger_hash::add(const step_record& step) {
  add(step.step);
  add(static_cast<uint64_t>(step.began.count()));
  add(static_cast<uint64_t>(step.ended.count()));
  add(step.live);
  for (const auto* gradients : {&step.accepted, &step.stale, &step.cancelled}) {
    add(gradients->size());
    for (const auto& gradient : *gradients)
      add(gradient);
  }
}

void ledger_hash::add(const contribution& gradient) {
  add(gradient.replica);
  add(gradient.local_step);
  add(gradient.staleness);
  add(static_cast<uint64_t>(gradient.arrived.count()));
  add(static_cast<uint64_t>(gradient.compute.count()));
}

// A bijection: different values stay different.
void ledger_hash::add(uint64_t number) {
  value_ = mixed(value_ + number);
}

} // namespace troupe
