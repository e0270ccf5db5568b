// SPDX-License-Identifier: Apache-2.0
// Goal: an expression draws what it says, refuses what it cannot mean, and draws the same again.
// Method: moments and quantiles of many draws against formulas, within four standard errors;
// structure against exact counts; refusals against the place of the caret.
#include "actors/recording/seconds.hpp"
#include "kernels/tensor/random.hpp"
#include "simulation/distributions/distribution.hpp"
#include "simulation/distributions/distribution_family.hpp"
#include "simulation/distributions/distribution_preset.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace distribution_test {

using troupe::distribution;
using troupe::seconds;

namespace {

constexpr size_t draw_count = 200'000;

distribution parsed(const std::string& text) {
  auto result = distribution::parse(text);
  INFO(text);
  REQUIRE_MESSAGE(result, (result ? "" : result.error().message));
  return *result;
}

std::string refusal(const std::string& text) {
  auto result = distribution::parse(text);
  return result ? "accepted" : result.error().message;
}

std::vector<double> draws(const std::string& text, size_t count, uint32_t replica = 0,
                          uint64_t seed = 5) {
  auto times = parsed(text).times(seed);
  std::vector<double> result;
  for (size_t i = 0; i < count; ++i)
    result.push_back(seconds(times(replica, i)));
  return result;
}

struct moments {
  double mean = 0;
  double deviation = 0;
};

moments moments_of(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values)
    sum += value;
  double mean = sum / static_cast<double>(values.size());
  double squares = 0;
  for (double value : values)
    squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / static_cast<double>(values.size() - 1))};
}

// Within four standard errors of the mean.
void check_mean(const std::vector<double>& values, double expected) {
  auto seen = moments_of(values);
  auto error = seen.deviation / std::sqrt(static_cast<double>(values.size()));
  CHECK(std::abs(seen.mean - expected) <= 4 * error + 1e-9);
}

// The share of draws below a quantile is the quantile's, within four standard errors.
void check_quantile(const std::vector<double>& values, double fraction, double quantile) {
  auto below = std::ranges::count_if(values, [&](double value) { return value < quantile; });
  auto count = static_cast<double>(values.size());
  auto error = std::sqrt(fraction * (1 - fraction) / count);
  CAPTURE(fraction);
  CHECK(std::abs(static_cast<double>(below) / count - fraction) <= 4 * error);
}

} // namespace

TEST_SUITE("simulation/distributions/distribution") {
  TEST_CASE("draws have the mean that the expression tells") {
    for (const auto* text :
         {"uniform(1, 3)", "exponential(2)", "shifted_exponential(0.8, 5)",
          "shifted_gamma(4.849, 4.51, 0.278)", "shifted_gamma(0, 0.5, 2)", "gumbel(5.832, 0.456)",
          "lognormal(2, 0.5)", "weibull(0.7, 1)", "weibull(3.5, 2)", "pareto(1, 3)",
          "pareto(1, 1.5, 20)", "pareto(2, 1, 50)", "two_point(0.01, 5)", "0.8 + exponential(0.2)",
          "uniform(1, 2) * exponential(1)", "mixture(0.9: uniform(0.9, 1.1), 0.1: exponential(5))",
          "0.5 * (1 + exponential(1))", "1 + pause(10, 4)"}) {
      CAPTURE(text);
      auto mean = parsed(text).mean();
      REQUIRE(mean);
      check_mean(draws(text, draw_count), *mean);
    }
  }

  TEST_CASE("constants are exact") {
    for (const auto* text : {"1.5", "constant(1.5)", "0.5 + 1", "3 * 1/2", "(1.5)"})
      CHECK(draws(text, 3) == std::vector<double>{1.5, 1.5, 1.5});
  }

  TEST_CASE("draws have the quantiles of their formulas") {
    struct {
      const char* text;
      double (*quantile)(double);
    } const cases[] = {
      {"exponential(2)", [](double p) { return -2 * std::log(1 - p); }},
      {"weibull(0.7, 3)", [](double p) { return 3 * std::pow(-std::log(1 - p), 1 / 0.7); }},
      {"pareto(2, 1.26)", [](double p) { return 2 * std::pow(1 - p, -1 / 1.26); }},
      {"gumbel(5, 0.5)", [](double p) { return 5 - 0.5 * std::log(-std::log(p)); }},
      {"uniform(1, 2)", [](double p) { return 1 + p; }},
      {"pareto(1, 2, 3)", [](double p) { return 1 / std::sqrt(1 - p * (1 - 1.0 / 9)); }},
    };

    for (const auto& [text, quantile] : cases) {
      CAPTURE(text);
      auto values = draws(text, draw_count);
      for (double p : {0.05, 0.5, 0.9, 0.99})
        check_quantile(values, p, quantile(p));
    }
    // Phi(1) = 0.8413447
    auto lognormal = draws("lognormal(1.5, 0.25)", draw_count);
    check_quantile(lognormal, 0.5, 1.5);
    check_quantile(lognormal, 0.8413447, 1.5 * std::exp(0.25));
    // A gamma distribution of shape 2: F(x) = 1 - (1 + x) e^-x
    auto gamma = draws("shifted_gamma(1, 2, 1)", draw_count);
    for (double x : {0.5, 2.0, 5.0})
      check_quantile(gamma, 1 - (1 + x) * std::exp(-x), 1 + x);
  }

  TEST_CASE("a mean that is infinite is told as such") {
    CHECK(parsed("pareto(1, 1)").mean() == std::numeric_limits<double>::infinity());
    CHECK(parsed("1 + pareto(1, 0.5)").mean() == std::numeric_limits<double>::infinity());
    CHECK_FALSE(parsed("slow({1}, 2)").mean());
    CHECK_FALSE(parsed("pareto(1, 1)").has_mean());
    CHECK(parsed("slow({1}, 2)").has_mean());
  }

  TEST_CASE(
    "times without a mean have none beside a named slow replica, and nothing times them is") {
    CHECK_FALSE(parsed("pareto(1, 0.8) slow={3}*2").has_mean());
    CHECK_FALSE(parsed("1 + common(pareto(1, 0.8)) * slow({3}, 2)").has_mean());
    CHECK(parsed("0 * pareto(1, 0.5)").mean() == 0);
    CHECK(parsed("pareto(1, 0.5) * (0 * pareto(1, 0.5))").mean() == 0);
    CHECK(parsed("1 + 0 * pareto(1, 0.5)").has_mean());
  }

  TEST_CASE(
    "the heaviest tail of an expression counts, and the least of several draws has a lighter") {
    constexpr auto none = std::numeric_limits<double>::infinity();
    CHECK(parsed("task-tail").tail_index() == 1.26);
    CHECK(parsed("task-tail").tail_index(2) == 2.52);
    CHECK(parsed("mixture(0.9: exponential(1), 0.1: pareto(1, 3)) * persistent(pareto(1, 2.5))")
            .tail_index()
          == 2.5);
    CHECK(parsed("common(pareto(1, 1.5)) + pareto(1, 1.2)").tail_index(3) == 1.5);
    CHECK(parsed("pareto(1, 1.5, 100)").tail_index() == none);
    CHECK(parsed("lognormal(1, 3) + pause(100, 2)").tail_index() == none);
  }

  TEST_CASE("a draw depends on seed, replica and count alone, not on the draws before") {
    for (const auto* text :
         {"exponential(1)", "correlated(0.9, exponential(1))", "1 * on_off(0.1, 0.2, 5)",
          "common(exponential(1))", "lognormal(1, 0.1) * slow(3/50, 2.4)", "1 + pause(7, 1)"}) {
      CAPTURE(text);
      auto forwards = parsed(text).times(7);
      auto backwards = parsed(text).times(7);
      auto other = parsed(text).times(8);
      std::vector<troupe::job_time> first;
      for (uint64_t i = 0; i < 400; ++i)
        first.push_back(forwards(i % 4, i / 4));
      bool differs = false;
      for (uint64_t i = 400; i-- > 0;) {
        CHECK(backwards(i % 4, i / 4) == first[i]);
        differs = differs || other(i % 4, i / 4) != first[i];
      }
      if (std::string{text}.find("slow") == std::string::npos) CHECK(differs);
    }
  }

  // Each of these is another nanosecond where a * b + c is rounded once.
  TEST_CASE("a draw is the same nanosecond on every processor") {
    auto uniform = parsed("uniform(600, 1200)").times(7);
    CHECK(uniform(13, 1640).count() == 807'124'263'498);
    CHECK(uniform(14, 1976).count() == 868'311'226'499);
    CHECK(parsed("shifted_gamma(300, 2, 100)").times(7)(42, 1741).count() == 896'883'202'222);
  }

  TEST_CASE("draws that are made ahead are those that are made one by one") {
    for (const char* text :
         {"exponential(1)", "uniform(1, 2)", "shifted_exponential(1, 2)", "lognormal(1, 0.5)",
          "0.8 + exponential(0.2)", "2 * lognormal(1, 0.08) + 0.1", "lognormal(1, 0) * 1e9",
          "exponential(1) * persistent(lognormal(1, 0.3)) slow={7}*2.4",
          "exponential(1) slow=1/4*3"}) {
      INFO(text);
      auto times = parsed(text).times(9);
      REQUIRE(times.draws_ahead());
      for (uint32_t replica : {0U, 7U})
        for (uint64_t first : {uint64_t{0}, uint64_t{8}, uint64_t{99'999}}) {
          auto block = times.ahead(replica, first);
          for (size_t i = 0; i < block.size(); ++i)
            CHECK(block[i] == times(replica, first + i));
        }
    }
    // Two draws of one stream, or a draw that depends on the one before, are made one by one.
    for (const char* text :
         {"1", "exponential(1) + exponential(2)", "shifted_gamma(1, 2, 3)",
          "mixture(0.5: 1, 0.5: exponential(1))", "exponential(1) * common(exponential(1))",
          "correlated(0.5, exponential(1))"}) {
      INFO(text);
      CHECK(!parsed(text).times(9).draws_ahead());
    }
  }

  TEST_CASE("draws exponential times as exponential_time does") {
    auto written = parsed("exponential(1)").times(11)(3, 4);
    auto called = troupe::exponential_time(std::chrono::seconds{1}, 11)(3, 4);
    CHECK(std::abs((written - called).count()) <= 1); // one rounds, the other cuts off
  }

  TEST_CASE("exactly the share of a slow set is slow, for good, whichever the seed draws") {
    for (uint64_t seed : {1U, 2U}) {
      auto times = parsed("1 slow=3/50*2.4").times(seed);
      for (uint32_t block = 0; block < 4; ++block) {
        int slow = 0;
        for (uint32_t replica = 50 * block; replica < 50 * block + 50; ++replica) {
          CHECK(times(replica, 0) == times(replica, 1000));
          slow += seconds(times(replica, 0)) == 2.4 ? 1 : 0;
        }
        CHECK(slow == 3);
      }
    }
    CHECK(parsed("1 slow=3/50*2.4").mean() == doctest::Approx(1.084));
    auto listed = parsed("2 slow={1, 3}*1.5").times(0);
    for (uint32_t replica = 0; replica < 5; ++replica)
      CHECK(seconds(listed(replica, 9)) == (replica == 1 || replica == 3 ? 3.0 : 2.0));
  }

  TEST_CASE("adding slow replicas leaves the draws of the others as they were") {
    auto without = parsed("exponential(1)").times(3);
    auto with = parsed("exponential(1) slow=1/10*2").times(3);
    int same = 0;
    for (uint32_t replica = 0; replica < 10; ++replica)
      same += without(replica, 5) == with(replica, 5) ? 1 : 0;
    CHECK(same == 9);
  }

  TEST_CASE("persistent draws differ between replicas and never within one") {
    auto times = parsed("persistent(exponential(1))").times(4);
    std::vector<double> of_replicas;
    for (uint32_t replica = 0; replica < 20'000; ++replica) {
      of_replicas.push_back(seconds(times(replica, 0)));
      CHECK(times(replica, 1) == times(replica, 0));
    }
    check_mean(of_replicas, 1);
  }

  TEST_CASE("common draws differ between steps and never within one") {
    auto times = parsed("common(exponential(1))").times(4);
    std::vector<double> of_steps;
    for (uint64_t step = 0; step < 20'000; ++step) {
      of_steps.push_back(seconds(times(0, step)));
      CHECK(times(17, step) == times(0, step));
    }
    check_mean(of_steps, 1);
  }

  TEST_CASE("correlated draws keep their distribution, and remember as told") {
    std::vector<double> values;
    double products = 0;
    auto times = parsed("correlated(0.8, exponential(1))").times(6);
    constexpr uint32_t replicas = 2000;
    constexpr uint64_t draws_each = 50;
    for (uint32_t replica = 0; replica < replicas; ++replica)
      for (uint64_t i = 0; i < draws_each; ++i) {
        values.push_back(seconds(times(replica, i)));
        if (i >= 2) products += (values.back() - 1) * (values[values.size() - 3] - 1);
      }
    // About 10 of a replica's 50 draws are independent.
    CHECK(moments_of(values).mean == doctest::Approx(1).epsilon(4 * 3 / std::sqrt(100'000.0)));
    CHECK(products / (replicas * (draws_each - 2.0)) == doctest::Approx(0.64).epsilon(0.08));
  }

  TEST_CASE("episodes begin, last and weigh as told") {
    auto times = parsed("on_off(0.02, 0.1, 3)").times(2);
    uint64_t on = 0;
    uint64_t begins = 0;
    constexpr uint64_t count = 300'000;
    bool before = false;
    for (uint64_t i = 0; i < count; ++i) {
      bool now = seconds(times(0, i)) == 3;
      on += now ? 1 : 0;
      begins += now && !before ? 1 : 0;
      before = now;
    }
    CHECK(static_cast<double>(on) / count == doctest::Approx(1.0 / 6).epsilon(0.06));
    CHECK(static_cast<double>(on) / static_cast<double>(begins)
          == doctest::Approx(10).epsilon(0.06));
    CHECK(parsed("on_off(0.02, 0.1, 3)").mean() == doctest::Approx(4.0 / 3));
  }

  TEST_CASE("pauses come at every so manyth draw, each replica's at its own or all together") {
    auto pauses_of = [](const troupe::computing_time& times, uint32_t replica) {
      std::vector<uint64_t> at;
      for (uint64_t i = 0; i < 40; ++i)
        if (seconds(times(replica, i)) > 1.5) at.push_back(i);
      return at;
    };
    auto apart = parsed("1 + pause(10, 1)").times(3);
    auto together = parsed("1 + common(pause(10, 1))").times(3);
    bool differs = false;
    for (uint32_t replica = 0; replica < 8; ++replica) {
      auto at = pauses_of(apart, replica);
      REQUIRE(at.size() == 4);
      CHECK(at[3] == at[0] + 30);
      differs = differs || at != pauses_of(apart, 0);
      CHECK(pauses_of(together, replica) == pauses_of(together, 0));
    }
    CHECK(differs);
  }

  TEST_CASE("every spelling has one canonical form, which reads back to itself") {
    struct {
      const char* text;
      const char* canonical;
    } const cases[] = {
      {" 0.80+exponential( 0.2 ) ", "0.8 + exponential(0.2)"},
      {"(1+2)+uniform(1,2)", "1 + 2 + uniform(1, 2)"},
      {"2*(1+exponential(1))", "2 * (1 + exponential(1))"},
      {"1 +\r\n\t2\r\n", "1 + 2"},
      {"two_point(1/16,6)", "two_point(0.0625, 6)"},
      {"uniform(.95,1.05) slow=3/50*2.4", "uniform(0.95, 1.05) * slow(3/50, 2.4)"},
      {"1 + 2 slow={7,12}*2", "(1 + 2) * slow({7, 12}, 2)"},
      {"pareto(1,1.26,300)", "pareto(1, 1.26, 300)"},
      {"mixture(0.25:1,0.75:common(exponential(1)))",
       "mixture(0.25: 1, 0.75: common(exponential(1)))"},
      {"correlated(.5,persistent(uniform(1,2)))*on_off(.1,.2,3)+pause(10,2)",
       "correlated(0.5, persistent(uniform(1, 2))) * on_off(0.1, 0.2, 3) + pause(10, 2)"},
    };

    for (const auto& [text, canonical] : cases) {
      CHECK(parsed(text).text() == canonical);
      CHECK(parsed(canonical).text() == canonical);
      CHECK(draws(text, 20, 3) == draws(canonical, 20, 3));
    }
  }

  TEST_CASE("every preset is an expression, and its name stands for it") {
    for (const auto& preset : troupe::distribution_presets()) {
      CAPTURE(preset.name);
      CHECK(draws(std::string{preset.name}, 5) == draws(std::string{preset.expression}, 5));
    }
    CHECK(parsed("2 * chen2016-like").text()
          == "2 * mixture(0.986: lognormal(1.5, 0.08), 0.014: pareto(2, 2.35))");
  }

  TEST_CASE("the preset chen2016-like has the distribution that it was fitted to") {
    auto values = draws("chen2016-like", draw_count);
    check_quantile(values, 0.98584, 2.0);
  }

  TEST_CASE("refuses what it cannot read, with a caret under the fault") {
    auto names = refusal("expnential(1)");
    CHECK(names.find("no distribution 'expnential'; there are constant, uniform,") == 0);
    CHECK(names.find("\n  expnential(1)\n  ^") != std::string::npos);
    CHECK(refusal("0.8 + exponential(-1)")
          == "times and factors cannot be negative\n"
             "  0.8 + exponential(-1)\n"
             "                    ^");
    CHECK(refusal("exponential(0)")
          == "mean must be above 0\n"
             "  exponential(0)\n"
             "              ^");
    CHECK(refusal("pareto(1)")
          == "here ', alpha' is missing: it is pareto(minimum, alpha[, cap])\n"
             "  pareto(1)\n"
             "          ^");
    CHECK(refusal("exponential(1, 2)")
          == "here a ')' is missing: it is exponential(mean)\n"
             "  exponential(1, 2)\n"
             "               ^");
    CHECK(refusal("two_point(1.5, 2)")
          == "p must be from 0 to 1\n"
             "  two_point(1.5, 2)\n"
             "            ^");
    CHECK(refusal("1 +")
          == "here the expression ends too early: a distribution is missing\n"
             "  1 +\n"
             "     ^");
    CHECK(refusal("1 2")
          == "'2' is too much here: join distributions by '+' or '*'\n"
             "  1 2\n"
             "    ^");
    CHECK(
      refusal("lognormal(1,.1) slow=3/50*2 + 1")
      == "'+' is too much here: slow= must stand last; for a part of the expression write (...) "
         "* slow(3/50, 2)\n"
         "  lognormal(1,.1) slow=3/50*2 + 1\n"
         "                              ^");
    CHECK(refusal("70us")
          == "'us' is too much here: times are in seconds, without a unit, such as 70e-6\n"
             "  70us\n"
             "    ^");
    for (const auto* text : {"0.8 + exponential(5 ms)", "(1s)", "1 slow=1/2*3h"})
      CHECK(refusal(text).find("times are in seconds, without a unit") != std::string::npos);
    CHECK(refusal("uniform(2, 1)")
          == "uniform: the high end must not be below the low one\n"
             "  uniform(2, 1)\n"
             "  ^");
  }

  TEST_CASE("a caret stands below letters of several bytes") {
    CHECK(refusal("1 \u00e9")
          == "'\u00e9' is too much here: join distributions by '+' or '*'\n"
             "  1 \u00e9\n"
             "    ^");
    CHECK(refusal("trace(\"\u00e9\u00e9\" 1)")
          == "here a ')' is missing, behind the name of the file\n"
             "  trace(\"\u00e9\u00e9\" 1)\n"
             "             ^");
  }

  TEST_CASE("refuses times that no clock of a job holds, and cuts drawn ones") {
    CHECK(refusal("5e9")
          == "this time is 5e+09 s, and 1e+09 s are the most; lower it\n"
             "  5e9\n"
             "  ^");
    CHECK(refusal("1 + exponential(2e9)")
          == "the mean time is 2e+09 s, and 1e+09 s are the most; lower it\n"
             "  1 + exponential(2e9)\n"
             "  ^");
    CHECK(seconds(parsed("1e9").times(1)(0, 0)) == 1e9);
    CHECK(seconds(parsed("1e8 slow={0}*50").times(1)(0, 0)) == 1e9);
  }

  TEST_CASE("slow replicas have no meaning where one draw is of all") {
    for (const char* text :
         {"common(slow(1/2, 3))", "common(1 + 2 * slow({1}, 3))", "common(bytedance-slow-worker)"})
      CHECK(refusal(text).find("slow is of single replicas, and has no meaning within common")
            == 0);
    CHECK(parsed("common(exponential(1)) slow=1/2*3").mean() == 2);
  }

  TEST_CASE("a trace without the name of its file is refused") {
    CHECK(refusal("trace()").find("here the name of the file is missing") == 0);
    CHECK(refusal("trace(\"\")").find("here the name of the file is missing") == 0);
    CHECK(refusal("trace(  )").find("here the name of the file is missing") == 0);
  }

  TEST_CASE("refuses numbers that mean nothing") {
    for (const auto* text : {"",
                             "(",
                             "()",
                             "1)",
                             "exponential",
                             "exponential(",
                             "exponential()",
                             "exponential(nan)",
                             "exponential(inf)",
                             "exponential(1e999)",
                             "1/0",
                             "pareto(2, 1, 2)",
                             "mixture()",
                             "mixture(0.5: 1)",
                             "mixture(0.5: 1, 0.6: 2)",
                             "mixture(1, 2)",
                             "slow(3/2, 2)",
                             "slow(1.5/2, 2)",
                             "slow({1.5}, 2)",
                             "slow({}, 2)",
                             "1 slow=3*2",
                             "1 fast=3/50*2",
                             "correlated(1, 1)",
                             "on_off(0.6, 0.6, 2)",
                             "on_off(0.1, 0, 2)",
                             "pause(0, 1)",
                             "pause(1.5, 1)",
                             "trace(",
                             "trace(no/such/file.csv)",
                             "-1",
                             "1 * -2",
                             "1 ! 2"}) {
      CAPTURE(text);
      auto line = refusal(text);
      CHECK(line != "accepted");
      CHECK(line.find('^') != std::string::npos);
    }
    CHECK(refusal(std::string(1000, '(')).find("nested too deeply") == 0);
    CHECK(refusal(std::string(66'000, '1')).find("an expression of 66000 letters") == 0);
  }

  TEST_CASE("any text is refused with a caret within it, or read and written to the same draws") {
    constexpr const char* words[]
      = {"1",   "0.5",  "1/16",        "0",      "(",           ")",       ",",
         "+",   "*",    ":",           " ",      "exponential", "uniform", "mixture",
         "hop", "slow", "persistent",  "common", "correlated",  "on_off",  "pause",
         "=",   "/",    "pareto(1,2)", "-",      "{",           "}",       "exponential(1)",
         "\n",  "\"",   "1e400",       "trace",  "slow=1/2*3",  "9",       "lognormal(1,.1)"};
    int accepted = 0;
    for (uint64_t attempt = 0; attempt < 30'000; ++attempt) {
      troupe::random_stream draw{troupe::random_key{9, "text", 0, attempt}};
      std::string text;
      for (auto left = 1 + draw.below(9); left > 0; --left)
        text += words[draw.below(std::size(words))];
      CAPTURE(text);
      auto result = distribution::parse(text);
      if (!result) {
        const auto& message = result.error().message;
        auto line = message.rfind('\n');
        REQUIRE(line != std::string::npos);
        REQUIRE(message.back() == '^');
        REQUIRE(message.size() - line - 1 <= 2 + text.size() + 1);
        continue;
      }
      ++accepted;
      auto canonical = result->text();
      auto again = distribution::parse(canonical);
      REQUIRE(again);
      REQUIRE(again->text() == canonical);
      auto time = result->times(attempt)(3, 17);
      REQUIRE(time.count() >= 0);
      REQUIRE(again->times(attempt)(3, 17) == time);
    }
    CHECK(accepted > 300);
  }

  TEST_CASE("a trace gives what was measured, and the expression knows it") {
    troupe::test::scratch_folder folder;
    auto path = (folder.path() / "times.csv").string();
    std::ofstream{path} << "1,2\n3,4\n5,6\n";
    auto expression = "trace(\"" + path + "\")";
    CHECK(draws(expression, 3, 0) == std::vector<double>{1, 3, 5});
    CHECK(draws(expression, 3, 1) == std::vector<double>{2, 4, 6});
    CHECK(parsed("1 + " + expression + " * 2").shortest_trace()->file == path);
    CHECK_FALSE(parsed("1 + exponential(2)").shortest_trace());
    CHECK(draws("2 * trace(" + path + ")", 2, 1) == std::vector<double>{4, 8});
    CHECK(parsed("trace( " + path + " )").text() == expression);
    CHECK(parsed(expression).mean() == 3.5);
    CHECK(parsed(expression).text() == expression);
  }
}

} // namespace distribution_test
