// SPDX-License-Identifier: Apache-2.0
// Turns Ctrl-C, SIGTERM and SIGHUP into a stop token, and SIGUSR1 into a call.
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>

namespace troupe {

/// Signals that end a process because it has written: into a pipe without a reader, or beyond the
/// limit on file sizes (ulimit -f).
inline constexpr std::array write_signals{SIGPIPE, SIGXFSZ};

/// Ignores SIGXFSZ from now on, so that a write beyond the limit fails (EFBIG), as on a full disk.
/// A pipe without a reader still ends the process, as it should end a command that prints.
void ignore_size_limit_signal();

/// Ignores `write_signals` from now on: such a write fails instead (EPIPE, EFBIG), as on a full
/// disk. Programs that this one starts get the default back.
void ignore_write_signals();

/// Unblocks signals for this thread and those that it starts from now on: a parent that waits for
/// signals without handlers blocks them, also in the programs that it starts.
void unblock_signals(std::span<const int> numbers);

/// Has SIGUSR1 do nothing from now on if it would end the process: a user may ask for a flight
/// record before a `signal_watch` is there.
void pass_over_user_signal();

/// A signal handler may do next to nothing, so it only writes the signal into a pipe; a thread
/// waits at its other end: the first signal asks for a clean end, a later one ends the process at
/// once. (Blocking the signals would not do: a library may have started threads before main.)
/// SIGHUP stays ignored where it was, as under nohup.
///
/// The destructor restores the handlers that the program had before, unless it has set others
/// meanwhile. One at a time.
class signal_watch {
public:
  /// Errors: throws `failure` with resource if no descriptor is left, and std::system_error if no
  /// thread can start.
  signal_watch();
  ~signal_watch();
  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;

  /// Is asked to stop by the first signal.
  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

  /// Sets the action of SIGUSR1, which the watch calls on its own thread; empty: none. When this
  /// returns, the former action does not run any more. Thread: any but the watch's.
  void on_user_signal(std::function<void()> action);

  /// The signal that ends the process; 0 if none came.
  [[nodiscard]] int signal_number() const { return number_; }

private:
  void watch();

  std::array<struct sigaction, 4> former_{}; // of SIGINT, SIGTERM, SIGHUP, SIGUSR1
  std::stop_source source_;
  std::atomic<int> number_ = 0;
  std::mutex mutex_;
  std::function<void()> on_user_signal_;
  std::jthread thread_; // last: it uses the others
};

} // namespace troupe
