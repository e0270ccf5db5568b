// SPDX-License-Identifier: Apache-2.0
// The job of `troupe launch`: its tasks from their start to the last one's end.
#pragma once

#include "tools/launch/kill_choice.hpp"
#include "tools/launch/notice_socket.hpp"
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
/// timer. When the job is to end, the tasks left are asked by SIGTERM (or the launcher's own
/// signal) and killed after the grace time: no wait is without an end. Thread: one, which must
/// stay, since tasks die with it.
class launch_job {
public:
  /// @param tasks All of them. @param notices Where the job says which tasks it may lose.
  /// @param kills Which tasks are killed each `options.kill_every`; nothing: none.
  launch_job(const launch_options& options, std::vector<launch_task> tasks, notice_socket notices,
             std::optional<kill_choice> kills);

  /// Starts all tasks, or none: those that were started are killed if another cannot be.
  /// Errors: `resource` for a log that cannot be written; else as `start_task`.
  [[nodiscard]] expected<void> start(const std::string& job_id);

  /// Waits for all tasks and sums up. @returns The exit code.
  [[nodiscard]] int run();

private:
  using duration = std::chrono::milliseconds;

  /// A task. Its timer limits how long its children may write after its end.
  struct member {
    std::unique_ptr<running_task> process;
    boost::asio::steady_timer timer;
    std::optional<duration> starts_again{}; ///< Pause before its next start; empty: none is due.
    bool was_stopped = false; ///< Whether it was stopped at the last look after the job was over.
  };

  [[nodiscard]] expected<void> start_process(size_t index);
  void start_again(size_t index);
  void restart_all();
  [[nodiscard]] expected<task_outlet> outlet_of(size_t index);
  void put(size_t index, int target, std::span<const std::string> lines);
  [[nodiscard]] bool is_full();
  [[nodiscard]] expected<void> collect_output(const host_port& at);
  void send_output(const host_port& to);
  [[nodiscard]] duration now() const;
  void print(const std::string& line);

  void wait_for_signal();
  void on_signal(int number);
  void ask_to_end(int number, int passed_on);
  void look_at_all();
  void on_end(size_t index, task_end end);
  void wait_for_silence(size_t index);
  void drop_if_over(size_t index);
  void stop_listening();

  void begin_to_kill();
  void kill_one_later();
  void kill_one();

  void end_all(int number);
  void end_servers_later();
  void look_who_is_left();
  void kill_later();
  void kill_all();

  launch_options options_;
  std::vector<launch_task> tasks_;
  std::string job_id_;
  std::vector<std::string> inherited_; ///< The launcher's environment.
  uint32_t restarts_ = 0;              ///< How often all tasks were started again.
  notice_socket notices_;
  std::optional<kill_choice> kills_;
  launch_outcome outcome_;
  boost::asio::io_context context_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer grace_;
  boost::asio::steady_timer next_look_; ///< For tasks that are stopped.
  boost::asio::steady_timer next_kill_; ///< For --kill-every.
  task_terminal terminal_;              // before the tasks, which print as long as they live
  std::unique_ptr<output_collector> collector_;
  std::unique_ptr<output_sender> sender_;
  std::vector<member> members_;
  size_t over_count_ = 0;
  std::chrono::steady_clock::time_point started_;
  std::optional<std::chrono::steady_clock::time_point> ending_since_;
  bool killed_ = false;
  bool looks_who_is_left_ = false;
  bool has_told_who_is_left_ = false;
};

} // namespace troupe
