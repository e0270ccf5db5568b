// SPDX-License-Identifier: Apache-2.0
// Hashing step records.
#include "simulation/ledger_hash.hpp"

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

// The finaliser of SplitMix64 is a bijection: what was different stays different.
// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
void ledger_hash::add(uint64_t number) {
  uint64_t x = value_ + 0x9e3779b97f4a7c15 + number;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  value_ = x ^ (x >> 31);
}

} // namespace troupe
