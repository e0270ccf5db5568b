// SPDX-License-Identifier: Apache-2.0
// The messages of trial.capnp, as a node of a trainer's author knows them.
#pragma once

#include "actors/net/network_messages.hpp"
#include "tests/messages/trial_messages.hpp"

namespace troupe::test {

/// `Opinion` and `Count`; `Remark` is no message of its own.
[[nodiscard]] inline network_messages trial_messages() {
  network_messages known;
  known.add<trial::Opinion>("trial.Opinion").add<trial::Count>("trial.Count");
  return known;
}

} // namespace troupe::test
