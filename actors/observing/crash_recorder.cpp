// SPDX-License-Identifier: Apache-2.0
// The signal handler that writes a flight record when the process crashes.
#include "actors/observing/crash_recorder.hpp"

#include "actors/observing/flight_record.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <fcntl.h>
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
std::array<char, 4096> path_of_record;
std::atomic<const observatory*> observed_in_crash{nullptr};
std::array<char, 65536> stack_of_handler; // of the recorder's thread, whose own may have overflowed

void write_to_file(void* where, const char* bytes, size_t count) {
  while (count > 0) {
    auto written = write(*static_cast<int*>(where), bytes, count);
    if (written <= 0) return;
    bytes += written;
    count -= static_cast<size_t>(written);
  }
}

// The first thread that crashes writes; SA_RESETHAND has made the signal deadly again, so raising
// it ends the process as soon as the handler returns.
void record_crash(int number) {
  if (const auto* observed = observed_in_crash.exchange(nullptr)) {
    int file = open(path_of_record.data(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file >= 0) {
      const auto* signal = std::ranges::find(fatal, number, &fatal_signal::number);
      write_flight_record(*observed, signal->reason, {write_to_file, &file});
      close(file);
    }
  }
  raise(number);
}

} // namespace

crash_recorder::crash_recorder(const observatory& observed, const std::filesystem::path& path) {
  if (path.native().size() >= path_of_record.size() || observed_in_crash != nullptr) return;
  std::strcpy(path_of_record.data(), path.c_str());
  observed_in_crash = &observed;
  installed_ = true;
  stack_t stack{.ss_sp = stack_of_handler.data(), .ss_size = stack_of_handler.size()};
  sigaltstack(&stack, nullptr);

  struct sigaction action {};

  action.sa_handler = record_crash;
  action.sa_flags = SA_RESETHAND | SA_ONSTACK;
  for (const auto& signal : fatal)
    sigaction(signal.number, &action, nullptr);
}

crash_recorder::~crash_recorder() {
  if (!installed_) return;
  for (const auto& signal : fatal)
    std::signal(signal.number, SIG_DFL);
  observed_in_crash = nullptr;
}

} // namespace troupe
