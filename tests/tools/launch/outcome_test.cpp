// SPDX-License-Identifier: Apache-2.0
// Goal: the first failure decides, and is told as such. Method: stories of jobs, event by event.
#include "tests/doctest.hpp"
#include "tools/launch/outcome_lines.hpp"

#include <csignal>
#include <fmt/format.h>
#include <utility>

namespace outcome_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

using reaction = launch_outcome::reaction;

constexpr task_end success;
constexpr task_end code_5{.exit_code = 5};
constexpr task_end terminated{.signal = SIGTERM};
constexpr task_end killed{.signal = SIGKILL};

// Three workers and a parameter server, which is task 3.
std::vector<launch_task> job_tasks() {
  return {{"worker", 0}, {"worker", 1}, {"worker", 2}, {"ps", 0}};
}

launch_outcome job() {
  return {job_tasks(), 10s};
}

} // namespace

TEST_SUITE("tools/launch/outcome") {
  TEST_CASE("names ends as people do") {
    CHECK(to_string(code_5) == "exit code 5");
    CHECK(to_string(killed) == "signal 9 (SIGKILL)");
    CHECK(signal_name(SIGUSR1) == "SIGUSR1");
    CHECK(signal_name(63) == "signal 63");
  }

  TEST_CASE("a job whose tasks all finish has nothing to tell") {
    auto outcome = job();
    CHECK(outcome.on_end(3, success, 1s) == reaction::none);
    CHECK(outcome.on_end(0, success, 1s) == reaction::none);
    CHECK(outcome.on_end(2, success, 1s) == reaction::none);
    CHECK(outcome.tasks().running_count() == 1);
    CHECK(outcome.on_end(1, success, 2s) == reaction::none);
    CHECK(outcome.exit_code() == 0);
    CHECK(summary_of(outcome).empty());
  }

  TEST_CASE("the first failure ends the others, whose ends change nothing") {
    auto outcome = job();
    CHECK(outcome.on_end(0, success, 1s) == reaction::none);
    CHECK(outcome.on_end(2, code_5, 3200ms) == reaction::end_others);
    CHECK(ending_notice(outcome) == "worker:2 failed: exit code 5; ending 2 other tasks");
    CHECK(outcome.on_end(1, terminated, 3300ms) == reaction::none);
    CHECK(outcome.on_end(3, {.exit_code = 9}, 3300ms) == reaction::none);
    CHECK(outcome.first_failure()->task == 2);
    CHECK(outcome.exit_code() == 5);
    CHECK(summary_of(outcome)
          == "worker:2 failed first: exit code 5 after 3.2 s; 2 others were ended");
    CHECK(ending_notice(outcome).empty());
  }

  TEST_CASE("the failure of the only task is that of its launcher, whatever the job may lose") {
    launch_outcome outcome{{{"worker", 1, 0}}, 10s, 1, {.workers = true}};
    CHECK(outcome.on_end(0, killed, 1s) == reaction::start_again);
    outcome.on_start(0);
    CHECK(outcome.on_end(0, killed, 20s) == reaction::end_others);
    CHECK(outcome.exit_code() == 128 + SIGKILL);
    CHECK(summary_of(outcome)
          == "worker:1 failed first: signal 9 (SIGKILL), as the kernel sends when memory runs out "
             "after 20.0 s");
  }

  TEST_CASE("an evaluator that is started alone is no other attempt of the job when it fails") {
    launch_outcome outcome{{{"evaluator", 0, 0}}, 10s, 1};
    CHECK(outcome.on_end(0, killed, 1s) == reaction::start_again);
    CHECK(restart_notice(outcome, 0).ends_with("0 restarts are left"));
    outcome.on_start(0);
    CHECK(outcome.on_end(0, killed, 20s) == reaction::end_others);
    CHECK(outcome.exit_code() == 128 + SIGKILL);
  }

  TEST_CASE("a kill of a try-out is a failure that says so") {
    auto outcome = job();
    outcome.on_trial_kill(2);
    CHECK(outcome.on_end(2, killed, 1s) == reaction::end_others);
    CHECK(summary_of(outcome)
          == "worker:2 failed first: signal 9 (SIGKILL), as --kill-every asks after 1.0 s; 3 "
             "others were ended");
  }

  TEST_CASE("a worker that fails is started again by itself, as often as there are restarts") {
    launch_outcome outcome{job_tasks(), 10s, 2};
    CHECK(outcome.on_end(2, killed, 1s) == reaction::start_again);
    CHECK(restart_notice(outcome, 2)
          == "worker:2 failed: signal 9 (SIGKILL); it is started again, 1 restart is left");
    CHECK_FALSE(outcome.first_failure());
    outcome.on_start(2);
    CHECK(outcome.tasks().running_count() == 4);
    CHECK(outcome.on_end(2, killed, 2s) == reaction::start_again);
    outcome.on_start(2);
    CHECK(outcome.on_end(2, killed, 3s) == reaction::end_others);
    CHECK(outcome.exit_code() == 128 + SIGKILL);
  }

  TEST_CASE("all are started again if one fails that the job cannot do without") {
    for (size_t task : {0U, 3U}) {
      launch_outcome outcome{job_tasks(), 10s, 1};
      CHECK(outcome.on_end(task, code_5, 1s) == reaction::restart);
      CHECK(outcome.restarts());
      CHECK(
        ending_notice(outcome).ends_with(" failed: exit code 5; all tasks are started again when 3 "
                                         "others have ended, 0 restarts are left"));
      CHECK(outcome.on_end(1, terminated, 2s) == reaction::none);
      outcome.on_restart();
      CHECK(outcome.tasks().running_count() == 4);
      CHECK_FALSE(outcome.restarts());
      CHECK(outcome.on_end(task, code_5, 20s) == reaction::end_others);
    }
  }

  TEST_CASE(
    "a worker that is started again when the others finish is waited for no longer than a ps") {
    launch_outcome outcome{job_tasks(), 10s, 1};
    CHECK(outcome.on_end(2, killed, 1s) == reaction::start_again);
    outcome.on_start(2);
    CHECK(outcome.on_end(1, success, 2s) == reaction::none);
    CHECK(outcome.on_end(0, success, 2s) == reaction::end_servers);
    CHECK(outcome.on_end(2, {.exit_code = 3}, 3s) == reaction::end_servers); // the ps is left
    outcome.on_servers_told();
    CHECK(outcome.on_end(3, terminated, 12s) == reaction::none);
    CHECK(outcome.exit_code() == 0);
    CHECK(summary_of(outcome).empty());
  }

  TEST_CASE("an evaluator that fails harms no task, and is started again at its own expense") {
    std::vector<launch_task> tasks{{"worker", 0}, {"worker", 1}, {"evaluator", 0}};
    launch_outcome outcome{tasks, 10s, 1};
    CHECK(outcome.on_end(2, killed, 1s) == reaction::start_again);
    CHECK(restart_notice(outcome, 2)
          == "evaluator:0 failed: signal 9 (SIGKILL); it is started again, 0 restarts are left");
    outcome.on_start(2);
    CHECK(outcome.on_end(1, killed, 2s) == reaction::start_again); // the job's own is left
    outcome.on_start(1);
    CHECK(outcome.on_end(2, code_5, 3s) == reaction::spare);
    CHECK(spare_notice(outcome, 2)
          == "evaluator:0 failed: exit code 5; the others go on without it");
    CHECK(outcome.on_end(1, success, 4s) == reaction::none);
    CHECK(outcome.on_end(0, success, 4s) == reaction::none);
    CHECK(outcome.exit_code() == 0);
    CHECK(summary_of(outcome).empty());
  }

  TEST_CASE("an evaluator may take longer than the others, and is not started again for a signal") {
    std::vector<launch_task> tasks{{"worker", 0}, {"ps", 0}, {"evaluator", 0}};
    launch_outcome outcome{tasks, 10s, 1};
    CHECK(outcome.on_end(0, success, 1s)
          == reaction::none); // not end_servers: it would end it, too
    outcome.on_request(SIGTERM, 2s);
    CHECK(outcome.on_end(2, {.exit_code = 143}, 2s) == reaction::none);
  }

  TEST_CASE("servers are not told to end while an evaluator waits to be started again") {
    std::vector<launch_task> tasks{{"worker", 0}, {"ps", 0}, {"evaluator", 0}};
    launch_outcome outcome{tasks, 10s, 1};
    CHECK(outcome.on_end(2, killed, 1s) == reaction::start_again);
    CHECK(outcome.on_end(0, success, 1s) == reaction::none); // the end would reach the evaluator
    CHECK_FALSE(outcome.has_idle_servers());
    outcome.on_start(2);
    CHECK(outcome.on_end(2, success, 9s) == reaction::end_servers);
  }

  TEST_CASE("a command that is wrong is wrong for all, even if an evaluator says so") {
    std::vector<launch_task> tasks{{"worker", 0}, {"evaluator", 0}};
    launch_outcome outcome{tasks, 10s, 1};
    CHECK(outcome.on_end(1, {.exit_code = 2}, 1s) == reaction::end_others);
    CHECK(outcome.exit_code() == 2);
  }

  TEST_CASE("with a chief of its own, worker 0 is a worker like the others") {
    launch_outcome outcome{{{"chief", 0}, {"worker", 0}}, 10s, 1};
    CHECK(outcome.on_end(1, killed, 1s) == reaction::start_again);
  }

  TEST_CASE("a worker that is killed soon after another is a loss of its own") {
    launch_outcome outcome{job_tasks(), 10s, 2};
    for (size_t worker : {1, 2}) {
      CHECK(outcome.on_end(worker, killed, 1s) == reaction::start_again);
      outcome.on_start(worker);
    }
    CHECK(outcome.on_end(2, killed, 20s) == reaction::end_others);
  }

  TEST_CASE("failures because a worker is missing are one restart with it") {
    launch_outcome outcome{job_tasks(), 10s, 1};
    CHECK(outcome.on_end(2, killed, 1s) == reaction::start_again);
    outcome.on_start(2);
    CHECK(outcome.on_end(1, {.exit_code = 4}, 1100ms) == reaction::start_again);
    outcome.on_start(1);
    CHECK(outcome.on_end(0, {.exit_code = 4}, 1200ms) == reaction::restart);
    outcome.on_restart();
    CHECK(outcome.on_end(2, killed, 2s) == reaction::end_others);
  }

  TEST_CASE("a worker that comes back to a job that is ending comes again, after a pause") {
    launch_outcome outcome{job_tasks(), 10s, 1};
    CHECK(outcome.on_end(2, killed, 1s) == reaction::start_again);
    for (auto [code, time] : {std::pair{3, 2s}, std::pair{4, 4s}}) {
      outcome.on_start(2);
      CHECK(outcome.on_end(2, {.exit_code = code}, time) == reaction::start_again_later);
    }
    CHECK(restart_notice(outcome, 2).ends_with("0 restarts are left"));
    CHECK(outcome.on_end(0, {.exit_code = 4}, 5s) == reaction::restart);
  }

  TEST_CASE("a worker that comes back again and again is a loss of its own in the end") {
    launch_outcome outcome{job_tasks(), 10s, 1};
    CHECK(outcome.on_end(2, killed, 1s) == reaction::start_again);
    outcome.on_start(2);
    CHECK(outcome.on_end(2, {.exit_code = 3}, 9s) == reaction::start_again_later);
    outcome.on_start(2);
    CHECK(outcome.on_end(2, {.exit_code = 3}, 12s) == reaction::end_others);
    launch_outcome broken{job_tasks(), 10s, 1};
    CHECK(broken.on_end(2, killed, 1s) == reaction::start_again);
    broken.on_start(2);
    CHECK(broken.on_end(2, code_5, 2s) == reaction::end_others);
  }

  TEST_CASE("a wrong command is not tried again, nor is anything after the end was asked for") {
    launch_outcome wrong{job_tasks(), 10s, 5};
    CHECK(wrong.on_end(2, {.exit_code = 2}, 1s) == reaction::end_others);
    launch_outcome asked{job_tasks(), 10s, 5};
    CHECK(asked.on_end(0, killed, 1s) == reaction::restart);
    asked.on_request(SIGINT, 2s);
    CHECK_FALSE(asked.restarts());
    CHECK(asked.on_end(1, terminated, 3s) == reaction::none);
  }

  TEST_CASE("the summary names the tasks that had to be killed") {
    auto outcome = job();
    CHECK(outcome.on_end(0, {.signal = SIGSEGV}, 100ms) == reaction::end_others);
    CHECK(outcome.on_end(1, terminated, 200ms) == reaction::none);
    outcome.on_kill();
    CHECK(outcome.on_end(2, killed, 10'200ms) == reaction::none);
    CHECK(outcome.on_end(3, killed, 10'200ms) == reaction::none);
    CHECK(outcome.exit_code() == 128 + SIGSEGV);
    CHECK(summary_of(outcome)
          == "worker:0 failed first: signal 11 (SIGSEGV) after 0.1 s; 3 others were ended, 2 of "
             "them by SIGKILL after 10 s");
  }

  TEST_CASE("a task that another process killed may have had too little memory") {
    auto outcome = job();
    CHECK(outcome.on_end(0, killed, 100ms) == reaction::end_others);
    CHECK(outcome.exit_code() == 137);
    CHECK(summary_of(outcome).find("as the kernel sends when memory runs out")
          != std::string::npos);
  }

  TEST_CASE(
    "a task that is given up when the job is over is not started again, and has not failed") {
    launch_outcome outcome{job_tasks(), 10s, 1};
    CHECK_FALSE(outcome.tasks().has_finished());
    CHECK(outcome.on_end(0, success, 1s) == reaction::none);
    CHECK(outcome.tasks().has_finished());
    CHECK(waiting_notice(outcome) == "the job is over; waiting for worker:1, worker:2");
    CHECK(outcome.on_end(1, success, 1s) == reaction::none);
    outcome.on_given_up(2);
    CHECK(waiting_notice(outcome).empty());
    CHECK(given_up_notice(outcome, 2)
          == "worker:2 is stopped, as by SIGSTOP, and the job is over: it is killed after 10 s");
    CHECK(outcome.on_end(2, killed, 11s) == reaction::end_servers);
    CHECK(outcome.exit_code() == 0);
    CHECK(summary_of(outcome).empty());
  }

  TEST_CASE("parameter servers are told when no task is left that they could serve") {
    auto outcome = job();
    CHECK(outcome.on_end(0, success, 1s) == reaction::none);
    CHECK(outcome.on_end(1, success, 1s) == reaction::none);
    CHECK(outcome.on_end(2, success, 1s) == reaction::end_servers);
    SUBCASE("their end says nothing then") {
      outcome.on_servers_told();
      CHECK(outcome.on_end(3, terminated, 11s) == reaction::none);
      CHECK(outcome.exit_code() == 0);
      CHECK(summary_of(outcome).empty());
    }
    SUBCASE("before, it does") {
      CHECK(outcome.on_end(3, code_5, 2s) == reaction::end_others);
      CHECK(outcome.exit_code() == 5);
      CHECK(ending_notice(outcome).empty());
      CHECK(summary_of(outcome) == "ps:0 failed first: exit code 5 after 2.0 s");
    }
  }

  TEST_CASE("a job that was asked to end tells which signal asked") {
    auto outcome = job();
    outcome.on_request(SIGTERM, 2s);
    CHECK(ending_notice(outcome)
          == "SIGTERM: ending 4 tasks; tasks that are left after 10 s are killed");
    SUBCASE("and fails with the first task that does") {
      CHECK(outcome.on_end(1, terminated, 2100ms) == reaction::end_others);
      CHECK(outcome.exit_code() == 143);
      CHECK(summary_of(outcome)
            == "ended by SIGTERM after 2.0 s; worker:1 was the first: signal 15 (SIGTERM)");
    }
    SUBCASE("and answers with that signal if we had to kill") {
      outcome.on_kill();
      CHECK(outcome.on_end(1, killed, 12s) == reaction::end_others);
      CHECK(outcome.exit_code() == 128 + SIGTERM);
    }
    SUBCASE("and has not failed if no task did") {
      for (size_t task = 0; task < 4; ++task)
        CHECK(outcome.on_end(task, success, 3s) != reaction::end_others);
      CHECK(outcome.exit_code() == 0);
      CHECK(summary_of(outcome).empty());
    }
  }

  TEST_CASE("a signal to end a job that has failed is not the reason") {
    auto outcome = job();
    CHECK(outcome.on_end(1, code_5, 1s) == reaction::end_others);
    outcome.on_request(SIGINT, 2s);
    CHECK(summary_of(outcome).find("SIGINT") == std::string::npos);
  }

  TEST_CASE("a parameter server that is spared fails for itself alone") {
    launch_outcome outcome{job_tasks(), 10s, 0, {.parameter_servers = true}};
    CHECK(outcome.on_end(3, killed, 1s) == reaction::spare);
    CHECK(spare_notice(outcome, 3)
          == "ps:0 failed: signal 9 (SIGKILL); it is up to the others whether they go on without "
             "it");
    CHECK(outcome.on_end(1, success, 2s) == reaction::none);
    CHECK(outcome.on_end(2, success, 2s) == reaction::none);
    CHECK(outcome.on_end(0, success, 2s) == reaction::none);
    CHECK(outcome.exit_code() == 0);
    CHECK(summary_of(outcome).empty());
  }

  TEST_CASE("a parameter server that is spared is started again by itself, while it may be") {
    launch_outcome outcome{job_tasks(), 10s, 2, {.parameter_servers = true}};
    for (auto left : {"1 restart is", "0 restarts are"}) {
      CHECK(outcome.on_end(3, killed, 1s) == reaction::start_again);
      CHECK(restart_notice(outcome, 3).find(left) != std::string::npos);
      outcome.on_start(3);
    }
    CHECK(outcome.on_end(3, killed, 30s) == reaction::spare);
    CHECK_FALSE(outcome.restarts());
    CHECK(outcome.on_end(1, success, 31s) == reaction::none);
    CHECK(outcome.on_end(2, success, 31s) == reaction::none);
    CHECK(outcome.on_end(0, success, 31s) == reaction::none);
    CHECK(outcome.exit_code() == 0);
  }

  TEST_CASE("if the others cannot do without it, theirs is the failure, and may be tried again") {
    launch_outcome outcome{job_tasks(), 10s, 1, {.parameter_servers = true}};
    CHECK(outcome.on_end(3, killed, 1s) == reaction::start_again);
    CHECK(outcome.on_end(0, {.exit_code = 4}, 1s) == reaction::restart);
    launch_outcome wrong{job_tasks(), 10s, 1, {.parameter_servers = true}};
    CHECK(wrong.on_end(3, {.exit_code = 2}, 1s) == reaction::end_others);
  }

  TEST_CASE("a job that says it may lose workers is not ended for one") {
    auto outcome = job();
    outcome.on_spared({.workers = true});
    CHECK(outcome.on_end(2, killed, 1s) == reaction::spare);
    CHECK(spare_notice(outcome, 2)
          == "worker:2 failed: signal 9 (SIGKILL); it is up to the others whether they go on "
             "without it");
    CHECK(outcome.on_end(1, success, 2s) == reaction::none);
    CHECK(outcome.on_end(0, success, 2s) == reaction::end_servers);
    outcome.on_servers_told();
    CHECK(outcome.on_end(3, terminated, 3s) == reaction::none);
    CHECK(outcome.exit_code() == 0);
    CHECK(summary_of(outcome).empty());
  }

  TEST_CASE("the loss of the chief ends a job that may lose workers") {
    launch_outcome outcome{job_tasks(), 10s, 0, {.workers = true}};
    CHECK(outcome.on_end(0, killed, 1s) == reaction::end_others);
    launch_outcome wrong{job_tasks(), 10s, 0, {.workers = true}};
    CHECK(wrong.on_end(1, {.exit_code = 2}, 1s) == reaction::end_others);
    launch_outcome no_servers{job_tasks(), 10s, 0, {.workers = true}};
    CHECK(no_servers.on_end(3, killed, 1s) == reaction::end_others);
  }

  TEST_CASE("if too few workers are left the chief fails, and both are named") {
    launch_outcome outcome{job_tasks(), 10s, 0, {.workers = true}};
    CHECK(outcome.on_end(2, killed, 1s) == reaction::spare);
    CHECK(outcome.on_end(1, {.exit_code = 4}, 2s) == reaction::spare);
    CHECK(outcome.on_end(0, {.exit_code = 4}, 2s) == reaction::end_others);
    CHECK(outcome.exit_code() == 4);
    CHECK(summary_of(outcome)
          == "worker:0 failed: exit code 4 after 2.0 s, when the job had lost worker:2: signal 9 "
             "(SIGKILL); 1 other was ended");
  }

  TEST_CASE("a worker that ends with the job, a moment before the chief, is not named as lost") {
    for (int code : {1, 4, 5}) {
      launch_outcome outcome{job_tasks(), 10s, 0, {.workers = true}};
      CHECK(outcome.on_end(1, {.exit_code = code}, 6s) == reaction::spare);
      CHECK(outcome.on_end(0, {.exit_code = code}, 6040ms) == reaction::end_others);
      CHECK(summary_of(outcome)
            == fmt::format("worker:0 failed: exit code {} after 6.0 s; 2 others were ended", code));
    }
    launch_outcome outcome{job_tasks(), 10s, 0, {.workers = true}};
    CHECK(outcome.on_end(1, {.exit_code = 4}, 1s) == reaction::spare);
    CHECK(outcome.on_end(2, killed, 30s) == reaction::spare);
    CHECK(outcome.on_end(0, {.exit_code = 4}, 30s) == reaction::end_others);
    CHECK(summary_of(outcome).find("when the job had lost worker:1: exit code 4;")
          != std::string::npos);
  }

  TEST_CASE("a worker that left the job is named if too few are left, and for no other failure") {
    for (auto [code, reason] :
         {std::pair{4, ", when worker:2 had left the job: exit code 0"}, std::pair{1, ""}}) {
      launch_outcome outcome{job_tasks(), 10s};
      outcome.on_spared({.workers = true});
      CHECK(outcome.on_end(2, success, 5s) == reaction::none);
      CHECK(outcome.on_end(0, {.exit_code = code}, 6s) == reaction::end_others);
      CHECK(summary_of(outcome)
            == fmt::format("worker:0 failed first: exit code {} after 6.0 s{}; 2 others were ended",
                           code, reason));
    }
    launch_outcome outcome{job_tasks(), 10s, 0, {.workers = true}};
    CHECK(outcome.on_end(2, success, 5s) == reaction::none);
    CHECK(outcome.on_end(1, {.exit_code = 4}, 6s) == reaction::spare);
    CHECK(outcome.on_end(0, {.exit_code = 4}, 6s) == reaction::end_others);
    CHECK(
      summary_of(outcome).starts_with("worker:0 failed: exit code 4 after 6.0 s, when worker:2"));
  }

  TEST_CASE("servers are not left alone with a worker that fails after the chief has finished") {
    launch_outcome outcome{job_tasks(), 10s, 0, {.workers = true}};
    CHECK(outcome.on_end(0, success, 1s) == reaction::none);
    CHECK(outcome.on_end(1, success, 1s) == reaction::none);
    CHECK_FALSE(outcome.has_idle_servers());
    CHECK(outcome.on_end(2, killed, 1s) == reaction::spare);
    CHECK(outcome.has_idle_servers());
  }

  TEST_CASE("a spared worker is started again by itself while it may be, and not missed then") {
    launch_outcome outcome{job_tasks(), 10s, 1};
    outcome.on_spared({.workers = true});
    CHECK(outcome.on_end(2, killed, 1s) == reaction::start_again);
    outcome.on_start(2);
    CHECK(outcome.on_end(2, killed, 30s) == reaction::spare);
    CHECK_FALSE(outcome.restarts());
  }

  TEST_CASE("a job's notice counts until all tasks are started again") {
    launch_outcome outcome{job_tasks(), 10s, 1};
    outcome.on_spared({.workers = true});
    CHECK(outcome.on_end(0, killed, 1s) == reaction::restart);
    for (size_t task : {1U, 2U, 3U})
      static_cast<void>(outcome.on_end(task, terminated, 2s));
    outcome.on_restart();
    CHECK(outcome.on_end(2, killed, 30s) == reaction::end_others);
  }
}

} // namespace outcome_test
