// SPDX-License-Identifier: Apache-2.0
// Goal: a peer is missed and warned of in time, and not before. Method: ticks by hand.
#include "actors/net/silence_timeout.hpp"
#include "actors/net/sockets/peer_watch.hpp"
#include "tests/doctest.hpp"

namespace peer_watch_test {

using namespace troupe;
using namespace std::chrono_literals;

TEST_SUITE("actors/net/sockets/peer_watch") {
  TEST_CASE("a peer is gone after ten ticks of silence, and there again with a byte") {
    peer_watch watch{1s};
    watch.hear(1);
    CHECK(watch.count_silence() == 0);
    for (uint32_t tick = 1; tick <= ticks_in_timeout; ++tick)
      CHECK(watch.count_silence() == tick);
    watch.hear(0);
    CHECK(watch.count_silence() > ticks_in_timeout);
    watch.hear(1);
    CHECK(watch.count_silence() == 0);
  }

  TEST_CASE("the first tick of a silence does not count: the peer's own ticks are as long") {
    peer_watch watch{1s};
    CHECK(watch.silence() == 0s);
    for (auto expected : {0ms, 100ms, 200ms}) {
      CHECK(watch.count_silence() > 0);
      CHECK(watch.silence() == expected);
    }
  }

  TEST_CASE("a peer that speaks rarely may be silent for three of its heartbeats, to a limit") {
    peer_watch watch{1s};
    watch.allow(100ms);
    CHECK(watch.silence_timeout() == 1s);
    watch.allow(2s);
    CHECK(watch.silence_timeout() == 6s);
    CHECK(watch.tick() == 600ms);
    watch.allow(24h);
    CHECK(watch.silence_timeout() == 15min);
  }

  TEST_CASE("a peer that lets go of nothing is warned of once, and again if it has in between") {
    peer_watch watch{10s};
    auto warnings = [&] {
      int count = 0;
      for (int tick = 1; tick <= 30; ++tick)
        if (watch.count_starvation(true)) {
          CHECK(tick * watch.tick() == starved_timeout);
          ++count;
        }
      return count;
    };
    CHECK(warnings() == 1);
    CHECK_FALSE(watch.count_starvation(false));
    CHECK(warnings() == 1);
    peer_watch slow{1h};
    CHECK_FALSE(slow.count_starvation(false));
    CHECK(slow.count_starvation(true));
    CHECK_FALSE(slow.count_starvation(true));
  }
}

} // namespace peer_watch_test
