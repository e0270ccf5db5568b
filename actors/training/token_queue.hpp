// SPDX-License-Identifier: Apache-2.0
// The token queue: the barrier between two steps.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"
#include "actors/policies/slack_gate.hpp"
#include "actors/policies/token_ledger.hpp"
#include "actors/replication/request_session.hpp"

#include <caf/actor_addr.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace troupe {

/// How a token queue hands out its tokens.
struct token_queue_config {
  sync_policy policy = sync_policy::tensorflow;
  uint64_t first_step = 0;      ///< The step that the job begins with.
  std::vector<uint64_t> tokens; ///< If a job goes on: the steps of the tokens that it left.
  uint32_t replicas = 0;        ///< Under `ssp`: how many clocks there are.
  uint64_t slack = 0;           ///< Under `ssp`, as in `sync_options`.
  /// Whether a question that comes again gets the same answer, as TakeToken says.
  bool remembers = false;
  /// Whether replicas may be gone while they wait: they are watched, and get no token then.
  bool watches = false;
};

/// The replicas that wait for tokens, and the tokens that are there.
struct token_queue_state {
  static inline const char* name = "token_queue";

  /// A replica that waits for a token.
  struct waiter {
    uint32_t replica = 0;
    caf::actor_addr address;
    caf::typed_response_promise<msg<wire::Token>> promise;
    uint64_t local_step = 0;
    uint64_t not_before = 0; ///< As in TakeToken.
    uint64_t request = 0;    ///< As TakeToken.request; 0: it has none.
  };

  token_queue_config config;
  token_ledger<waiter> ledger{sync_policy::tensorflow};
  slack_gate<waiter> gate; ///< Under `ssp`, waiters have to pass it first.
  /// The step that answered the last question of each replica; nothing, as long as it waits.
  request_table<std::optional<uint64_t>> questions;
  std::set<caf::actor_addr> watched;
  msg<wire::Token> newest; ///< The last token made: most replicas get this message.
  uint64_t newest_step = 0;
  bool closed = false;

  /// The message that says `step`.
  msg<wire::Token> token(uint64_t step);
};

/// The behaviour of a token queue.
token_queue_actor::behavior_type
token_queue(observed_pointer<token_queue_actor, token_queue_state> self, token_queue_config config);

} // namespace troupe
