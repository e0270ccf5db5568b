// SPDX-License-Identifier: Apache-2.0
// The thread that writes, and its queue.
#include "tools/launch/line_printer.hpp"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace troupe {

line_printer::line_printer(std::function<void()> on_room, std::function<void()> on_closed)
  : on_room_(std::move(on_room)), on_closed_(std::move(on_closed)),
    thread_([this] { write_all(); }) {}

line_printer::~line_printer() {
  std::unique_lock lock{mutex_};
  is_over_ = true;
  lock.unlock();
  has_work_.notify_one();
  thread_.join();
}

void line_printer::print(int descriptor, std::string text) {
  std::unique_lock lock{mutex_};
  waiting_bytes_ += text.size();
  // Small writes are slow: texts for the same descriptor go together.
  if (!waiting_.empty() && waiting_.back().descriptor == descriptor)
    waiting_.back().text += text;
  else
    waiting_.push_back({descriptor, std::move(text)});
  lock.unlock();
  has_work_.notify_one();
}

bool line_printer::is_full() {
  std::lock_guard guard{mutex_};
  was_full_ = waiting_bytes_ > waiting_bytes_max;
  return was_full_;
}

void line_printer::write_all() {
  std::unique_lock lock{mutex_};
  while (true) {
    has_work_.wait(lock, [this] { return is_over_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    auto taken = std::exchange(waiting_, {});
    lock.unlock();
    size_t bytes = 0;
    for (const auto& piece : taken) {
      write(piece);
      bytes += piece.text.size();
    }
    lock.lock();
    waiting_bytes_ -= bytes;
    if (!was_full_ || waiting_bytes_ > waiting_bytes_max) continue;
    was_full_ = false;
    lock.unlock();
    on_room_();
    lock.lock();
  }
}

void line_printer::write(const piece& piece) {
  std::string_view left = piece.text;
  while (!left.empty() && !closed_.contains(piece.descriptor)) {
    const ssize_t written = ::write(piece.descriptor, left.data(), left.size());
    if (written >= 0) {
      left.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) { // another process has set O_NONBLOCK
      pollfd room{.fd = piece.descriptor, .events = POLLOUT};
      ::poll(&room, 1, -1);
    } else if (errno == EPIPE) {
      closed_.insert(piece.descriptor);
      on_closed_();
    } else if (errno != EINTR) {
      give_up(piece.descriptor, std::strerror(errno));
    }
  }
}

// The job goes on when the disk is full.
void line_printer::give_up(int descriptor, const char* reason) {
  closed_.insert(descriptor);
  auto is_output = descriptor == STDOUT_FILENO;
  write({is_output ? STDERR_FILENO : STDOUT_FILENO,
         fmt::format("troupe launch: cannot write to standard {}: {}; the tasks go on without it\n",
                     is_output ? "output" : "error", reason)});
}

} // namespace troupe
