// SPDX-License-Identifier: Apache-2.0
// An alarm of the operating system: it rings whatever the job is at.
#include "tests/sim/stuck_alarm.hpp"

#include <csignal>
#include <fmt/format.h>
#include <string>
#include <unistd.h>

namespace troupe::test {

namespace {

std::string sentence;

// A signal's handler may do no more than this.
void ring(int) {
  static_cast<void>(!::write(STDOUT_FILENO, sentence.data(), sentence.size()));
  ::_exit(1);
}

} // namespace

stuck_alarm::stuck_alarm(uint64_t seed, std::string_view who, std::string_view job,
                         std::string_view command) {
  sentence = fmt::format("seed {}: {}\n  every wait ends: {} took more than {} s of real time\n"
                         "  replay with: {}\n",
                         seed, job, who, timeout_seconds, fmt::format(fmt::runtime(command), seed));
  static_cast<void>(std::signal(SIGALRM, ring));
  ::alarm(timeout_seconds);
}

stuck_alarm::~stuck_alarm() {
  ::alarm(0);
}

} // namespace troupe::test
