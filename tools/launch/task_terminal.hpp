// SPDX-License-Identifier: Apache-2.0
// Prints the tasks' lines to the launcher's own outputs, behind the names of the tasks.
#pragma once

#include "tools/launch/line_folder.hpp"
#include "tools/launch/line_printer.hpp"
#include "tools/launch/tasks.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Prints each line behind the name of its task, "[worker:2] ", and a line of several tasks once:
/// "[worker:0-30] 31 tasks say: ". Thread: that of the context, but for the printer's calls.
class task_terminal {
public:
  /// @param tasks The tasks that write lines. @param on_room, on_closed As for `line_printer`.
  task_terminal(boost::asio::io_context& context, std::vector<launch_task> tasks, fold_choice fold,
                std::function<void()> on_room, std::function<void()> on_closed);

  /// The number of a task, which is added if it is new; nothing: there are too many tasks.
  [[nodiscard]] std::optional<size_t> number_of(const launch_task& task);

  /// Prints lines of a task, now or within `line_folder::wait_max`.
  /// @param descriptor STDOUT_FILENO or STDERR_FILENO.
  void put(size_t task, int descriptor, std::span<const std::string> lines);

  /// Prints a line of the launcher itself, after all that were put before.
  void tell(const std::string& text);

  /// Prints text as it is to standard error, after all that was put before.
  void print(std::string text);

  /// Prints all lines that wait for the same line of other tasks.
  void flush();

  /// Whether the caller should wait for `on_room`.
  [[nodiscard]] bool is_full() { return printer_.is_full(); }

private:
  void print(const std::vector<folded_line>& lines);
  void print_when_due();

  std::vector<launch_task> tasks_;
  std::set<int> folded_; // descriptors
  line_folder folder_;
  boost::asio::steady_timer due_;
  line_printer printer_;
};

} // namespace troupe
