// SPDX-License-Identifier: Apache-2.0
// Goal: a notice means the same to job and launcher, and a launcher that is not there is no
// trouble. Method: every notice there is, texts that are none, and environments without a socket.
#include "strategies/cluster/launcher_notice.hpp"
#include "tests/doctest.hpp"

#include <string>

namespace launcher_notice_test {

using namespace troupe;

TEST_SUITE("strategies/cluster/launcher_notice") {
  TEST_CASE("a notice is read as it was meant") {
    for (bool workers : {false, true})
      for (bool servers : {false, true}) {
        spared_tasks spared{workers, servers};
        auto text = launcher_notice(spared);
        CHECK(text.size() <= launcher_notice_bytes_max);
        auto parsed = parse_launcher_notice(text);
        REQUIRE(parsed);
        CHECK(*parsed == spared);
      }
    CHECK(launcher_notice({true, true}) == "spare worker ps");
  }

  TEST_CASE("any other text is refused") {
    for (const std::string text : {"", " ", "spare chief", "spare  ps", "worker", "spareworker"}) {
      CAPTURE(text);
      CHECK_FALSE(parse_launcher_notice(text));
    }
  }

  TEST_CASE("a job without a launcher that listens sends no notice") {
    CHECK_FALSE(tell_launcher({true, true}, fixed_environment({})));
    for (const std::string name : {"", "@", "file", "@no-such-socket"}) {
      CAPTURE(name);
      CHECK_FALSE(tell_launcher({true, true}, fixed_environment({{"TROUPE_LAUNCHER", name}})));
    }
    CHECK_FALSE(tell_launcher(
      {true, true}, fixed_environment({{"TROUPE_LAUNCHER", "@" + std::string(200, 'x')}})));
  }
}

} // namespace launcher_notice_test
