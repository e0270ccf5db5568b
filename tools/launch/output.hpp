// SPDX-License-Identifier: Apache-2.0
// The way of the lines that a launcher's tasks write, and that other launchers send.
#pragma once

#include "tools/launch/command_line.hpp"
#include "tools/launch/output_collector.hpp"
#include "tools/launch/output_sender.hpp"
#include "tools/launch/running_task.hpp"
#include "tools/launch/task_terminal.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

/// Lines of tasks go to the launcher that collects them, as long as it takes them, or to this
/// one's terminal, where those of other launchers go, too; and to the files of `--log-dir`.
/// Thread: that of the context.
class launch_output {
public:
  /// @param terminal, options Outlive this object.
  launch_output(boost::asio::io_context& context, task_terminal& terminal,
                const launch_options& options);
  launch_output(const launch_output&) = delete;
  launch_output& operator=(const launch_output&) = delete;

  /// Begins to listen for other launchers, or to dial one, as the options say.
  /// @param tasks This launcher's. @returns An outlet for each.
  /// Errors: `resource` for a log that cannot be written; else as `output_collector::listen`.
  [[nodiscard]] expected<std::vector<task_outlet>> open(std::span<const launch_task> tasks);

  /// Reads again the lines of other launchers, for which the terminal has room.
  void resume();

  /// The tasks are over: lines that wait are sent, and those of others taken, for a while yet.
  /// @param send_time For the lines that are to be sent.
  void finish(std::chrono::milliseconds send_time);

private:
  [[nodiscard]] expected<void> collect(const host_port& at);
  void send(const host_port& collector, const launch_task& task);
  [[nodiscard]] expected<task_outlet> outlet_of(size_t index, const launch_task& task);

  /// Whether lines of tasks go to another launcher.
  [[nodiscard]] bool is_sending() const { return sender_ && sender_->is_open(); }

  boost::asio::io_context& context_;
  task_terminal& terminal_;
  const launch_options& options_;
  std::unique_ptr<output_collector> collector_;
  std::unique_ptr<output_sender> sender_;
};

} // namespace troupe
