// SPDX-License-Identifier: Apache-2.0
// Runs the process of a task, from its start to the last byte of its output.
#pragma once

#include "actors/recording/output_file.hpp"
#include "tools/launch/line_splitter.hpp"
#include "tools/launch/task_process.hpp"
#include "tools/launch/tasks.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// The receivers of a task's lines.
struct task_outlet {
  /// Takes lines of STDOUT_FILENO or STDERR_FILENO; all but a piece of a long one end with '\n'.
  std::function<void(int descriptor, std::span<const std::string> lines)> put;
  std::function<bool()> is_full;                ///< Whether to `put` no more until `resume`.
  std::function<void(const std::string&)> tell; ///< Takes a line about the log.
  std::optional<record_writer> log;             ///< Takes both outputs as they are.
};

/// How long a task's output may go on after the end of its process.
struct output_limit {
  std::chrono::milliseconds time;
  bool waits_for_outlet; ///< Whether the time begins anew when the outlet is full at its end.
};

/// A task has two ends: that of its process, and that of its pipes, into which a process that it
/// started may still write. Until both have come, the process is not reaped, so that its id is not
/// given to another process, which would get its signals. Thread: that of the context.
class running_task {
public:
  /// The most lines of `last_errors`.
  static constexpr size_t last_errors_max = 10;

  /// @param on_silent Called when both outputs are at their end.
  running_task(boost::asio::io_context& context, task_outlet outlet,
               std::function<void()> on_silent);
  running_task(const running_task&) = delete;
  running_task& operator=(const running_task&) = delete;

  /// Kills it if it is still there.
  ~running_task();

  /// Starts the process. @param words, environment As for `start_task`. Errors: as `start_task`.
  [[nodiscard]] expected<void> start(std::span<const std::string> words,
                                     std::span<const std::string> environment);

  /// Sends a signal to the process and all that it started.
  void signal_all(int number);

  /// Sends a signal to the process alone.
  void signal_one(int number);

  /// How it ended; nothing if it has not. @pre It was not reaped.
  [[nodiscard]] std::optional<task_end> look();

  /// Whether the process is stopped, as by SIGSTOP. @pre It was not reaped.
  [[nodiscard]] bool is_stopped() const;

  /// Whether both outputs are at their end.
  [[nodiscard]] bool is_silent() const { return open_count_ == 0; }

  /// Begins the time in which the output must end: then all that the process started is killed,
  /// and its output is read no more. @pre The process does not run.
  void limit_output(output_limit limit);

  /// Frees the id of a process that has ended. @pre `look` has returned its end.
  void reap();

  /// Reads again after the outlet was full.
  void resume();

  /// The last lines of standard error, without their ends.
  [[nodiscard]] const std::deque<std::string>& last_errors() const { return last_errors_; }

private:
  struct source {
    boost::asio::posix::stream_descriptor pipe;
    int descriptor; // STDOUT_FILENO or STDERR_FILENO
    line_splitter lines;
    std::array<char, 16384> buffer;
    bool is_paused = false;
  };

  void read(source& from);
  void on_read(source& from, boost::system::error_code failed, size_t count);
  void finish(source& from);
  void close();
  void put(source& from, const std::vector<std::string>& lines);
  void put_into_log(int descriptor, const std::vector<std::string>& lines);

  task_outlet outlet_;
  std::function<void()> on_silent_;
  pid_t process_ = 0; // 0: not started, or reaped
  source output_;
  source errors_;
  int open_count_ = 0;
  boost::asio::steady_timer output_end_;
  output_limit limit_{};
  std::deque<std::string> last_errors_;
  int begun_by_ = 0; // the descriptor whose line in the log has no end yet; 0: none
};

} // namespace troupe
