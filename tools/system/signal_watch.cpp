// SPDX-License-Identifier: Apache-2.0
// Passes signals from a handler to a thread, which reacts to them.
#include "tools/system/signal_watch.hpp"

#include "messages/errors/assert.hpp"
#include "messages/errors/system_reason.hpp"
#include "messages/errors/throw_failure.hpp"
#include "strategies/jobs/exit_codes.hpp"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace {

constexpr std::array watched{SIGINT, SIGTERM, SIGHUP, SIGUSR1};

// A terminal and a launcher that passes signals on both send the same Ctrl-C.
constexpr auto echo_time = std::chrono::milliseconds{500};

constexpr int no_more_signals = 0; // ends the thread
std::array<int, 2> pipe_ends{-1, -1};

void pass_on(int number) {
  auto before = errno;
  auto byte = static_cast<char>(number);
  static_cast<void>(!::write(pipe_ends[1], &byte, 1));
  errno = before;
}

void close_pipe() {
  for (int& end : pipe_ends)
    close(std::exchange(end, -1));
}

void put_back(int number, struct sigaction former) {
  struct sigaction now {};

  ::sigaction(number, nullptr, &now);
  if (now.sa_handler != pass_on) return; // the program has set one of its own meanwhile
  // A user who asks for a flight record too late must not end the process.
  if (number == SIGUSR1 && former.sa_handler == SIG_DFL) former.sa_handler = SIG_IGN;
  ::sigaction(number, &former, nullptr);
}

} // namespace

void ignore_size_limit_signal() {
  std::signal(SIGXFSZ, SIG_IGN);
}

void ignore_write_signals() {
  for (int number : write_signals)
    std::signal(number, SIG_IGN);
}

void unblock_signals(std::span<const int> numbers) {
  sigset_t these;
  sigemptyset(&these);
  for (int number : numbers)
    sigaddset(&these, number);
  ::pthread_sigmask(SIG_UNBLOCK, &these, nullptr);
}

// By a handler: programs that this one starts get the default back.
void pass_over_user_signal() {
  struct sigaction now {};

  ::sigaction(SIGUSR1, nullptr, &now);
  if (now.sa_handler != SIG_DFL) return;
  now.sa_handler = [](int) {};
  now.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR1, &now, nullptr);
}

signal_watch::signal_watch() {
  TROUPE_ASSERT(pipe_ends[0] == -1);
  unblock_signals(watched);
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0)
    throw_failure(errc::resource, "cannot watch signals: {}", system_reason(errno));
  try {
    thread_ = std::jthread{[this] { watch(); }};
  } catch (const std::system_error&) {
    close_pipe();
    throw;
  }

  struct sigaction ours {};

  ours.sa_handler = pass_on;
  ours.sa_flags = SA_RESTART;
  for (size_t i = 0; i < watched.size(); ++i) {
    ::sigaction(watched[i], nullptr, &former_[i]);
    auto is_kept = watched[i] == SIGHUP && former_[i].sa_handler == SIG_IGN; // as under nohup
    if (!is_kept) ::sigaction(watched[i], &ours, nullptr);
  }
}

signal_watch::~signal_watch() {
  for (size_t i = 0; i < watched.size(); ++i)
    put_back(watched[i], former_[i]);
  pass_on(no_more_signals);
  thread_.join();
  close_pipe();
}

void signal_watch::on_user_signal(std::function<void()> action) {
  std::lock_guard guard{mutex_};
  on_user_signal_ = std::move(action);
}

void signal_watch::watch() {
  using clock = std::chrono::steady_clock;
  clock::time_point first;
  char number = 0;
  while (read(pipe_ends[0], &number, 1) == 1 && number != no_more_signals) {
    if (number == SIGUSR1) {
      std::lock_guard guard{mutex_};
      if (on_user_signal_) on_user_signal_();
    } else if (number_ == 0) {
      number_ = number;
      first = clock::now();
      source_.request_stop();
    } else if (clock::now() - first > echo_time) {
      _exit(exit_code_of_signal(number));
    }
  }
}

} // namespace troupe
