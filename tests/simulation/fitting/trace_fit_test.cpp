// SPDX-License-Identifier: Apache-2.0
// Goal: a trace of a known distribution is recognised, with its parameters, its slow replicas and
// its slow periods; and nothing is seen where there is nothing. Method: traces that the lab draws.
#include "simulation/distributions/distribution.hpp"
#include "simulation/fitting/trace_fit.hpp"
#include "tests/doctest.hpp"

#include <chrono>
#include <cmath>

namespace trace_fit_test {

using namespace troupe;

namespace {

trace_table drawn(const std::string& expression, uint32_t replicas, uint64_t draws,
                  uint64_t seed = 1) {
  auto times = distribution::parse(expression)->times(seed);
  trace_table table;
  for (uint32_t replica = 0; replica < replicas; ++replica) {
    auto& of_replica = table.seconds.emplace_back();
    for (uint64_t draw = 0; draw < draws; ++draw)
      of_replica.push_back(std::chrono::duration<double>(times(replica, draw)).count());
  }
  return table;
}

std::string best_of(const std::string& expression) {
  return fit_trace(drawn(expression, 10, 500)).families.front().expression;
}

bool begins(const std::string& text, const std::string& beginning) {
  return text.compare(0, beginning.size(), beginning) == 0;
}

} // namespace

TEST_SUITE("simulation/fitting") {
  TEST_CASE("each distribution is recognised among all of them") {
    for (const char* expression :
         {"uniform(1, 2)", "exponential(0.3)", "shifted_exponential(0.8, 5)", "gumbel(5.8, 0.45)",
          "lognormal(1.5, 0.25)", "weibull(3, 2)", "pareto(1, 2.5)",
          "shifted_gamma(2, 1.5, 0.5)"}) {
      CAPTURE(expression);
      auto best = best_of(expression);
      CAPTURE(best);
      CHECK(begins(best, std::string{expression}.substr(0, std::string{expression}.find('('))));
    }
    CHECK(best_of("constant(0.25)") == "constant(0.25)");
    CHECK(best_of("constant(1234.56789)") == "constant(1234.56789)");
  }

  TEST_CASE("its parameters are the most likely ones, and the distance is small") {
    auto fit = fit_trace(drawn("lognormal(1.5, 0.25)", 10, 1000));
    double median = 0;
    double sigma = 0;
    REQUIRE(
      std::sscanf(fit.families.front().expression.c_str(), "lognormal(%lf, %lf)", &median, &sigma)
      == 2);
    CHECK(median == doctest::Approx(1.5).epsilon(0.01));
    CHECK(sigma == doctest::Approx(0.25).epsilon(0.02));
    CHECK(fit.families.front().distance < 0.02);
    CHECK(fit.families.back().distance > 0.2);
    CHECK(fit.families.front().cumulative(1.5) == doctest::Approx(0.5).epsilon(0.02));
  }

  TEST_CASE("a body with a tail is a mixture") {
    auto fit = fit_trace(drawn("chen2016-like", 20, 500));
    CHECK(begins(fit.expression(), "mixture("));
    CHECK(fit.families.front().distance < 0.02);
    CHECK(distribution::parse(fit.expression()));
    CHECK(
      begins(best_of("mixture(0.6: lognormal(1, 0.03), 0.4: lognormal(1.25, 0.03))"), "mixture("));
  }

  TEST_CASE("replicas that are as slow as each other are named together, however many they are") {
    trace_fit fit;
    fit.families.push_back({.expression = "exponential(1)"});
    fit.slow = {{.replica = 2, .factor = 1.6}, {.replica = 5, .factor = 2}, {9, 1.601}};
    CHECK(fit.expression() == "exponential(1) slow={2,9}*1.6 slow={5}*2");
    fit.slow.clear();
    for (uint32_t replica = 0; replica < 4000; ++replica)
      fit.slow.push_back({.replica = replica, .factor = 1.26 + 0.01 * (replica % 300)});
    auto read = distribution::parse(fit.expression());
    REQUIRE_MESSAGE(read, (read ? "" : read.error().message));
    CHECK(read->last_named_replica() == 3999);
  }

  TEST_CASE("every fit is an expression that the lab reads, with the fitted shares") {
    for (const auto& one : fit_trace(drawn("chen2016-like", 10, 500)).families) {
      CAPTURE(one.expression);
      auto read = distribution::parse(one.expression);
      REQUIRE(read);
      auto times = read->times(3);
      int shorter = 0;
      for (uint64_t i = 0; i < 4000; ++i)
        shorter += std::chrono::duration<double>(times(0, i)).count() <= 1.6 ? 1 : 0;
      CHECK(shorter / 4000.0 == doctest::Approx(one.cumulative(1.6)).epsilon(0.06));
    }
  }

  TEST_CASE("a slow replica is named, with its factor, and does not blur the others") {
    auto fit = fit_trace(drawn("lognormal(1, 0.1) slow={7}*2.4", 10, 100));
    REQUIRE(fit.slow.size() == 1);
    CHECK(fit.slow[0].replica == 7);
    CHECK(fit.slow[0].factor == doctest::Approx(2.4).epsilon(0.05));
    CHECK(begins(fit.families.front().expression, "lognormal("));
    CHECK(fit.expression().find("slow={7}*2.") != std::string::npos);
    CHECK(fit.of_one.list.empty());
    CHECK(distribution::parse(fit.expression()));
  }

  TEST_CASE("slow periods of single replicas are told from slow draws") {
    auto fit = fit_trace(drawn("lognormal(1, 0.05) * on_off(0.003, 0.01, 5)", 20, 3000));
    CHECK(fit.slow.empty());
    CHECK(fit.of_all.list.empty());
    CHECK(fit.of_one.list.size() > 80); // 20 * 3000 / (1/0.003 + 100) is 138; some are short
    CHECK(fit.of_one.factor == doctest::Approx(5).epsilon(0.02));
    auto share = 1 - static_cast<double>(fit.of_one.usual_draws) / 60'000;
    CHECK(share == doctest::Approx(0.003 / 0.013).epsilon(0.1));
    CHECK(begins(fit.families.front().expression, "lognormal("));
    CHECK(fit.families.front().cumulative(1) == doctest::Approx(0.5).epsilon(0.05));
    CHECK(distribution::parse(fit.expression()));
    auto alone = fit_trace(drawn("lognormal(1, 0.05) * two_point(0.2, 5)", 20, 3000));
    CHECK(alone.of_one.list.empty());
  }

  TEST_CASE("periods in which all are slow together are those of all") {
    auto fit = fit_trace(drawn("lognormal(1, 0.05) * common(on_off(0.01, 0.05, 2))", 8, 1000));
    REQUIRE(fit.of_all.list.size() >= 3);
    CHECK(fit.of_one.list.empty());
    CHECK(fit.of_all.factor == doctest::Approx(2).epsilon(0.02));
    const auto& first = fit.of_all.list[0];
    CHECK(first.seconds
          == doctest::Approx(2.0 * static_cast<double>(first.draw_count)).epsilon(0.05));
    CHECK(fit.expression().find(" * common(on_off(") != std::string::npos);
    CHECK(distribution::parse(fit.expression()));
  }

  TEST_CASE("steps tell that a fit has lost which draws are slow together") {
    auto compared = [](const std::string& expression, uint32_t replicas, uint64_t draws) {
      auto table = drawn(expression, replicas, draws);
      return compare_steps(table, *distribution::parse(fit_trace(table).expression()));
    };
    auto shock = compared("lognormal(1, 0.05) * common(two_point(0.02, 5))", 8, 1500);
    CHECK(shock.is_different); // each replica is slow at draws of its own in the fit
    CHECK(shock.fitted_seconds > 1.2 * shock.measured_seconds);
    CHECK(compared("lognormal(1, 0.1) * on_off(0.3, 0.3, 3)", 8, 1500).is_different);
    for (const char* expression :
         {"lognormal(1, 0.2)", "pareto(1, 2.5)", "chen2016-like", "lognormal(1, 0.1) slow={3}*2",
          "lognormal(1, 0.05) * on_off(0.01, 0.05, 3)",
          "lognormal(1, 0.05) * common(on_off(0.01, 0.05, 2))"}) {
      CAPTURE(expression);
      auto steps = compared(expression, 8, 1500);
      CAPTURE(steps.measured_seconds);
      CAPTURE(steps.fitted_seconds);
      CHECK_FALSE(steps.is_different);
    }
    CHECK_FALSE(compare_steps({{{2}}}, *distribution::parse("constant(3)")).is_different);
  }

  TEST_CASE("nothing is slow where draws do not depend on each other") {
    for (const char* expression : {"exponential(1)", "pareto(1, 1.5)", "lognormal(1, 0.3)"})
      for (uint64_t seed = 1; seed <= 5; ++seed) {
        CAPTURE(expression);
        auto fit = fit_trace(drawn(expression, 20, 100, seed));
        CHECK(fit.slow.empty());
        CHECK(fit.of_all.list.empty());
        CHECK(fit.of_one.list.size() <= 1);
      }
  }

  TEST_CASE("steps of which most begin with times of 0 are no slow ones") {
    trace_table table{std::vector(4, std::vector<double>(40, 1))};
    for (size_t draw = 0; draw < 30; ++draw) // half of the replicas, in turns
      for (size_t replica = draw % 2; replica < 4; replica += 2)
        table.seconds[replica][draw] = 0;
    auto fit = fit_trace(table);
    CHECK(fit.of_all.list.empty());
    CHECK(distribution::parse(fit.expression()));
  }

  TEST_CASE("times that hardly differ are fitted by what they are") {
    trace_table table{{{}}};
    for (int i = 0; i <= 300; ++i)
      table.seconds[0].push_back(100.001 + 1e-5 * i);
    auto families = fit_trace(table).families;
    CHECK(families.front().expression == "uniform(100.001, 100.004)");
    std::vector<double> nearly(100, 1);
    nearly.push_back(std::nextafter(1, 2));
    families = fit_families(nearly);
    REQUIRE_FALSE(families.empty());
    for (const auto& one : families) {
      CAPTURE(one.expression);
      CHECK(std::isfinite(one.log_likelihood));
      CHECK(std::isfinite(one.criterion));
    }
  }

  TEST_CASE("the smallest traces are fitted as well") {
    CHECK(fit_trace({{{2}}}).expression() == "constant(2)");
    CHECK(fit_trace({{{0, 0}, {0}}}).expression() == "constant(0)");
    auto with_zero = fit_trace({{{0, 1, 2}, {3, 1, 0.5}}});
    CHECK(distribution::parse(with_zero.expression()));
  }
}

} // namespace trace_fit_test
