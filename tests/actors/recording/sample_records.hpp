// SPDX-License-Identifier: Apache-2.0
// Step records with round numbers, for the tests of everything that is made from them.
#pragma once

#include "actors/recording/records.hpp"

namespace troupe::test {

/// A gradient of `replica` for step `local_step`, there at `arrived`.
inline contribution gradient(uint32_t replica, uint64_t local_step, job_time arrived) {
  using namespace std::chrono_literals;
  contribution one;
  one.replica = replica;
  one.local_step = local_step;
  one.arrived = arrived;
  one.compute = 100ms;
  one.waited = 20ms;
  one.loss = 2.0 + replica;
  one.examples = 32;
  return one;
}

/// Step 8, from 1.0 s to 1.5 s: replicas 0, 2, 1 accepted in this order, 3 stale by two steps.
inline step_record step_with_a_straggler() {
  using namespace std::chrono_literals;
  step_record step;
  step.step = 8;
  step.began = 1000ms;
  step.ended = 1500ms;
  step.apply = 50ms;
  step.needed = 3;
  step.live = 4;
  step.accepted = {gradient(0, 7, 1100ms), gradient(2, 7, 1200ms), gradient(1, 7, 1450ms)};
  step.stale = {gradient(3, 5, 1300ms)};
  step.stale[0].staleness = 2;
  return step;
}

} // namespace troupe::test
