// SPDX-License-Identifier: Apache-2.0
// Puts names before lines, and prints folded lines when they are due.
#include "tools/launch/task_terminal.hpp"

#include "tools/system/terminal.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace {

// "[worker:2] ", in one of six colours on a terminal.
std::string prefix_of(const launch_task& task, size_t number, int descriptor) {
  constexpr std::array colours{36, 33, 32, 35, 34, 31};
  auto name = fmt::format("[{}]", task.name());
  const char* no_colour = std::getenv("NO_COLOR"); // see no-color.org
  auto is_plain = no_colour != nullptr && *no_colour != '\0';
  if (is_plain || !is_terminal(descriptor)) return name + " ";
  return fmt::format("\x1b[{}m{}\x1b[0m ", colours[number % colours.size()], name);
}

bool is_folded(fold_choice fold, int descriptor) {
  return fold == fold_choice::always || (fold == fold_choice::automatic && is_terminal(descriptor));
}

void append_line(std::string& text, const std::string& prefix, const std::string& line) {
  text += prefix;
  text += line;
  if (!line.ends_with('\n')) text += '\n';
}

} // namespace

task_terminal::task_terminal(boost::asio::io_context& context, std::vector<launch_task> tasks,
                             fold_choice fold, std::function<void()> on_room,
                             std::function<void()> on_closed)
  : tasks_(std::move(tasks)), folder_(tasks_.size()), due_(context),
    printer_(std::move(on_room), std::move(on_closed)) {
  for (int descriptor : {STDOUT_FILENO, STDERR_FILENO})
    if (is_folded(fold, descriptor)) folded_.insert(descriptor);
}

std::optional<size_t> task_terminal::number_of(const launch_task& task) {
  auto is_same = [&](const launch_task& other) {
    return other.type == task.type && other.index == task.index;
  };
  auto known = std::ranges::find_if(tasks_, is_same);
  auto number = static_cast<size_t>(known - tasks_.begin());
  if (known != tasks_.end()) return number;
  if (number == launch_tasks_max) return std::nullopt;
  tasks_.push_back(task);
  folder_.add_task();
  return number;
}

void task_terminal::put(size_t task, int descriptor, std::span<const std::string> lines) {
  if (!folded_.contains(descriptor)) {
    auto prefix = prefix_of(tasks_[task], task, descriptor);
    std::string text;
    for (const auto& line : lines)
      append_line(text, prefix, line);
    return printer_.print(descriptor, std::move(text));
  }
  auto now = std::chrono::steady_clock::now();
  auto waited = folder_.next().has_value();
  for (const auto& line : lines)
    folder_.add(task, descriptor, line, now);
  print(folder_.take(now));
  if (!waited) print_when_due();
}

void task_terminal::tell(const std::string& text) {
  print(fmt::format("troupe launch: {}\n", text));
}

void task_terminal::print(std::string text) {
  flush();
  printer_.print(STDERR_FILENO, std::move(text));
}

void task_terminal::flush() {
  print(folder_.take_all());
  due_.cancel();
}

void task_terminal::print(const std::vector<folded_line>& lines) {
  for (const auto& [descriptor, line, tasks] : lines) {
    auto prefix = tasks.size() == 1
                    ? prefix_of(tasks_[tasks[0]], tasks[0], descriptor)
                    : fmt::format("[{}] {} tasks say: ", task_ranges(tasks_, tasks), tasks.size());
    std::string text;
    append_line(text, prefix, line);
    printer_.print(descriptor, std::move(text));
  }
}

void task_terminal::print_when_due() {
  auto next = folder_.next();
  if (!next) return;
  due_.expires_at(*next);
  due_.async_wait([this](boost::system::error_code cancelled) {
    if (cancelled) return;
    print(folder_.take(std::chrono::steady_clock::now()));
    print_when_due();
  });
}

} // namespace troupe
