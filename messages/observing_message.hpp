// SPDX-License-Identifier: Apache-2.0
// The messages by which one process sees the actors of another.
// observing.capnp says what they mean and when they are sent.
#pragma once

#include "messages/msg.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace troupe {

/// A message that an actor began to handle; the fields are those of `wire::SeenMessage`.
struct seen_message {
  std::chrono::nanoseconds when{0};
  std::string kind;
  uint64_t sender = 0;
  uint64_t step = std::numeric_limits<uint64_t>::max();

  bool operator==(const seen_message&) const = default;
};

/// An actor of a process; the fields are those of `wire::ActorReport`.
struct actor_report {
  std::string name;
  uint64_t actor = 0;
  uint8_t doing = 0;
  std::chrono::nanoseconds since{0};
  uint64_t mailbox_depth = 0;
  uint64_t received = 0;
  uint64_t handled = 0;
  uint64_t errors = 0;
  uint64_t timed = 0;
  std::chrono::nanoseconds timed_total{0};
  std::vector<seen_message> messages;

  bool operator==(const actor_report&) const = default;
};

/// The actors of a process at one moment; the fields are those of `wire::TaskReport`.
struct task_report {
  std::chrono::nanoseconds clock{0};
  uint64_t resident_bytes = 0;
  double cpu_seconds = 0;
  std::vector<actor_report> actors;
  uint32_t left_out = 0;

  bool operator==(const task_report&) const = default;
};

/// Asks a process for a report. @param messages How many of each actor's last messages.
[[nodiscard]] msg<wire::ReadTask> make_read_task(uint32_t messages);

/// Reports the actors of a process.
[[nodiscard]] msg<wire::TaskReport> make_task_report(const task_report& report);

/// The fields as a plain value: as a peer has set them, no less and no more.
[[nodiscard]] task_report read_task_report(wire::TaskReport::Reader from);

} // namespace troupe
