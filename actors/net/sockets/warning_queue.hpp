// SPDX-License-Identifier: Apache-2.0
// Warnings on their way to a pipe that may not be read.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace troupe {

/// Lines for people go to a pipe, and a pipe that is not read makes its writer wait: for ever,
/// perhaps. A thread that has peers to hear must not wait, so the queue's own thread does.
///
/// Thread: any.
class warning_queue {
public:
  /// @param say Called with one line after the other, in the queue's thread, as `line_teller` does;
  /// empty: the lines go to standard error.
  explicit warning_queue(std::function<void(const std::string&)> say);

  warning_queue(const warning_queue&) = delete;
  warning_queue& operator=(const warning_queue&) = delete;

  /// Ends.
  ~warning_queue() { end(); }

  /// Says all lines that wait, and no later ones.
  void end();

  /// Says a line, some time. A line is dropped if `lines_max` wait already.
  void tell(std::string line);

  static constexpr size_t lines_max = 1000;

private:
  void run();

  std::function<void(const std::string&)> say_;
  std::mutex mutex_; ///< Guards all below; not held while a line is said.
  std::condition_variable news_;
  std::deque<std::string> lines_;
  bool is_over_ = false;
  std::thread thread_; ///< From the first line on.
};

} // namespace troupe
