// SPDX-License-Identifier: Apache-2.0
// The last words of a process that crashes.
#include "actors/observing/crash_recorder.hpp"

#include "actors/observing/flight_record.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace troupe {

namespace {

constexpr std::array fatal{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// Everything that the handler needs is there before the crash.
std::array<char, 4096> path_of_record;
std::atomic<const observatory*> observed_in_crash{nullptr};
std::array<char, 65536> stack_of_handler; // a stack that overflowed cannot hold the handler

const char* reason_of(int number) {
  switch (number) {
  case SIGSEGV:
    return "crash (SIGSEGV)";
  case SIGBUS:
    return "crash (SIGBUS)";
  case SIGFPE:
    return "crash (SIGFPE)";
  case SIGILL:
    return "crash (SIGILL)";
  default:
    return "crash (SIGABRT)";
  }
}

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
      write_flight_record(*observed, reason_of(number), {write_to_file, &file});
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
  for (int number : fatal)
    sigaction(number, &action, nullptr);
}

crash_recorder::~crash_recorder() {
  if (!installed_) return;
  for (int number : fatal)
    std::signal(number, SIG_DFL);
  observed_in_crash = nullptr;
}

} // namespace troupe
