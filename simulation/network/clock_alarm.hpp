// SPDX-License-Identifier: Apache-2.0
// An alarm that rings at a time of the world's clock.
#pragma once

#include <caf/actor_clock.hpp>
#include <caf/actor_control_block.hpp>

#include <functional>
#include <memory>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe {

/// Events between nodes happen in no actor. An alarm is called by the clock itself, before
/// any actor does something at that time. Thread: that of the virtual world.
class clock_alarm {
public:
  /// @param ring Called at every time that was set.
  clock_alarm(caf::actor_system& system, std::function<void()> ring);

  /// `ring` is not called any more.
  ~clock_alarm();

  clock_alarm(const clock_alarm&) = delete;
  clock_alarm& operator=(const clock_alarm&) = delete;

  /// Has the alarm ring once more, at `time`.
  void set(caf::actor_clock::time_point time);

  /// The clock's time; inside `ring` the one that was set.
  [[nodiscard]] caf::actor_clock::time_point now() const;

private:
  caf::actor_system& system_;
  std::shared_ptr<std::function<void()>> ring_;
  caf::strong_actor_ptr receiver_; ///< Gets the clock's messages.
};

} // namespace troupe
