// SPDX-License-Identifier: Apache-2.0
// Goal: a curve of iterations means what it says, and a slip is answered by a line.
// Method: curves with known values.
#include "simulation/reports/iteration_curve.hpp"
#include "tests/doctest.hpp"

namespace iteration_curve_test {

using namespace troupe;

namespace {

std::optional<double> steps(const char* text, double gradients) {
  auto curve = iteration_curve::parse(text);
  REQUIRE_MESSAGE(curve, (curve ? "" : curve.error().message));
  CHECK(curve->text() == text);
  auto steps = curve->steps(gradients);
  return steps ? std::optional{*steps} : std::nullopt;
}

std::string refusal(const char* text) {
  auto curve = iteration_curve::parse(text);
  return curve ? "accepted" : curve.error().message;
}

} // namespace

TEST_SUITE("simulation/reports/iteration_curve") {
  TEST_CASE("terms are numbers and powers of N") {
    CHECK(iteration_curve{}.steps(4) == 0.25);
    CHECK(steps("1/N", 8) == 0.125);
    CHECK(*steps("N^-0.5", 16) == doctest::Approx(0.25));
    CHECK(steps("9000 + 5e5/N", 100) == 14000);
    CHECK(steps("1+40 / N", 40) == 2);
    CHECK(*steps("2*N^-2", 4) == doctest::Approx(0.125));
    CHECK(*steps("2/N^2", 4) == doctest::Approx(0.125));
    CHECK(steps("7", 4) == 7);
    CHECK(steps("N", 4) == 4);
  }

  TEST_CASE("between measured numbers a line in logarithms, beyond them nothing") {
    CHECK(steps("100: 50, 25: 200", 25) == 200);
    CHECK(*steps("100: 50, 25: 200", 50) == doctest::Approx(100));
    CHECK(steps("100: 50, 25: 200", 100) == 50);
    CHECK_FALSE(steps("100: 50, 25: 200", 24));
    CHECK_FALSE(steps("100: 50, 25: 200", 101));
  }

  TEST_CASE("where there is no number of steps, the curve says why") {
    auto reason = [](const char* text, double gradients) {
      auto steps = iteration_curve::parse(text)->steps(gradients);
      return steps ? "known" : steps.error().message;
    };
    CHECK(reason("2: 100, 3: 60", 100)
          == "the curve of iterations does not say how many steps it takes with 100 gradients a "
             "step");
    CHECK(reason("1e300*N^300", 7.5)
          == "the curve of iterations says that it takes inf steps with 7.5 gradients a step; give "
             "one that is finite and above 0 there");
    CHECK(reason("1e-300*N^-300", 9).find("says that it takes 0 steps with 9")
          != std::string::npos);
  }

  TEST_CASE("a slip is named") {
    CHECK(refusal("")
          == "'': an N is missing before ''; write 1/N, N^-0.8, 9000 + 5e5/N, or "
             "measured numbers of steps such as 50: 13000, 90: 9500");
    CHECK(refusal("1/x").find("an N is missing before 'x'") != std::string::npos);
    CHECK(refusal("1/N 3").find("'3' is no part of it") != std::string::npos);
    CHECK(refusal("N^").find("after '^' comes a number") != std::string::npos);
    CHECK(refusal("0/N").find("steps are more than 0") != std::string::npos);
    CHECK(refusal("-1/N").find("steps are more than 0") != std::string::npos);
    CHECK(refusal("inf").find("an N is missing") != std::string::npos);
    CHECK(refusal("5: x").find("N: STEPS was expected before 'x'") != std::string::npos);
    CHECK(refusal("5: 3 6: 2").find("'6: 2' is no part of it") != std::string::npos);
    CHECK(refusal("5: 3, 5: 2").find("an N stands there twice") != std::string::npos);
    CHECK(refusal("0: 3").find("N and steps are more than 0") != std::string::npos);
  }
}

} // namespace iteration_curve_test
