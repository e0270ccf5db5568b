// SPDX-License-Identifier: Apache-2.0
// Goal: a phase is followed by those of its row, and by no other. Method: a table of three phases.
#include "actors/world/phases.hpp"
#include "tests/doctest.hpp"

#include <array>

namespace phases_test {

using namespace troupe;

namespace {

enum class phase : uint8_t { waiting, working, done };

constexpr std::array table{
  leads(phase::waiting, phase::working, phase::done),
  leads(phase::working, phase::working, phase::done),
};

} // namespace

TEST_SUITE("actors/world/phases") {
  TEST_CASE("a phase leads to those of its row") {
    phase_in<phase, table> now{phase::waiting};
    CHECK(now == phase::waiting);
    CHECK(now.may_enter(phase::working));
    CHECK(now.may_enter(phase::done));
    CHECK_FALSE(now.may_enter(phase::waiting));
    now.enter(phase::working);
    now.enter(phase::working);
    CHECK(now == phase::working);
    CHECK(now < phase::done);
    CHECK_FALSE(now.may_enter(phase::waiting));
  }

  TEST_CASE("a phase without a row is the last") {
    phase_in<phase, table> now{phase::waiting};
    now.enter(phase::done);
    for (auto next : {phase::waiting, phase::working, phase::done})
      CHECK_FALSE(now.may_enter(next));
  }
}

} // namespace phases_test
