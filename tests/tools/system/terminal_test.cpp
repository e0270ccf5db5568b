// SPDX-License-Identifier: Apache-2.0
// Goal: no control letters for a stream that is no terminal. Method: ask about /dev/null.
#include "tests/doctest.hpp"
#include "tools/system/terminal.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace terminal_test {

TEST_SUITE("tools/system/terminal") {
  using namespace troupe;

  TEST_CASE("takes a file for what it is") {
    const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    REQUIRE(nothing >= 0);
    CHECK_FALSE(is_terminal(nothing));
    CHECK(terminal_width(nothing) == 80);
    ::close(nothing);
    CHECK_FALSE(is_terminal(-1));
  }
}

} // namespace terminal_test
