// SPDX-License-Identifier: Apache-2.0
// The signal handler that writes a flight record when the process crashes.
#include "actors/observing/crash_recorder.hpp"

#include "actors/observing/flight_record.hpp"
#include "actors/recording/output_file.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

namespace troupe {

namespace {

struct fatal_signal {
  int number;
  const char* reason; ///< For the record.
};

constexpr std::array<fatal_signal, 5> fatal{{{SIGSEGV, "crash (SIGSEGV)"},
                                             {SIGBUS, "crash (SIGBUS)"},
                                             {SIGFPE, "crash (SIGFPE)"},
                                             {SIGILL, "crash (SIGILL)"},
                                             {SIGABRT, "crash (SIGABRT)"}}};

// Everything that the handler needs is there before the crash.
using kept_path = std::array<char, 4096>;
kept_path path_of_record;
kept_path path_while_written; // beside it; the same for a device, which cannot be renamed
const observatory* observed_in_crash = nullptr;
std::array<char, 65536> stack_of_handler; // of the recorder's thread, whose own may have overflowed

// The thread that writes the record, or one of these.
constexpr pid_t no_recorder = -1;
constexpr pid_t no_crash_yet = 0;
std::atomic<pid_t> writer{no_recorder};

struct record_file {
  int number;
  bool is_whole = true;
};

void write_to_file(void* where, const char* bytes, size_t count) {
  auto& file = *static_cast<record_file*>(where);
  while (count > 0 && file.is_whole) {
    auto written = write(file.number, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      file.is_whole = false;
      return;
    }
    bytes += written;
    count -= static_cast<size_t>(written);
  }
}

// A record that could not be written as a whole leaves the one before it.
void write_record(int number) {
  record_file file{open(path_while_written.data(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (file.number < 0) return;
  const auto* signal = std::ranges::find(fatal, number, &fatal_signal::number);
  write_flight_record(*observed_in_crash, signal->reason, {write_to_file, &file});
  close(file.number);
  if (std::strcmp(path_while_written.data(), path_of_record.data()) == 0) return;
  if (file.is_whole)
    rename(path_while_written.data(), path_of_record.data());
  else
    unlink(path_while_written.data());
}

// Process 1 of a container ignores a signal that it raises itself.
[[noreturn]] void end_by(int number) {
  std::signal(number, SIG_DFL);
  sigset_t raised;
  sigemptyset(&raised);
  sigaddset(&raised, number);
  pthread_sigmask(SIG_UNBLOCK, &raised, nullptr);
  raise(number);
  _exit(128 + number);
}

// Gives the thread that writes the record ten seconds to end the process.
[[noreturn]] void end_later_by(int number) {
  timespec left{.tv_sec = 10, .tv_nsec = 0};
  while (nanosleep(&left, &left) < 0 && errno == EINTR)
    ;
  end_by(number);
}

// The first thread that crashes writes, and ends the process. The others wait for that: one that
// went on would end it before the record is whole. A crash of the writer itself while it writes
// comes here again, and ends the process as well.
void record_crash(int number) {
  auto before = no_crash_yet;
  if (writer.compare_exchange_strong(before, gettid()))
    write_record(number);
  else if (before != no_recorder && before != gettid())
    end_later_by(number);
  end_by(number);
}

} // namespace

crash_recorder::crash_recorder(const observatory& observed, const std::filesystem::path& path) {
  auto target = file_to_replace(path);
  auto written = target.value_or(path);
  if (target) written += ".crash";
  if (written.native().size() >= path_while_written.size() || writer != no_recorder) return;
  std::strcpy(path_while_written.data(), written.c_str());
  std::strcpy(path_of_record.data(), target.value_or(path).c_str());
  observed_in_crash = &observed;
  writer = no_crash_yet;
  installed_ = true;
  stack_t stack{.ss_sp = stack_of_handler.data(), .ss_size = stack_of_handler.size()};
  sigaltstack(&stack, nullptr);

  struct sigaction action {};

  action.sa_handler = record_crash;
  action.sa_flags = SA_ONSTACK;
  for (const auto& signal : fatal)
    sigaction(signal.number, &action, nullptr);
}

// The observatory must stay while another thread's handler reads it.
crash_recorder::~crash_recorder() {
  if (!installed_) return;
  if (auto before = no_crash_yet; !writer.compare_exchange_strong(before, no_recorder))
    end_later_by(SIGABRT);
  for (const auto& signal : fatal)
    std::signal(signal.number, SIG_DFL);
}

} // namespace troupe
