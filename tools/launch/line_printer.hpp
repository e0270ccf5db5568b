// SPDX-License-Identifier: Apache-2.0
// Writes texts to standard output and standard error on a thread of its own.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace troupe {

/// The reader of the output may be slow, and a pager reads nothing for hours: then writing blocks,
/// and signals must still be passed on. So a thread writes, in the order of the calls. When too
/// much waits, `is_full` tells the caller to read no more from the tasks, which then block as if
/// they wrote themselves. Thread: one caller.
class line_printer {
public:
  /// Bytes that may wait until `is_full`.
  static constexpr size_t waiting_bytes_max = size_t{1} << 20;

  /// @param on_room Called on the printer's thread when there is room again after `is_full`.
  /// @param on_closed Called on that thread when a descriptor has no reader any more, once for
  /// each: later texts for it are dropped. If writing fails for another reason, such as a full
  /// disk, they are dropped, too, and the other descriptor gets a line that says why.
  line_printer(std::function<void()> on_room, std::function<void()> on_closed);

  line_printer(const line_printer&) = delete;
  line_printer& operator=(const line_printer&) = delete;

  /// Waits until everything is written.
  ~line_printer();

  /// Writes text to a descriptor, after everything before it.
  void print(int descriptor, std::string text);

  /// Whether the caller should wait for `on_room`.
  [[nodiscard]] bool is_full();

private:
  struct piece {
    int descriptor;
    std::string text;
  };

  void write_all();
  void write(const piece& piece);
  void give_up(int descriptor, const char* reason);

  std::function<void()> on_room_;
  std::function<void()> on_closed_;
  std::mutex mutex_;
  std::condition_variable has_work_;
  std::vector<piece> waiting_;
  size_t waiting_bytes_ = 0; // with those that are being written
  bool was_full_ = false;
  bool is_over_ = false;
  std::set<int> closed_; // the thread's own
  std::jthread thread_;  // last: it uses the others
};

} // namespace troupe
