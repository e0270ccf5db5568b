// SPDX-License-Identifier: Apache-2.0
// Goal: every checkpoint is taken once and in order, and waiting ends. Method: what an evaluator
// would see, moment by moment.
#include "strategies/jobs/evaluation_schedule.hpp"
#include "tests/doctest.hpp"

#include <vector>

namespace evaluation_schedule_test {

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using action = evaluation_schedule::action;

struct evaluator {
  explicit evaluator(evaluation_limits limits) : schedule{limits, 0s} {}

  action look(std::vector<uint64_t> steps, job_time now = 0s, bool is_over = false,
              uint64_t progress = 0) {
    auto next = schedule.next({is_over, steps, progress, now});
    step = next.step;
    return next.what;
  }

  evaluation_schedule schedule;
  uint64_t step = 0;
};

} // namespace

TEST_SUITE("strategies/jobs/evaluation_schedule") {
  TEST_CASE("takes checkpoints in order, each once, and waits for more") {
    evaluator one{{.timeout = 10s}};
    CHECK(one.look({}) == action::wait);
    CHECK(one.look({5, 10}) == action::evaluate);
    CHECK(one.step == 5);
    one.schedule.on_done(5, true, 1s);
    CHECK(one.look({5, 10}) == action::evaluate);
    CHECK(one.step == 10);
    one.schedule.on_done(10, true, 2s);
    CHECK(one.look({5, 10}) == action::wait);
    CHECK(one.look({10, 15}) == action::evaluate);
    CHECK(one.schedule.count() == 2);
    CHECK(one.schedule.last_evaluated() == 10);
  }

  TEST_CASE("the checkpoint of step 0 is one, too") {
    evaluator one{{}};
    CHECK(one.look({0}) == action::evaluate);
    CHECK(one.step == 0);
    one.schedule.on_done(0, true, 0s);
    CHECK(one.look({0}) == action::wait);
  }

  TEST_CASE("a checkpoint that was passed over is not taken again, and does not count") {
    evaluator one{{.max_evaluations = 1}};
    one.schedule.on_done(5, false, 0s);
    CHECK(one.look({5}) == action::wait);
    CHECK(one.schedule.count() == 0);
    CHECK_FALSE(one.schedule.last_evaluated());
  }

  TEST_CASE("goes on after what was evaluated before") {
    evaluator one{{.after = 10}};
    CHECK(one.look({5, 10}) == action::wait);
    CHECK(one.look({5, 10, 15}) == action::evaluate);
    CHECK(one.step == 15);
  }

  TEST_CASE("finishes when training is over, but not before the last checkpoint") {
    evaluator one{{.timeout = 10s}};
    CHECK(one.look({5}, 0s, true) == action::evaluate);
    one.schedule.on_done(5, true, 0s);
    CHECK(one.look({5}, 0s, true) == action::finish);
  }

  TEST_CASE("finishes with the last step, or after so many evaluations, even if training goes on") {
    evaluator by_step{{.last_step = 20}};
    by_step.schedule.on_done(19, true, 0s);
    CHECK(by_step.look({19}) == action::wait);
    by_step.schedule.on_done(20, true, 0s);
    CHECK(by_step.look({20, 25}) == action::finish);
    evaluator by_count{{.max_evaluations = 2}};
    by_count.schedule.on_done(1, true, 0s);
    CHECK(by_count.look({1, 2}) == action::evaluate);
    by_count.schedule.on_done(2, true, 0s);
    CHECK(by_count.look({1, 2, 3}) == action::finish);
  }

  TEST_CASE("gives up when nothing has come for too long") {
    evaluator one{{.timeout = 10s}};
    CHECK(one.look({}, 10s) == action::wait);
    CHECK(one.look({}, 11s) == action::give_up);
  }

  TEST_CASE("a checkpoint is news, and so is any sign of life") {
    evaluator one{{.timeout = 10s}};
    one.schedule.on_done(5, true, 8s);
    CHECK(one.look({5}, 17s) == action::wait);
    CHECK(one.look({5}, 18s, false, 1) == action::wait);
    CHECK(one.look({5}, 28s, false, 1) == action::wait);
    CHECK(one.look({5}, 29s, false, 2) == action::wait);
    CHECK(one.look({5}, 40s, false, 2) == action::give_up);
  }
}

} // namespace evaluation_schedule_test
