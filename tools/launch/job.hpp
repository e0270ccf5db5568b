// SPDX-License-Identifier: Apache-2.0
// Runs the job of `troupe launch`, from the start of its tasks to the end of the last one.
#pragma once

#include "tools/launch/kill_choice.hpp"
#include "tools/launch/notice_socket.hpp"
#include "tools/launch/outcome.hpp"
#include "tools/launch/output_collector.hpp"
#include "tools/launch/output_sender.hpp"
#include "tools/launch/running_task.hpp"
#include "tools/launch/task_terminal.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Everything that happens is an event of one loop: bytes in a pipe, a signal, a task's end, a
/// timer. When the job is to end, the remaining tasks get SIGTERM (or the launcher's own signal),
/// and SIGKILL after the grace time, so that every wait has an end. Thread: one, which must not end
/// before the tasks, since they die with it.
class launch_job {
public:
  /// @param tasks All tasks to start. @param notices Where the job says which tasks it may lose.
  /// @param kills Draws the task to kill after each `options.kill_every`; nothing: none is killed.
  launch_job(const launch_options& options, std::vector<launch_task> tasks, notice_socket notices,
             std::optional<kill_choice> kills);

  /// Starts all tasks. If one cannot be started, the others are killed with this object.
  /// Errors: `resource` for a log that cannot be written; else as `start_task`.
  [[nodiscard]] expected<void> start(const std::string& job_id);

  /// Waits for all tasks and prints the outcome. @returns The exit code.
  [[nodiscard]] int run();

private:
  using duration = std::chrono::milliseconds;

  /// A task. Its timer limits how long its children may write after its end, and delays a restart.
  struct member {
    std::unique_ptr<running_task> process;
    boost::asio::steady_timer timer;
    std::optional<duration> starts_again{}; ///< Pause before its next start; empty: none is due.
    bool was_stopped = false; ///< Whether the last check of the remaining tasks found it stopped.
  };

  [[nodiscard]] expected<void> start_process(size_t index);
  void start_again(size_t index);
  void restart_all();
  [[nodiscard]] expected<task_outlet> outlet_of(size_t index);
  void put(size_t index, int descriptor, std::span<const std::string> lines);
  [[nodiscard]] bool is_full();
  [[nodiscard]] expected<void> collect_output(const host_port& at);
  void send_output(const host_port& collector);
  [[nodiscard]] duration now() const;
  void print(const std::string& line);

  void wait_for_signal();
  void on_signal(int number);
  void ask_to_end(int number, int passed_on);
  void look_at_all();
  void on_end(size_t index, task_end end);
  void wait_for_silence(size_t index);
  void drop_if_over(size_t index);
  [[nodiscard]] bool is_over() const;
  void stop_listening();

  void begin_to_kill();
  void kill_one_later();
  void kill_one();

  void end_all(int number);
  void end_servers_later();
  void check_remaining_tasks();
  void kill_later();
  void kill_all();

  launch_options options_;
  std::vector<launch_task> tasks_;
  std::string job_id_;
  std::vector<std::string> environment_; ///< The launcher's own, as "NAME=value".
  uint32_t restarts_ = 0;                ///< How often all tasks were started again.
  notice_socket notices_;
  std::optional<kill_choice> kills_;
  launch_outcome outcome_;
  boost::asio::io_context context_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer grace_;
  boost::asio::steady_timer next_check_; ///< For tasks that remain when the job is over.
  boost::asio::steady_timer next_kill_;  ///< For --kill-every.
  task_terminal terminal_;               // before the tasks, which print as long as they live
  std::unique_ptr<output_collector> collector_;
  std::unique_ptr<output_sender> sender_;
  std::vector<member> members_;
  size_t over_count_ = 0; ///< Tasks that have ended, with all their output.
  std::chrono::steady_clock::time_point started_;
  std::optional<std::chrono::steady_clock::time_point> ending_since_;
  bool killed_ = false;
  bool checks_remaining_ = false;
  bool has_named_remaining_ = false;
};

} // namespace troupe
