// SPDX-License-Identifier: Apache-2.0
// Which task `--kill-every` kills next.
#pragma once

#include "messages/errc.hpp"
#include "tools/launch/tasks.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// Draws tasks to kill, to try out the loss of some. Sends no signal and
/// reads no clock; a seed draws the same tasks again if the same ones run.
class kill_choice {
public:
  /// @param words Types or names, as in "ps,worker:2"; empty: workers other than the chief, without
  /// which a job can go on.
  /// Errors: invalid_argument for a word that names none of the tasks, and if no task is left.
  [[nodiscard]] static expected<kill_choice> among(std::span<const launch_task> tasks,
                                                   const std::string& words, uint64_t seed);

  /// A task that runs; nothing if none of those that may be drawn does.
  [[nodiscard]] std::optional<size_t> draw(const std::function<bool(size_t)>& runs);

  /// Which tasks are drawn, for a line: "one of worker:1-3, with --kill-seed 7".
  [[nodiscard]] std::string described(std::span<const launch_task> tasks) const;

  /// The tasks that may be drawn.
  [[nodiscard]] const std::vector<size_t>& tasks() const { return tasks_; }

private:
  kill_choice(std::vector<size_t> tasks, uint64_t seed)
    : tasks_(std::move(tasks)), seed_(seed), numbers_(seed) {}

  std::vector<size_t> tasks_;
  uint64_t seed_;
  std::mt19937_64 numbers_;
};

} // namespace troupe
