// SPDX-License-Identifier: Apache-2.0
// Changes of a variable that are on their way to its mirror.
#pragma once

#include "actors/replication/request_session.hpp"
#include "messages/errors/errc.hpp"

#include <deque>
#include <functional>
#include <optional>

namespace troupe {

/// A change that the mirror has not made yet, and the answer that waits for it.
struct unmirrored_change {
  std::function<void()> tell;                                      ///< Tells the mirror.
  std::function<void(const std::optional<error>& refused)> settle; ///< Answers the caller.
  std::optional<request_id> id{}; ///< If it may be asked for again.
};

/// The changes that the mirror has not made yet, in order; the first one is on its way to it.
class unmirrored_changes {
public:
  void add(unmirrored_change change);

  /// The mirror has made the first one. @pre There is one.
  void settle_first();

  /// The mirror makes none of them any more. @param refused Why their callers are refused; nothing:
  /// they get their answers.
  void settle_all(const std::optional<error>& refused = {});

  /// Forgets all changes. Their callers get no answer: they asked a former life.
  void forget() { changes_.clear(); }

  /// The change with that number; null: the mirror has made it.
  [[nodiscard]] unmirrored_change* find(const request_id& id);

  /// The last change that may be asked for again; null: there is none.
  [[nodiscard]] unmirrored_change* last_numbered();

private:
  std::deque<unmirrored_change> changes_;
};

} // namespace troupe
