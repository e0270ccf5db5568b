// SPDX-License-Identifier: Apache-2.0
// The coordinator: gives closures to workers, and keeps the first error for the next caller.
#pragma once

#include "actors/coordinator/closure_queue.hpp"
#include "actors/coordinator/instances_in_use.hpp"
#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"
#include "messages/coordinator_message.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe {

/// The state of a coordinator's queue, which users read without a message: to schedule a closure
/// costs one message, and no wait for an answer.
struct queue_gauge {
  std::atomic<size_t> taken{0};        ///< Places in the queue, with closures on their way there.
  std::atomic<bool> has_failed{false}; ///< Whether the next request is answered by an error.

  /// A worker is there, runs a function, has ended it, or is lost.
  void come(uint32_t worker);
  void begin(uint32_t worker, std::string function);
  void end(uint32_t worker);
  void lose(uint32_t worker);

  /// Closures that have returned or failed.
  [[nodiscard]] uint64_t ended() const;

  /// The calls that a caller waits for: "worker 0 to return from 'step', with 3 more queued".
  [[nodiscard]] std::string awaited() const;

private:
  mutable std::mutex mutex_;
  std::set<uint32_t> there_; ///< Workers that have come, and are not lost.
  std::map<uint32_t, std::string> run_;
  uint64_t ended_ = 0;
};

/// The workers that a coordinator gives work, and the size of its queue.
struct coordinator_config {
  uint32_t workers = 1;    ///< All workers; some may not be there yet, or any more.
  uint32_t bystanders = 0; ///< Processes that ask for the end; it comes when all have.
  size_t capacity = 262'144;
  std::shared_ptr<queue_gauge> gauge = std::make_shared<queue_gauge>();
  std::shared_ptr<const instances_in_use> instances = std::make_shared<instances_in_use>();
  /// Told of workers that are lost, or back, as `line_teller` tells it; may be empty.
  std::function<void(const std::string&)> on_warning;
};

/// The error of a closure that was cancelled because another failed.
extern const error closure_cancelled;

/// The callers that wait, and the workers with their closures.
///
/// | what happens            | closures in flight                | queued    | a caller           |
/// |-------------------------|-----------------------------------|-----------|--------------------|
/// | a closure returns       | its worker gets the next          | -         | joins, if all done |
/// | a closure fails         | are told that they are not needed | cancelled | waits for those    |
/// | the last of those ends  | -                                 | -         | gets the error     |
/// | a worker is lost        | what it ran is queued again       | -         | -                  |
/// | a worker comes          | it gets the next                  | -         | -                  |
/// | the only holder of ...  | are told that they are not needed | cancelled | gets the error,    |
/// | ... variables is lost   |                                   |           | now and ever after |
/// | the end                 | are told so, and are waited for   | cancelled | is cancelled       |
struct coordinator_state {
  static inline const char* name = "coordinator";

  /// A worker that is there.
  struct worker {
    closure_worker_actor handle;
    std::optional<uint64_t> runs;
  };

  coordinator_config config;
  std::optional<closure_queue> queue;
  uint64_t scheduled = 0;                        ///< Closures so far; the last one's number.
  std::map<uint64_t, schedule_closure> closures; ///< Closures that have not ended.
  std::map<uint32_t, worker> workers;
  std::deque<uint32_t> idle;           ///< Workers without a closure; the longest idle first.
  std::map<uint32_t, uint64_t> losses; ///< By worker: how often it was lost.
  std::deque<schedule_closure> waiting_for_room;
  std::vector<await_closures> waiting_for_end;
  /// By process; that of its last life.
  std::map<uint32_t, caf::typed_response_promise<msg<wire::ServiceEnded>>> bystanders;
  std::set<caf::actor_addr> relied_on; ///< Owners that hold variables alone.
  std::optional<error> stranded;       ///< Why no closure can run: one of those owners is lost.
  std::optional<end_service> ending;
};

/// The behaviour of a coordinator.
coordinator_actor::behavior_type
coordinator(observed_pointer<coordinator_actor, coordinator_state> self, coordinator_config config);

} // namespace troupe
