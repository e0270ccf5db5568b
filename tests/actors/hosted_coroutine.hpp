// SPDX-License-Identifier: Apache-2.0
// A replica with a coroutine of the test, and the chief that it talks to.
#pragma once

#include "actors/training/replica.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/deterministic_world.hpp"

#include <string>
#include <utility>

namespace troupe::test {

using replica_body = std::function<task<void>(activity&)>;

/// A replica on a stage of its own. Whatever `body` awaits, the test lets happen.
struct hosted_coroutine : deterministic_world {
  explicit hosted_coroutine(replica_body body, pace_function pace = {}, uint32_t index = 0)
    : host(spawn(replica, replica_config{.index = index,
                                         .chief = chief.as<chief_actor>(),
                                         .world = &world,
                                         .pace = std::move(pace),
                                         .body = std::move(body)})) {
    settle();
  }

  ~hosted_coroutine() { caf::anon_send_exit(host, caf::exit_reason::kill); }

  /// Tells the replica that gradients for steps before `step` are not wanted.
  void cancel_before(uint64_t step) {
    chief.tell(host, make_cancel_step(step));
    settle();
  }

  [[nodiscard]] bool has_left() const { return !chief.heard<wire::Farewell>().empty(); }

  /// The reason that the replica gave when it left.
  [[nodiscard]] error reason() const {
    REQUIRE(has_left());
    auto said = chief.heard<wire::Farewell>().back();
    auto text = said.reader().getReason();
    return {read_errc(said.reader().getCode()), std::string{text.begin(), text.size()}};
  }

  puppet chief{world};
  replica_actor host;
};

} // namespace troupe::test
