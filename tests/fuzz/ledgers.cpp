// SPDX-License-Identifier: Apache-2.0
// A text as the ledger of a run, behind the line that all of them begin with.
#include "actors/recording/ledger_file.hpp"
#include "messages/errors/assert.hpp"
#include "simulation/replay/recorded_run.hpp"
#include "tests/fuzz/fuzz_target.hpp"

#include <cmath>

namespace troupe::fuzz {

bool accepts(std::span<const std::byte> input) {
  auto text = std::string{ledger_file::header}.append(text_of(input));
  auto run = read_ledger(text, "ledger");
  if (!run) {
    TROUPE_ASSERT(run.error().message.find('\n') == std::string::npos, run.error().message);
    return false;
  }
  TROUPE_ASSERT(!run->step_seconds().empty());
  for (auto seconds : run->step_seconds())
    TROUPE_ASSERT(std::isfinite(seconds), seconds);
  return true;
}

} // namespace troupe::fuzz
