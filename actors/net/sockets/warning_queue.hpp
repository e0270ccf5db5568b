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
  /// @param say Called with one line after the other, in the queue's thread. May be empty.
  explicit warning_queue(std::function<void(const std::string&)> say);

  warning_queue(const warning_queue&) = delete;
  warning_queue& operator=(const warning_queue&) = delete;

  /// Ends.
  ~warning_queue() { end(); }

  /// Has what is still to be said said, and nothing after it.
  void end();

  /// Has a line said, some time. Of more than `lines_max` that wait, the last are not said.
  void tell(std::string line);

  static constexpr size_t lines_max = 1000;

private:
  void run();

  std::function<void(const std::string&)> say_;
  std::mutex mutex_; ///< Of what follows; not held while something is said.
  std::condition_variable news_;
  std::deque<std::string> lines_;
  bool is_over_ = false;
  std::thread thread_; ///< From the first line on.
};

} // namespace troupe
