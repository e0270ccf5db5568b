// SPDX-License-Identifier: Apache-2.0
// Waiting for signals on a thread of their own.
#include "tools/signal_watch.hpp"

#include "tools/exit_codes.hpp"

#include <csignal>
#include <ctime>
#include <unistd.h>

namespace troupe {

namespace {

constexpr timespec patience{.tv_sec = 0,
                            .tv_nsec = 100'000'000}; // until the next look whether all is over

sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

} // namespace

signal_watch::signal_watch() {
  auto signals = watched_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::jthread{[this](const std::stop_token& over) { watch(over); }};
}

signal_watch::~signal_watch() {
  thread_.request_stop();
  thread_.join();
  auto signals = watched_signals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

void signal_watch::watch(const std::stop_token& over) {
  auto signals = watched_signals();
  while (!over.stop_requested()) {
    auto number = sigtimedwait(&signals, nullptr, &patience);
    if (number <= 0) continue;
    if (number_ != 0) _exit(exit_code_of_signal(number));
    number_ = number;
    source_.request_stop();
  }
}

} // namespace troupe
