// SPDX-License-Identifier: Apache-2.0
// The choice of the tasks that `--kill-every` kills.
#pragma once

#include "messages/errors/errc.hpp"
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

/// Draws tasks to kill, which tests how a job bears their loss. Sends no signal and reads no clock.
/// A seed draws the same tasks again if the same ones run.
class kill_choice {
public:
  /// @param words Types or names of tasks, as in "ps,worker:2"; empty: all workers but the chief,
  /// which no job can do without.
  /// Errors: invalid_argument for a word that names none of the tasks, and if no task is left.
  [[nodiscard]] static expected<kill_choice> among(std::span<const launch_task> tasks,
                                                   const std::string& words, uint64_t seed);

  /// Draws a task that runs; nothing if none of those to draw from does.
  [[nodiscard]] std::optional<size_t> draw(const std::function<bool(size_t)>& is_running);

  /// The tasks to draw from, for a line: "one of worker:1-3, with --kill-seed 7".
  [[nodiscard]] std::string described(std::span<const launch_task> tasks) const;

private:
  kill_choice(std::vector<size_t> tasks, uint64_t seed)
    : tasks_(std::move(tasks)), seed_(seed), numbers_(seed) {}

  std::vector<size_t> tasks_;
  uint64_t seed_;
  std::mt19937_64 numbers_;
};

} // namespace troupe
