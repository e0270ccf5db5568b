// SPDX-License-Identifier: Apache-2.0
// The handle of a supervised actor, which stays the same over restarts and loses no question.
#pragma once

#include "messages/errors/errc.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/message_id.hpp>
#include <caf/monitorable_actor.hpp>

#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>

namespace troupe {

/// Passes messages on to the actor that stands behind it now. Requests get numbers of its own: when
/// the actor ends without an answer to some of them, of which CAF tells no asker, the proxy answers
/// them. A question that comes while there is no actor is answered at once, with `unavailable`.
/// Monitors and links are told when the supervisor gives up, and not of restarts.
///
/// Cost: a lock, and a look into a table for each request. Thread: any.
class supervised_proxy final : public caf::monitorable_actor {
public:
  /// @param on_exit Called for an exit message, which ends the actor behind the proxy.
  supervised_proxy(caf::actor_config& config, std::function<void()> on_exit);

  [[nodiscard]] const char* name() const override { return "supervised_proxy"; }

  void enqueue(caf::mailbox_element_ptr message, caf::execution_unit* host) override;

  /// From now on messages go to `actor`.
  void bind(caf::strong_actor_ptr actor);

  /// There is no actor now: open questions, and those to come, are answered with `why`.
  void unbind(const error& why);

  /// There will be no actor again. @param reason The exit reason that monitors get.
  void end(const error& why, caf::error reason);

private:
  struct question {
    caf::strong_actor_ptr asker;
    caf::message_id number;
  };

  void hand_back(caf::mailbox_element& answer, caf::execution_unit* host);

  std::function<void()> on_exit_;
  std::mutex mutex_;
  caf::strong_actor_ptr actor_;                 ///< Null while there is none.
  caf::error why_;                              ///< Why there is none.
  std::unordered_map<uint64_t, question> open_; ///< By the proxy's numbers.
  uint64_t count_ = 0;
};

} // namespace troupe
