// SPDX-License-Identifier: Apache-2.0
// Goal: tasks that are to end are killed in the end. Method: a job without processes, and a grace
// time of a millisecond.
#include "tests/doctest.hpp"
#include "tools/launch/ending.hpp"

#include <csignal>

namespace ending_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

struct ending_job {
  boost::asio::io_context context;
  launch_options options;
  launch_outcome outcome{{{"worker", 0}, {"ps", 0}}, 1ms};
  task_group tasks{context, options, {}, "", {}};
  launch_ending ending{context, outcome, tasks};
};

} // namespace

TEST_SUITE("tools/launch/ending") {
  TEST_CASE("tasks that were asked to end are killed after the grace time") {
    ending_job job;
    job.ending.begin(SIGTERM);
    CHECK(job.ending.has_begun());
    CHECK(job.ending.limit().waits_for_outlet);
    SUBCASE("if nothing else happens") {}
    SUBCASE("though only servers are left") {
      job.ending.begin_later();
    }
    job.context.run();
    CHECK(job.outcome.killed_count() == 2);
    CHECK_FALSE(job.ending.limit().waits_for_outlet);
  }

  TEST_CASE(
    "servers that are left are told to end after the grace time, and killed after another") {
    ending_job job;
    CHECK(job.outcome.on_end(0, {}, 1s) == launch_outcome::reaction::end_servers);
    job.ending.begin_later();
    CHECK_FALSE(job.ending.has_begun());
    job.context.run_one();
    CHECK(job.ending.has_begun());
    CHECK_FALSE(job.outcome.has_idle_servers());
    CHECK(job.outcome.killed_count() == 0);
    job.context.run();
    CHECK(job.outcome.killed_count() == 1);
  }

  TEST_CASE("a job whose tasks are started again, or over, kills none of them") {
    ending_job job;
    job.ending.begin(SIGTERM);
    SUBCASE("again") {
      job.ending.on_restart();
    }
    SUBCASE("over") {
      job.ending.finish();
      CHECK(job.ending.is_over());
    }
    job.context.run();
    CHECK_FALSE(job.ending.has_begun());
    CHECK(job.outcome.killed_count() == 0);
  }
}

} // namespace ending_test
