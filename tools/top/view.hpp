// SPDX-License-Identifier: Apache-2.0
// The page that `troupe top` shows of a job, made from the metrics and actors that it serves.
#pragma once

#include "messages/errors/errc.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// An actor, a row of the page.
struct top_actor {
  std::string name;
  std::string task; ///< Empty, if the job has but one process.
  std::string state;
  std::string last_message; ///< Its kind and its sender; empty if there was none.
  uint64_t mailbox_depth = 0;
  uint64_t handled = 0;
  uint64_t errors = 0;
  std::optional<uint64_t> late; ///< Gradients of a replica that came too late.
  double state_seconds = 0;     ///< How long it has been in its state.
};

/// A process that is lost, or has not reported for long.
struct top_task {
  std::string name;
  bool is_lost = false;
  std::optional<double> age_seconds; ///< Age of its last report; nothing if it never reported.
};

/// A job at one moment.
struct top_sample {
  double step = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();
  double live = 0;
  double needed = 0;
  double accepted = 0;
  double stale = 0;
  double cancelled = 0;
  double mean_step_seconds = 0; ///< Since the job began; 0 if no step is over.
  size_t tasks = 0;             ///< Processes; 0 if the job has but one.
  std::vector<top_task> silent; ///< The tasks that are lost, or have not reported for long.
  std::vector<top_actor> actors;
};

/// Reads what a job serves at /metrics and /actors. Control characters in names become '?', since
/// names come from elsewhere and go to a terminal.
/// Errors: malformed, if no job of Troupe serves such texts.
[[nodiscard]] expected<top_sample> read_top_sample(std::string_view metrics,
                                                   std::string_view actors);

/// The size of the terminal.
struct top_window {
  size_t width = 80;
  size_t height = std::numeric_limits<size_t>::max(); ///< Lines; rows that do not fit are left out.
};

/// The page: a heading, the processes that are lost or silent, and a row for each actor. The
/// fullest mailboxes come first, then actors that compute; those that ended come last.
/// @param steps_per_second The measured speed; nothing: the mean since the job began.
[[nodiscard]] std::string top_page(std::string_view endpoint, const top_sample& now,
                                   std::optional<double> steps_per_second, top_window window);

} // namespace troupe
