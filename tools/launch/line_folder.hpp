// SPDX-License-Identifier: Apache-2.0
// One line for all tasks that say the same.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe {

/// A line, and the tasks that wrote it.
struct folded_line {
  int descriptor = 0;
  std::string line;
  std::vector<size_t> tasks; ///< In the order in which they wrote it, each once.

  bool operator==(const folded_line&) const = default;
};

/// A hundred tasks that print the same warning fill a terminal. A line waits a short time for tasks
/// that say the same, and joins an earlier one only behind all that its own task has said: the
/// lines of a task keep their order. Reads no clock: times come in.
class line_folder {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// No line waits longer.
  static constexpr std::chrono::milliseconds wait_max{500};

  /// When more bytes wait, the oldest lines wait no longer.
  static constexpr size_t waiting_bytes_max = size_t{256} << 10;

  /// @param tasks How many there are, numbered from 0. A line that all have said need not wait.
  explicit line_folder(size_t tasks);

  /// One more task from now on, with the next number.
  void add_task() { free_since_.push_back(0); }

  /// Takes a line. @pre `task` is less than the number of tasks; `now` does not go back.
  void add(size_t task, int descriptor, std::string line, time_point now);

  /// Lines that need not wait any more, the oldest first.
  [[nodiscard]] std::vector<folded_line> take(time_point now);

  /// All lines that wait.
  [[nodiscard]] std::vector<folded_line> take_all();

  /// When `take` has something to give at the latest; nothing: no line waits.
  [[nodiscard]] std::optional<time_point> next() const;

private:
  struct waiting_line {
    folded_line folded;
    time_point due;
  };

  [[nodiscard]] folded_line take_oldest();

  std::deque<waiting_line> waiting_;
  uint64_t first_number_ = 0;        // of the line at the front
  std::vector<uint64_t> free_since_; // by task: the number of the first line that it may join
  std::unordered_map<std::string, std::deque<uint64_t>> numbers_; // by descriptor and line
  size_t waiting_bytes_ = 0;
};

} // namespace troupe
