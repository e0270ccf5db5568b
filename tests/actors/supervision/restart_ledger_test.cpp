// SPDX-License-Identifier: Apache-2.0
// Goal: what fails begins anew at most so often within a time, and later each time. Method:
// failures at chosen times.
#include "actors/supervision/restart_ledger.hpp"
#include "tests/doctest.hpp"

namespace restart_ledger_test {

using namespace troupe;
using namespace std::chrono_literals;
using delay = std::optional<job_time>;

TEST_SUITE("actors/supervision/restart_ledger") {
  TEST_CASE("each further restart within the time waits twice as long, up to a limit") {
    restart_ledger ledger{{.restarts = 5, .within = 60s, .backoff = 1s, .backoff_max = 5s}};
    CHECK(ledger.next(0s) == delay{1s});
    CHECK(ledger.next(2s) == delay{2s});
    CHECK(ledger.next(5s) == delay{4s});
    CHECK(ledger.next(10s) == delay{5s});
    CHECK(ledger.next(20s) == delay{5s});
    CHECK(ledger.next(30s) == delay{});
  }

  TEST_CASE("failures of long ago do not count") {
    restart_ledger ledger{{.restarts = 2, .within = 10s, .backoff = 1s}};
    CHECK(ledger.next(0s) == delay{1s});
    CHECK(ledger.next(4s) == delay{2s});
    CHECK(ledger.next(10s) == delay{2s});
    CHECK(ledger.next(13s) == delay{});
    CHECK(ledger.next(30s) == delay{1s});
  }

  TEST_CASE("no restart at all may be allowed") {
    restart_ledger ledger{{.restarts = 0}};
    CHECK(ledger.next(0s) == delay{});
  }
}

} // namespace restart_ledger_test
