// SPDX-License-Identifier: Apache-2.0
// Merges lines that several tasks write at nearly the same time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe {

/// A line with the tasks that wrote it.
struct folded_line {
  int descriptor = 0;
  std::string line;
  std::vector<size_t> tasks; ///< Ascending, each once.

  bool operator==(const folded_line&) const = default;
};

/// A hundred tasks that print the same warning fill a terminal. So a line waits a short time for
/// the same line of other tasks. When its time is over, each task that has written it meanwhile
/// joins it, once the lines that this task wrote before have been given out: the lines of a task
/// keep their order. Reads no clock: the caller passes the times.
class line_folder {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// The longest wait of a line.
  static constexpr std::chrono::milliseconds wait_max{500};

  /// When more bytes wait, the oldest lines are given out at once.
  static constexpr size_t waiting_bytes_max = size_t{256} << 10;

  /// @param tasks Number of tasks, counted from 0. A line that all have written does not wait.
  explicit line_folder(size_t tasks) : waiting_(tasks) {}

  /// Adds a task, with the next number.
  void add_task() { waiting_.emplace_back(); }

  /// Takes a line. @pre `task` is less than the number of tasks; `now` does not go back.
  void add(size_t task, int descriptor, std::string line, time_point now);

  /// Takes out the lines that need not wait any more, in the order in which to print them.
  [[nodiscard]] std::vector<folded_line> take(time_point now);

  /// Takes out all lines that wait.
  [[nodiscard]] std::vector<folded_line> take_all();

  /// The time at which `take` gives a line at the latest; nothing: no line waits.
  [[nodiscard]] std::optional<time_point> next() const;

private:
  struct waiting_line {
    uint64_t number = 0; ///< Its number among all lines, in the order in which they came.
    std::string key;     ///< Descriptor and line.
    time_point due;
  };

  using folded_lines = std::vector<folded_line>;

  [[nodiscard]] std::optional<size_t> oldest() const;
  [[nodiscard]] bool is_next(size_t task, const std::string& key) const;
  std::string take_next(size_t task);
  void give_out(size_t task, folded_lines& lines);
  void give_out_before(size_t task, const std::vector<size_t>& busy, folded_lines& lines);

  std::vector<std::deque<waiting_line>> waiting_; // by task, the oldest first
  std::unordered_map<std::string, std::map<size_t, size_t>>
    counts_; // by key and task: lines that wait
  uint64_t count_ = 0;
  size_t waiting_bytes_ = 0;
};

} // namespace troupe
