// SPDX-License-Identifier: Apache-2.0
// Reads the pipes of a process, and sends it signals.
#include "tools/launch/running_task.hpp"

#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr size_t error_line_bytes_max = 500;

} // namespace

running_task::running_task(asio::io_context& context, task_outlet outlet,
                           std::function<void()> on_silent)
  : outlet_(std::move(outlet)),
    on_silent_(std::move(on_silent)), output_{.pipe = asio::posix::stream_descriptor{context},
                                              .descriptor = STDOUT_FILENO},
    errors_{.pipe = asio::posix::stream_descriptor{context}, .descriptor = STDERR_FILENO},
    output_end_(context) {}

running_task::~running_task() {
  if (process_ == 0) return;
  signal_all(SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

expected<void> running_task::start(std::span<const std::string> words,
                                   std::span<const std::string> environment) {
  auto process = start_task(words, environment);
  if (!process) return tl::unexpected<error>(process.error());
  process_ = process->id;
  output_.pipe.assign(process->output);
  errors_.pipe.assign(process->errors);
  open_count_ = 2;
  last_errors_.clear();
  read(output_);
  read(errors_);
  return {};
}

void running_task::signal_all(int number) {
  if (process_ != 0) ::kill(-process_, number);
}

void running_task::signal_one(int number) {
  if (process_ != 0) ::kill(process_, number);
}

std::optional<task_end> running_task::look() {
  siginfo_t info{};
  auto id = static_cast<id_t>(process_);
  auto looked = ::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT);
  if (looked != 0 || info.si_pid == 0) return std::nullopt;
  if (info.si_code == CLD_EXITED) return task_end{.exit_code = info.si_status};
  return task_end{.signal = info.si_status};
}

bool running_task::is_stopped() const {
  // "4711 (its name) T ...": see proc(5). `waitid` would report a stop once only,
  // and a debugger's stops, too.
  std::ifstream file{fmt::format("/proc/{}/stat", process_)};
  std::string line;
  std::getline(file, line);
  auto name_end = line.rfind(") ");
  return name_end != std::string::npos && line.compare(name_end + 2, 1, "T") == 0;
}

void running_task::limit_output(output_limit limit) {
  limit_ = limit;
  output_end_.expires_after(limit.time);
  output_end_.async_wait([this](error_code cancelled) {
    if (cancelled) return;
    auto is_paused = output_.is_paused || errors_.is_paused;
    if (is_paused && limit_.waits_for_outlet) return limit_output(limit_); // the launcher is late
    signal_all(SIGKILL);
    close();
  });
}

void running_task::reap() {
  output_end_.cancel();
  if (process_ != 0) ::waitpid(std::exchange(process_, 0), nullptr, 0);
}

void running_task::close() {
  for (auto* each : {&output_, &errors_}) {
    error_code ignored;
    each->pipe.close(ignored); // ends a read that is under way
    if (std::exchange(each->is_paused, false)) finish(*each);
  }
}

void running_task::resume() {
  for (auto* each : {&output_, &errors_})
    if (std::exchange(each->is_paused, false)) read(*each);
}

void running_task::read(source& from) {
  from.pipe.async_read_some(
    asio::buffer(from.buffer),
    [this, &from](error_code failed, size_t count) { on_read(from, failed, count); });
}

void running_task::on_read(source& from, error_code failed, size_t count) {
  put(from, from.lines.add({from.buffer.data(), count}));
  if (!failed) {
    from.is_paused = outlet_.is_full();
    if (!from.is_paused) read(from);
    return;
  }
  finish(from);
}

void running_task::finish(source& from) {
  if (auto rest = from.lines.rest(); !rest.empty()) put(from, {rest});
  error_code ignored;
  from.pipe.close(ignored);
  if (--open_count_ == 0) on_silent_();
}

void running_task::put(source& from, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  for (const auto& line : lines) {
    if (from.descriptor != STDERR_FILENO) break;
    last_errors_.push_back(line.substr(0, std::min(line.find('\n'), error_line_bytes_max)));
    if (last_errors_.size() > last_errors_max) last_errors_.pop_front();
  }
  outlet_.put(from.descriptor, lines);
  put_into_log(from.descriptor, lines);
}

void running_task::put_into_log(int descriptor, const std::vector<std::string>& lines) {
  if (!outlet_.log) return;
  // The other output must not go on a line that this one has begun.
  std::string text = begun_by_ != 0 && begun_by_ != descriptor ? "\n" : "";
  begun_by_ = lines.back().back() == '\n' ? 0 : descriptor;
  for (const auto& line : lines)
    text += line;
  auto written = outlet_.log->append(text);
  if (written) written = outlet_.log->flush();
  if (written) return;
  outlet_.tell(fmt::format("{}; the rest of this log is lost", written.error().message));
  outlet_.log.reset();
}

} // namespace troupe
