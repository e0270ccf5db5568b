// SPDX-License-Identifier: Apache-2.0
// The thread that waits for the reader of warnings, in place of others.
#include "actors/net/sockets/warning_queue.hpp"

#include "messages/errors/users_code.hpp"

#include <utility>

namespace troupe {

warning_queue::warning_queue(std::function<void(const std::string&)> say)
  : say_(line_teller("on_warning of a network", std::move(say))) {}

void warning_queue::end() {
  {
    std::lock_guard guard{mutex_};
    is_over_ = true;
  }
  news_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void warning_queue::tell(std::string line) {
  std::lock_guard guard{mutex_};
  if (is_over_ || lines_.size() >= lines_max) return;
  lines_.push_back(std::move(line));
  if (!thread_.joinable()) thread_ = std::thread{[this] { run(); }};
  news_.notify_one();
}

void warning_queue::run() {
  std::unique_lock lock{mutex_};
  while (true) {
    news_.wait(lock, [this] { return is_over_ || !lines_.empty(); });
    if (lines_.empty()) return;
    auto line = std::move(lines_.front());
    lines_.pop_front();
    lock.unlock();
    say_(line);
    lock.lock();
  }
}

} // namespace troupe
