// SPDX-License-Identifier: Apache-2.0
// An alarm for a drawn job that does not end: how to replay it.
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe::test {

/// How to see the course of a seed again, for readers of a complaint: of a drawn job, of a drawn
/// meeting, and of a job by both engines.
inline constexpr std::string_view replay_command = "build/tests/sim/soak --first {} --seeds 1";
inline constexpr std::string_view replay_meeting_command
  = "build/tests/sim/soak --meetings --first {} --seeds 1";
inline constexpr std::string_view replay_engines_command
  = "build/tests/sim/soak --engines --first {} --seeds 1";

/// A checker can say that a wait had no end only if the job is over. While this lives, a job or its
/// checkers have `timeout_seconds` of real time, which is thousands of times as long as they need;
/// then the process says which seed it was and how to replay it, and ends with exit code 1.
class stuck_alarm {
public:
  /// @param who "the job", "the checkers". @param job In a line. @param command Replays a seed.
  stuck_alarm(uint64_t seed, std::string_view who, std::string_view job,
              std::string_view command = replay_command);
  ~stuck_alarm();

  stuck_alarm(const stuck_alarm&) = delete;
  stuck_alarm& operator=(const stuck_alarm&) = delete;

  static constexpr unsigned timeout_seconds = 120;
};

} // namespace troupe::test
