// SPDX-License-Identifier: Apache-2.0
// Goal: the totals are right and the table stays readable. Method: a few steps with round numbers.
#include "actors/recording/summary.hpp"
#include "tests/actors/recording/sample_records.hpp"
#include "tests/doctest.hpp"

namespace summary_test {

TEST_SUITE("actors/recording/summary") {
  using namespace troupe;
  using namespace std::chrono_literals;

  TEST_CASE("sums up what became of each replica's work") {
    summary run;
    run.add(test::step_with_a_straggler());
    auto second = test::step_with_a_straggler();
    second.cancelled = {test::gradient(3, 8, 1500ms)};
    second.stale.clear();
    run.add(second);
    REQUIRE(run.replicas().size() == 4);
    CHECK(run.replicas().at(1) == replica_summary{2, 0, 0, 0, 200ms, 0ms, 40ms, 1200ms});
    CHECK(run.replicas().at(3) == replica_summary{0, 1, 1, 2, 200ms, 200ms, 40ms, 0ms});
    CHECK(run.total() == replica_summary{6, 1, 1, 2, 800ms, 200ms, 160ms, 1200ms});
    CHECK(run.drop_fraction() == doctest::Approx(0.25));
    CHECK(run.examples() == 192);
    CHECK(run.elapsed() == 1500ms);
    CHECK(run.step_times().count() == 2);
  }

  TEST_CASE("counts a gradient once that was done when its replica was told to stop") {
    summary run;
    auto told = [](uint64_t local_step) {
      contribution one{.replica = 1, .local_step = local_step};
      return one;
    };
    auto add = [&](std::vector<contribution> stale, uint64_t told_at) {
      step_record step;
      step.accepted = {test::gradient(0, told_at, 1s)};
      step.stale = std::move(stale);
      step.cancelled = {told(told_at)};
      run.add(step);
    };
    add({}, 0);
    add({}, 1);
    add({test::gradient(1, 1, 1s)}, 2); // the first was really given up
    add({test::gradient(1, 3, 1s)}, 3); // in the record of its own step
    add({test::gradient(1, 2, 1s)}, 4); // no replica goes back: one gradient more
    CHECK(run.replicas().at(1).cancelled == 3);
    CHECK(run.replicas().at(1).stale == 3);
    CHECK(run.replicas().at(0).accepted == 5);
  }

  TEST_CASE("does not count what a replica waited for itself") {
    step_record step;
    step.accepted = {test::gradient(0, 0, 1s), test::gradient(0, 0, 2s)};
    summary run;
    run.add(step);
    CHECK(run.replicas().at(0).held_up == 0ns);
  }

  TEST_CASE("replicas that together computed for longer than a clock counts are no fault") {
    summary run;
    for (uint32_t replica = 0; replica < 3; ++replica) {
      step_record step;
      step.accepted = {{.replica = replica, .compute = job_time::max() / 2}};
      run.add(step);
    }
    CHECK(run.total().compute == job_time::max());
  }

  TEST_CASE("says so when nothing was done") {
    const summary run;
    CHECK(run.text() == "no step was completed\n");
    CHECK(run.drop_fraction() == 0);
  }

  TEST_CASE("prints a table with one line per replica") {
    summary run;
    run.add(test::step_with_a_straggler());
    CHECK(run.text()
          == "1 steps in 500 ms: 2.00 steps/s, 192 examples/s\n"
             "step time: median 500 ms, p90 500 ms, p99 500 ms, longest 500 ms\n"
             "gradients: 3 accepted, 1 stale, 0 cancelled; 25.0 % not used\n"
             "\n"
             "replica   accepted    stale  cancelled  worst staleness    computing      waiting  "
             "held others up\n"
             "0                1        0          0                -       100 ms      20.0 ms    "
             "        0 ns\n"
             "1                1        0          0                -       100 ms      20.0 ms    "
             "      600 ms\n"
             "2                1        0          0                -       100 ms      20.0 ms    "
             "        0 ns\n"
             "3                0        1          0                2       100 ms      20.0 ms    "
             "        0 ns\n"
             "all              3        1          0                2       400 ms      80.0 ms    "
             "      600 ms\n");
  }

  TEST_CASE("a replica that gave no gradient has a line of zeros") {
    summary run;
    run.expect(5);
    CHECK(run.text() == "no step was completed\n");
    run.add(test::step_with_a_straggler());
    CHECK(run.replicas().size() == 5);
    CHECK(run.replicas().at(4) == replica_summary{});
    CHECK(run.drop_fraction() == doctest::Approx(0.25));
    CHECK(
      run.text().find("\n4                0        0          0                -         0 ns  ")
      != std::string::npos);
  }

  TEST_CASE("a job that is resumed has the speed of the steps that were made since") {
    summary run;
    for (uint64_t step = 1001; step <= 1010; ++step) {
      step_record record{.step = step, .began = 1h + 1s * step, .ended = 1h + 1s * (step + 1)};
      record.accepted = {test::gradient(0, step - 1, record.ended)};
      run.add(record);
    }
    CHECK(run.text().starts_with("10 steps in 10.0 s: 1.00 steps/s, 32.0 examples/s\n"));
  }

  TEST_CASE("lists the replicas that gave none or lost most when there are too many") {
    step_record step;
    for (uint32_t replica = 0; replica < 1000; ++replica)
      step.accepted.push_back(test::gradient(replica, 0, 1s));
    step.stale = {test::gradient(777, 0, 1s)};
    summary run;
    run.expect(1001);
    run.add(step);
    const auto text = run.text();
    CHECK(text.find("\n777 ") != std::string::npos);
    CHECK(text.find("\n1000 ") != std::string::npos);
    CHECK(text.find("(the 32 of 1001 replicas that gave none or lost most gradients)")
          != std::string::npos);
    CHECK(text.find("\n999 ") == std::string::npos);
  }
}

} // namespace summary_test
