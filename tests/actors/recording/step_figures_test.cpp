// SPDX-License-Identifier: Apache-2.0
// Goal: the figures of a step are right, empty steps included. Method: a record with round numbers.
#include "actors/recording/step_figures.hpp"
#include "tests/actors/recording/sample_records.hpp"
#include "tests/doctest.hpp"

#include <cmath>
#include <limits>

namespace step_figures_test {

TEST_SUITE("actors/recording/step_figures") {
  using namespace troupe;
  using namespace std::chrono_literals;

  TEST_CASE("averages and counts the accepted only") {
    const auto step = test::step_with_a_straggler();
    CHECK(mean_loss(step) == doctest::Approx(3.0));
    CHECK(accepted_examples(step) == 96);
    CHECK(step_duration(step) == 500ms);
    CHECK(examples_per_second(step) == doctest::Approx(192.0));
  }

  TEST_CASE("leaves out contributions without a loss") {
    auto step = test::step_with_a_straggler();
    step.accepted[0].loss = std::numeric_limits<double>::quiet_NaN();
    CHECK(mean_loss(step) == doctest::Approx(3.5));
  }

  TEST_CASE("names the contribution that the others waited for") {
    const auto step = test::step_with_a_straggler();
    REQUIRE(completing_contribution(step) != nullptr);
    CHECK(completing_contribution(step)->replica == 1);
    CHECK(waited_for_completion(step, step.accepted[0]) == 350ms);
    CHECK(waited_for_completion(step, step.accepted[1]) == 250ms);
    CHECK(waited_for_completion(step, step.accepted[2]) == 0ms);
    CHECK(idle_until_end(step, step.accepted[0]) == 400ms);
    CHECK(idle_until_end(step, step.accepted[2]) == 50ms);
  }

  TEST_CASE("has no figures for a step without contributions or duration") {
    const step_record step;
    CHECK(std::isnan(mean_loss(step)));
    CHECK(std::isnan(examples_per_second(step)));
    CHECK(completing_contribution(step) == nullptr);
    CHECK(waited_for_completion(step, contribution{}) == 0ns);
  }

  TEST_CASE("never reports a negative wait") {
    step_record step;
    step.began = 2s;
    step.ended = 1s;
    CHECK(step_duration(step) == 0ns);
    CHECK(idle_until_end(step, test::gradient(0, 0, 3s)) == 0ns);
  }
}

} // namespace step_figures_test
