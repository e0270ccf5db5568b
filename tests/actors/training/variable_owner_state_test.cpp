// SPDX-License-Identifier: Apache-2.0
// Goal: an owner knows whether it holds its variable, and answers its callers when that is certain.
// Method: its state, without actors.
#include "actors/training/variable_owner.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"

namespace variable_owner_state_test {

using namespace troupe;
using namespace troupe::test;
using phase = variable_owner_state::phase;

namespace {

variable_owner_state new_owner() {
  return variable_owner_state{{.variable = {"w", dtype::f32, {1}}, .initial = array({1}, {1})}};
}

} // namespace

TEST_SUITE("actors/training/variable_owner_state") {
  TEST_CASE("an unsure owner answers when its mirror has") {
    auto owner = new_owner();
    CHECK(owner.now_in == phase::holding);
    owner.enter(phase::unsure);
    auto answers = 0;
    owner.delayed_answers.emplace_back([&] { ++answers; });
    CHECK(owner.holds());
    CHECK(answers == 0);
    owner.become_certain();
    CHECK(owner.now_in == phase::holding);
    CHECK(answers == 1);
    owner.become_certain();
    CHECK(answers == 1);
  }

  TEST_CASE("an owner that has lost its variable holds none, and may come back as a mirror") {
    auto owner = new_owner();
    owner.enter(phase::deposed);
    CHECK_FALSE(owner.holds());
    CHECK_FALSE(owner.repeats());
    owner.become_newcomer({.is_mirrors = true});
    CHECK(owner.now_in == phase::returning);
    CHECK(owner.repeats());
    CHECK_FALSE(owner.now_in.may_enter(phase::taken_over)); // it was not told yet what it missed
    owner.returned.reset();
    owner.enter(phase::mirroring);
    owner.enter(phase::taken_over);
    CHECK(owner.holds());
    CHECK_FALSE(owner.repeats());
  }
}

} // namespace variable_owner_state_test
