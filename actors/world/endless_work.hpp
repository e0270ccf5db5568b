// SPDX-License-Identifier: Apache-2.0
// The end of a world while some function of a user never returns.
#pragma once

#include "actors/world/world.hpp"

#include <cstdint>

namespace troupe {

/// A function that never returns cannot be stopped, so a world that waited for it would keep its
/// process for ever, after `train` has returned with the reason. A threads world therefore waits
/// for its computing threads only so long once it is to end; after that, it names the actors of
/// unfinished work in a line on standard error, and leaves them and itself in memory until the
/// process ends. The process itself goes on: its `main` chooses the exit code.
constexpr job_time endless_work_timeout = std::chrono::seconds{2};

/// Says, while it lives, for which actor the calling thread submits work.
class submitting_for {
public:
  explicit submitting_for(uint64_t actor);
  ~submitting_for();
  submitting_for(const submitting_for&) = delete;
  submitting_for& operator=(const submitting_for&) = delete;

  /// 0 if the calling thread has not said it.
  [[nodiscard]] static uint64_t current();
};

/// Submitted work calls this before the code of a user, without which the world may end: until it
/// has left it, the work does not refer to the world.
void enter_user_code();

/// Submitted work calls this when the code of a user has returned, before it refers to the world.
/// If the world has ended without it, it holds the thread until the process ends.
void leave_user_code();

/// Waits for the work in a world of any kind, so that it can be destroyed. A world with endless
/// work is left in memory: `ending` is empty then.
void end_world(std::unique_ptr<world::implementation>& ending);

} // namespace troupe
