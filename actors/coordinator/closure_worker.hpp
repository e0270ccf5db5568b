// SPDX-License-Identifier: Apache-2.0
// The closure worker: calls functions that a coordinator names, one at a time.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"
#include "actors/world/activity.hpp"
#include "actors/world/task.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace troupe {

/// Calls the function that a message names, and returns the leaves of its result. An exception of
/// the function is the closure's error.
using closure_function
  = std::function<task<std::vector<closure_value>>(activity&, msg<wire::RunClosure>)>;

/// The coordinator that a worker works for, and how.
struct closure_worker_config {
  uint32_t index = 0; ///< Counts from 0, over all processes.
  coordinator_actor coordinator;
  closure_function call;
  troupe::world* world = nullptr; ///< Outlives the actor.
  job_time start_delay{0};        ///< How long it waits before it says that it is ready.
};

/// A worker's coroutine lives in an actor of its own, so that the worker hears that a closure is
/// cancelled while it runs. The two live and die together. A worker that is shut down cancels its
/// closure, and ends when that has ended.
struct closure_worker_state {
  static inline const char* name = "closure_worker";

  /// The closure that runs.
  struct call {
    uint64_t closure = 0;
    caf::typed_response_promise<msg<wire::ClosureDone>> done;
  };

  closure_worker_config config;
  replica_actor host;
  std::optional<call> running;
  uint64_t calls = 0; ///< Begun so far; also the step of the host's activity.
  bool is_leaving = false;
};

/// The behaviour of a closure worker. It says WorkerReady when it can begin.
closure_worker_actor::behavior_type
closure_worker(observed_pointer<closure_worker_actor, closure_worker_state> self,
               closure_worker_config config);

} // namespace troupe
