// SPDX-License-Identifier: Apache-2.0
// Goal: the useful share of a job on nodes that fail is that of theory where there is one, and that
// of another program else. Method: Daly's closed form; and a loop that goes from second to second.
#include "kernels/tensor/random.hpp"
#include "simulation/reports/goodput.hpp"
#include "tests/doctest.hpp"

#include <algorithm>
#include <vector>

namespace goodput_test {

using namespace troupe;

namespace {

constexpr double hour = 3600;
constexpr double week = 168 * hour;

/// A job's figures from a loop over its seconds.
struct loop_figures {
  double useful = 0; ///< Share of the time.
  uint64_t stops = 0;
};

// Every second each node that is up fails by a coin of its own, and the job does one thing: work,
// save or start again. All times are whole seconds.
loop_figures second_by_second(const failure_model& model, int interval, int horizon,
                              uint64_t seed) {
  random_stream coin{random_key{seed, "loop"}};
  auto node_count = static_cast<size_t>(model.nodes) + model.backups;
  std::vector<int> down_for(node_count, 0);
  auto outage = static_cast<int>(model.detection + model.restart);
  loop_figures figures;
  double saved = 0;
  int work = 0;
  int saving = 0;
  int starting = 0;
  for (int second = 0; second < horizon; ++second) {
    uint32_t down = 0;
    for (auto& left : down_for) {
      if (left > 0)
        --left;
      else if (coin.uniform() < 1 / model.node_mtbf)
        left = static_cast<int>(model.node_return);
      // A node that is back at once was down for this second.
      if (left > 0) ++down;
    }
    if (down > model.backups) {
      if (starting == 0) ++figures.stops;
      work = saving = 0;
      starting = outage;
      std::ranges::fill(down_for, 0);
    } else if (starting > 0) {
      --starting;
      if (starting == 0) std::ranges::fill(down_for, 0);
    } else if (saving > 0) {
      if (--saving == 0) {
        saved += work;
        work = 0;
      }
    } else if (++work == interval) {
      saving = static_cast<int>(model.checkpoint_cost);
    }
  }
  figures.useful = (saved + work) / horizon;
  return figures;
}

} // namespace

TEST_SUITE("simulation/reports/goodput") {
  TEST_CASE("without backups it is within 2 % of Daly's closed form") {
    for (double nodes : {100.0, 1000.0, 10'000.0})
      for (double interval : {300.0, 1200.0, 3600.0}) {
        failure_model model{.nodes = nodes,
                            .node_mtbf = 5e4 * hour,
                            .detection = 10,
                            .restart = 290,
                            .checkpoint_cost = 30};
        CAPTURE(nodes);
        CAPTURE(interval);
        auto history = draw_failures(model, week, nodes < 1000 ? 800 : 200, 1);
        CHECK(goodput_of(history, model.checkpoint_cost, interval)
              == doctest::Approx(daly_goodput(model, interval)).epsilon(0.02));
      }
  }

  TEST_CASE("so it is where a job hardly comes to work") {
    failure_model model{.nodes = 10'000,
                        .node_mtbf = 5000 * hour,
                        .detection = 60,
                        .restart = 600,
                        .checkpoint_cost = 120};
    auto history = draw_failures(model, week, 100, 1);
    auto interval = daly_interval(120, mean_time_to_stop(history));
    auto expected = daly_goodput(model, interval);
    CHECK(expected < 0.5);
    CHECK(goodput_of(history, 120, interval) == doctest::Approx(expected).epsilon(0.02));
  }

  TEST_CASE("the best interval is that of Daly, and Young's is near it") {
    failure_model model{
      .nodes = 1000, .node_mtbf = 1e4 * hour, .restart = 120, .checkpoint_cost = 60};
    auto history = draw_failures(model, week, 300, 2);
    auto mtbf = mean_time_to_stop(history);
    CHECK(mtbf == doctest::Approx(10 * hour).epsilon(0.05));
    auto daly = daly_interval(60, mtbf);
    CHECK(best_interval(history, 60) == doctest::Approx(daly).epsilon(0.3)); // the optimum is flat
    CHECK(goodput_of(history, 60, best_interval(history, 60))
          == doctest::Approx(goodput_of(history, 60, daly)).epsilon(0.003));
    CHECK(young_interval(60, mtbf) == doctest::Approx(daly).epsilon(0.05));
    CHECK(daly_interval(100, 40) == 40);
  }

  TEST_CASE("with and without backups it is what a loop over seconds says") {
    for (uint32_t backups : {0U, 1U, 2U}) {
      CAPTURE(backups);
      failure_model model{.nodes = 10,
                          .backups = backups,
                          .node_mtbf = 20'000,
                          .node_return = 300,
                          .detection = 20,
                          .restart = 80,
                          .checkpoint_cost = 15};
      constexpr int horizon = 1'000'000;
      auto history = draw_failures(model, horizon, 20, 3);
      auto stops = static_cast<double>(std::ranges::count(history.ended, true)) / 20;
      double useful = 0;
      double loop_stops = 0;
      for (uint64_t seed = 0; seed < 4; ++seed) {
        auto loop = second_by_second(model, 200, horizon, seed);
        useful += loop.useful / 4;
        loop_stops += static_cast<double>(loop.stops) / 4;
      }
      CHECK(goodput_of(history, 15, 200) == doctest::Approx(useful).epsilon(0.01));
      CHECK(stops == doctest::Approx(loop_stops).epsilon(backups == 2 ? 0.35 : 0.15));
    }
  }

  TEST_CASE("nothing fails in a job of one node that lives much longer than it") {
    failure_model model{.nodes = 1, .node_mtbf = 1e12, .checkpoint_cost = 10};
    auto history = draw_failures(model, week, 3, 1);
    CHECK(history.stretches.size() == 3);
    CHECK(mean_time_to_stop(history) == doctest::Approx(3 * week));
    CHECK(goodput_of(history, 10, 990) == doctest::Approx(0.99).epsilon(0.001));
    CHECK(goodput_of(history, 10, 2 * week) == 1);
  }

  TEST_CASE("the best interval of rare stops is below a thousandth of the work of all runs") {
    failure_history history{.stretches = std::vector<double>(20'000, week),
                            .ended = std::vector<bool>(20'000, false),
                            .seconds = 20'000 * week};
    history.stretches.front() = week / 2; // the only stop
    history.ended.front() = true;
    CHECK(1e-3 * mean_time_to_stop(history) > 10 * week);
    CHECK(best_interval(history, 10) <= week);
    CHECK(goodput_of(history, 10, best_interval(history, 10)) > 0.9999);
  }

  TEST_CASE("the same seed gives the same failures, and another one others") {
    failure_model model{.nodes = 100, .node_mtbf = 1000 * hour, .restart = 60};
    CHECK(draw_failures(model, week, 2, 5).stretches == draw_failures(model, week, 2, 5).stretches);
    CHECK(draw_failures(model, week, 2, 5).stretches != draw_failures(model, week, 2, 6).stretches);
  }
}

} // namespace goodput_test
