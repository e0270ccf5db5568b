// SPDX-License-Identifier: Apache-2.0
// Goal: what goes beyond a trace is neither a repetition nor a copy, keeps what lasts, and makes no
// interval narrower than the trace allows. Method: small traces; and traces of known distributions,
// for which the intervals are counted that hold the truth.
#include "simulation/distributions/trace_resampling.hpp"
#include "simulation/experiment.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <set>

namespace trace_resampling_test {

using namespace troupe;

namespace {

// Replica r's draw d takes 100 r + d.
std::shared_ptr<const trace_table> numbered(size_t replicas, size_t draws) {
  trace_table table;
  for (size_t replica = 0; replica < replicas; ++replica) {
    auto& times = table.seconds.emplace_back();
    for (size_t draw = 0; draw < draws; ++draw)
      times.push_back(static_cast<double>(100 * replica + draw));
  }
  return std::make_shared<const trace_table>(std::move(table));
}

std::vector<double> draws_of(trace_resampling& trace, uint32_t replica, uint64_t first,
                             uint64_t count) {
  std::vector<double> draws;
  for (auto draw = first; draw < first + count; ++draw)
    draws.push_back(trace.at(replica, draw));
  return draws;
}

// A lognormal trace as a file, and the longest of each of its steps on average over many.
void write_trace(const std::string& path, uint32_t replicas, uint64_t draws, uint64_t seed) {
  std::ofstream file{path};
  auto times = distribution::parse("lognormal(1, 0.3)")->times(seed);
  for (uint64_t draw = 0; draw < draws; ++draw)
    for (uint32_t replica = 0; replica < replicas; ++replica)
      file << std::chrono::duration<double>(times(replica, draw)).count()
           << (replica + 1 == replicas ? "\n" : ",");
}

double mean_of_longest(uint32_t replicas, uint64_t steps) {
  auto times = distribution::parse("lognormal(1, 0.3)")->times(12345);
  double sum = 0;
  for (uint64_t step = 0; step < steps; ++step) {
    job_time longest{0};
    for (uint32_t replica = 0; replica < replicas; ++replica)
      longest = std::max(longest, times(replica, step));
    sum += std::chrono::duration<double>(longest).count();
  }
  return sum / static_cast<double>(steps);
}

experiment with_trace(const std::string& path, uint32_t replicas, uint64_t steps) {
  return {.sync = {replicas, replicas, sync_policy::latest_token},
          .compute = *distribution::parse(fmt::format("trace(\"{}\")", path)),
          .steps = steps,
          .warm_up = 0};
}

} // namespace

TEST_SUITE("simulation/distributions/trace_resampling") {
  TEST_CASE("begins with what was measured") {
    trace_resampling trace{numbered(3, 50), 1, "a"};
    for (uint32_t replica = 0; replica < 3; ++replica)
      for (uint64_t draw = 0; draw < 50; ++draw)
        CHECK(trace.at(replica, draw) == static_cast<double>(100 * replica + draw));
  }

  TEST_CASE("goes on in blocks of consecutive draws that all replicas share") {
    trace_resampling trace{numbered(3, 50), 1, "a"};
    REQUIRE(trace_resampling::block_length(50) == 8);
    std::set<double> firsts;
    for (uint64_t block = 0; block < 100; ++block) {
      auto first = trace.at(0, 50 + 8 * block);
      firsts.insert(first);
      for (uint64_t i = 0; i < 8; ++i)
        for (uint32_t replica = 0; replica < 3; ++replica)
          CHECK(trace.at(replica, 50 + 8 * block + i)
                == 100 * replica + static_cast<double>((static_cast<uint64_t>(first) + i) % 50));
    }
    CHECK(firsts.size() > 35); // of 50 places, 100 times
  }

  TEST_CASE("no replica beyond the columns is a copy, and each group has every column once") {
    trace_resampling trace{numbered(4, 50), 1, "a"};
    for (uint32_t group : {1U, 2U, 7U}) {
      std::set<int> columns;
      for (uint32_t i = 0; i < 4; ++i) {
        auto draws = draws_of(trace, 4 * group + i, 0, 50);
        columns.insert(static_cast<int>(draws[0]) / 100);
        for (uint32_t other = 0; other < 4 * group; ++other)
          CHECK(draws != draws_of(trace, other, 0, 50));
      }
      CHECK(columns.size() == 4);
    }
  }

  TEST_CASE("the seed and the place in the expression decide") {
    auto table = numbered(2, 50);
    trace_resampling one{table, 1, "a"};
    trace_resampling again{table, 1, "a"};
    trace_resampling other_seed{table, 2, "a"};
    trace_resampling other_place{table, 1, "b"};
    auto draws = draws_of(one, 5, 0, 100);
    CHECK(draws == draws_of(again, 5, 0, 100));
    CHECK(draws != draws_of(other_seed, 5, 0, 100));
    CHECK(draws != draws_of(other_place, 5, 0, 100));
  }

  TEST_CASE("a trace of one time is that time for all") {
    trace_resampling trace{numbered(1, 1), 1, "a"};
    CHECK(trace.at(7, 1000) == 0);
    CHECK(trace.at(0, ~uint64_t{0}) == 0);
  }

  TEST_CASE("more replicas than columns wait longer than the columns do") {
    test::scratch_folder folder;
    auto path = (folder / "times.csv").string();
    write_trace(path, 8, 45, 1);
    auto as_measured = run(with_trace(path, 8, 45));
    CHECK_FALSE(as_measured.trace->is_exceeded);
    auto doubled = run(with_trace(path, 16, 45));
    CHECK(doubled.trace->is_exceeded);
    CHECK(doubled.trace->repeats == doctest::Approx(2));
    CHECK(doubled.step_time.mean > 1.05 * as_measured.step_time.mean);
  }

  TEST_CASE("intervals hold the truth as often as they say, however many steps are simulated") {
    test::scratch_folder folder;
    auto path = (folder / "times.csv").string();
    auto truth = mean_of_longest(8, 20'000);
    int held = 0;
    double width_of_one = 0;
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      write_trace(path, 8, 45, seed);
      auto report = run(with_trace(path, 8, 450));
      held += std::abs(report.step_time.mean - truth) < report.half_width() ? 1 : 0;
      if (seed == 1) width_of_one = report.half_width();
    }
    CHECK(held >= 35);
    CHECK(width_of_one < 0.25); // 2.6 standard errors of 45 steps are 0.12
    write_trace(path, 8, 45, 1);
    auto half_as_long = run(with_trace(path, 8, 225)).half_width();
    CHECK(width_of_one / half_as_long == doctest::Approx(1).epsilon(0.3)); // not 1 / sqrt(2)
  }

  TEST_CASE("differences are no surer than the trace either") {
    test::scratch_folder folder;
    auto path = (folder / "times.csv").string();
    write_trace(path, 8, 45, 3);
    auto what = with_trace(path, 8, 450);
    auto all = run(what);
    what.sync.replicas_to_aggregate = 6;
    auto fewer = run(what);
    auto plain = paired_difference(fewer.batches, all.batches);
    auto honest = step_time_difference(fewer, all);
    REQUIRE(honest);
    CHECK(honest->mean == plain.mean);
    CHECK(honest->high - honest->low > 2.5 * (plain.high - plain.low)); // about sqrt(10)
  }
}

} // namespace trace_resampling_test
