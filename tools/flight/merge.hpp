// SPDX-License-Identifier: Apache-2.0
// Reads the flight records of several tasks, compares them, and shows them as one.
#pragma once

#include "messages/errors/errc.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A message that an actor began to handle.
struct flight_message {
  double seconds = 0; ///< Since the job began.
  std::string actor;
  std::string message;
  std::optional<uint64_t> step;
  std::string from; ///< Empty if not known.
};

/// An actor, at the time of the record.
struct flight_actor {
  std::string name;
  std::string state;
  double since = 0;             ///< Seconds since the job began.
  std::optional<uint64_t> step; ///< The newest step of its messages.
  uint64_t handled = 0;         ///< Messages so far; the record may list fewer.
  uint64_t listed = 0;          ///< Messages that the record lists.
};

/// The record of one task.
struct flight_task {
  std::string task;
  std::string reason;
  bool is_lost = false;
  std::optional<double> seconds; ///< When the task made the record; nothing if it made none.
  std::vector<flight_actor> actors;
  std::vector<flight_message> messages;
};

/// Reads a file of JSON lines as `flight_lines` writes it. A character of its texts that is not
/// printable becomes '?'. @param file Its name, for errors.
/// Errors: malformed, naming file and line.
[[nodiscard]] expected<flight_task> read_flight_task(std::string_view text,
                                                     const std::string& file);

/// A line for each task that did not answer, and one for the replica that fell behind: the one with
/// the oldest step; among several of them, the one that has computed for longest. A replica has a
/// line of its own if its step is not known, because the record holds only its last messages.
[[nodiscard]] std::vector<std::string> flight_findings(std::span<const flight_task> tasks);

/// The findings, and the last messages of all tasks by time. @pre There is a task.
[[nodiscard]] std::string flight_page(std::span<const flight_task> tasks, size_t messages_max);

} // namespace troupe
