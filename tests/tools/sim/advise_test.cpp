// SPDX-License-Identifier: Apache-2.0
// Goal: `troupe sim advise` understands the question, and its words say what was found.
// Method: command lines with small simulations with a known answer.
#include "messages/errors/failure.hpp"
#include "tests/doctest.hpp"
#include "tests/tools/sim/parsed_command.hpp"
#include "tools/sim/advise.hpp"

namespace sim_advise_test {

namespace {

using namespace troupe;
using troupe::test::parsed;

std::string answer(const std::vector<const char*>& arguments) {
  auto command = parsed(arguments);
  auto question = question_of(command);
  REQUIRE_MESSAGE(question, (question ? "" : question.error().message));
  return advice_text(command, advise(command, *question));
}

std::string refusal(const std::vector<const char*>& arguments) {
  auto question = question_of(parsed(arguments));
  return question ? "accepted" : question.error().message;
}

bool says(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

} // namespace

TEST_SUITE("tools/sim/advise") {
  TEST_CASE("with --replicas it splits them, with --aggregate it buys more") {
    auto split = question_of(parsed({"--replicas", "20", "--iterations", "N^-0.5"}));
    REQUIRE(split);
    CHECK_FALSE(split->buys);
    CHECK(split->base.sync.total_num_replicas == 20);
    CHECK(split->policies.size() == 3);
    CHECK(split->iterations.text() == "N^-0.5");
    auto bought = question_of(parsed({"--aggregate", "20", "--policy", "cancel"}));
    REQUIRE(bought);
    CHECK(bought->buys);
    CHECK(bought->base.sync.replicas_to_aggregate == 20);
    CHECK(bought->policies == std::vector{sync_policy::cancel});
    CHECK(refusal({"--aggregate", "20", "--replicas", "22"}).find("give --replicas, and ask") == 0);
    CHECK(refusal({"--sweep", "seed=1:2"}).find("--sweep: advise chooses by itself") == 0);
    CHECK(refusal({"--aggregate", "dynamic", "--policy", "cancel"}).find("--aggregate dynamic: ")
          == 0);
    CHECK(refusal({"--policy", "k_async"}).find("--policy k_async: advise is about those") == 0);
    CHECK(refusal({"--policy", "best"}).find("--policy") == 0);
  }

  TEST_CASE("says what backups save, and whose data they cost") {
    auto text = answer({"--replicas", "20", "--compute", "1 slow={3, 5, 7}*2.4", "--steps", "100",
                        "--policy", "cancel"});
    CHECK(
      says(text, "advice     cancel with 3 backups: a step takes the first 17 of 20 gradients"));
    CHECK(says(text, "saves      51.0 % of the time to the goal [51.0 to 51.0 %], against waiting "
                     "for all 20"));
    CHECK(says(text, "a step takes 1.000 s instead of 2.400 s"));
    CHECK(says(text,
               "\n           replicas 3, 5 and 7 give less than half of the gradients that an "
               "average one gives: their data hardly count\n"));
    CHECK(says(text, "computing has to end early"));
    CHECK(says(text, "steps to the goal go as 1/N"));
    CHECK(says(text, "with --steps 100"));
  }

  TEST_CASE("replicas whose data hardly count are named: the first of many, and one as one") {
    auto told = [](const char* compute) {
      auto command
        = parsed({"--replicas", "30", "--compute", compute, "--steps", "60", "--policy", "cancel"});
      auto report = advise(command, *question_of(command));
      return std::pair{advice_text(command, report), advice_json(command, report)};
    };
    auto [one, one_json] = told("1 slow={3}*4");
    CHECK(says(one, " replica 3 gives less than half of the gradients that an average one gives: "
                    "its data hardly count\n"));
    CHECK(says(one_json, "\"hardly_heard\": [\n    3\n  ]"));
    auto [many, many_json] = told("1 slow={1,2,4,6,8,9,11,13,14,20,21}*4");
    CHECK(says(many, " replicas 1, 2, 4, 6, 8, 9, 11, 13 and 3 others give less than half "));
    CHECK(says(many_json, "14,\n    20,\n    21\n  ]"));
    auto nine = told("1 slow={1,2,4,6,8,9,11,13,14}*4").first;
    CHECK(says(nine, " replicas 1, 2, 4, 6, 8, 9, 11, 13 and 14 give less than half "));
  }

  TEST_CASE("a restart of the job is told, since step times leave it out") {
    using namespace std::chrono_literals;
    auto command = parsed(
      {"--replicas", "4", "--compute", "1 slow={3}*4", "--steps", "40", "--policy", "cancel"});
    command.options.fault_list = {{.at = 9500ms, .lasts = 10s, .who = {"chief"}}};
    auto text = advice_text(command, advise(command, *question_of(command)));
    CHECK(says(text, "note       the best restarted once: 9 steps had to be made again"));
  }

  TEST_CASE("says so if it is best to have none") {
    auto text = answer({"--replicas", "8", "--compute", "uniform(0.999, 1.001)", "--steps", "100"});
    CHECK(says(text, "advice     none: wait for all 8 replicas"));
    CHECK(says(text, "because    the best of the others, "));
    CHECK(says(text, "with 1 backup, changes the time to the goal by +"));
    text = answer({"--aggregate", "8", "--compute", "uniform(0.999, 1.001)", "--steps", "100"});
    CHECK(says(text, "advice     buy none: take 8 replicas, and wait for all"));
    text = answer({"--replicas", "8", "--dead", "2", "--compute", "uniform(0.999, 1.001)",
                   "--steps", "100", "--policy", "cancel"});
    CHECK(says(text, "advice     no more backups than the 2 that are dead"));
  }

  TEST_CASE("bought backups are weighed by their cost") {
    auto text = answer({"--aggregate", "10", "--compute", "1 slow={0}*3", "--steps", "100",
                        "--policy", "latest_token"});
    CHECK(says(text, "advice     latest_token with 1 backup: a step takes the first 10 of 11"));
    CHECK(says(text, "of the replica time to the goal"));
    CHECK(says(text, "the goal is there after 66.7 % less time, with 10.0 % more replicas"));
    text = answer(
      {"--aggregate", "5", "--compute", "exponential(1)", "--steps", "4000", "--policy", "cancel"});
    CHECK(says(text, "5 backups are the most that were tried: more may save more"));
  }

  TEST_CASE("tails that are too heavy for means are told, also beside a named slow replica") {
    auto told = [](const char* compute) {
      return answer(
        {"--replicas", "6", "--steps", "60", "--policy", "cancel", "--compute", compute});
    };
    CHECK(says(told("pareto(1, 0.8) slow={3}*2"), "note       the computing times have no mean"));
    CHECK(says(told("task-tail"), "note       steps that wait for all have no variance"));
    CHECK_FALSE(says(told("exponential(1)"), "note "));
  }

  TEST_CASE("where no step takes any time, it says so") {
    auto text = answer({"--replicas", "4", "--compute", "0", "--steps", "100"});
    CHECK(says(text, "advice     none: wait for all 4 replicas"));
    CHECK(says(text, "because    no step takes any time"));
  }

  TEST_CASE("programs get everything that was tried") {
    auto command = parsed({"--replicas", "6", "--compute", "1 slow={0}*3", "--steps", "40"});
    auto report = advise(command, *question_of(command));
    auto text = advice_json(command, report);
    CHECK(says(text, "\"worth_it\": true"));
    CHECK(says(text, "\"policy\": \"tensorflow\""));
    CHECK(report.rows.empty()); // no plots were asked for
    command.plots = "plots";
    report = advise(command, *question_of(command));
    CHECK(report.rows.size() >= 3);
    for (const auto& row : report.rows)
      CHECK(row.profile.has_value());
  }

  TEST_CASE("a policy without backups is no question") {
    CHECK(refusal({"--replicas", "4", "--policy", "sync"})
          == "--policy sync: a step waits for all, so there is nothing to advise; leave it out, or "
             "take tensorflow, latest_token or cancel");
    CHECK(refusal({"--replicas", "4", "--policy", "all_reduce"})
          == "--policy all_reduce: a step waits for all, so there is nothing to advise; leave it "
             "out, or take tensorflow, latest_token or cancel");
    CHECK(refusal({"--replicas", "4", "--policy", "local_sgd", "--local-steps", "2"})
          == "--policy local_sgd: a step waits for all, so there is nothing to advise; leave it "
             "out, or take tensorflow, latest_token or cancel");
  }

  TEST_CASE("an option that no policy with backups knows is refused") {
    CHECK(refusal({"--replicas", "4", "--slack", "3"}).starts_with("--slack has no meaning under"));
    CHECK(refusal({"--replicas", "4", "--local-steps", "3"}).starts_with("--local-steps has no"));
    CHECK(refusal({"--replicas", "4", "--collective", "ring"}).starts_with("--collective has no"));
  }

  TEST_CASE("a job that never makes its steps is reported as stalled") {
    auto command = parsed({"--replicas", "3", "--dead", "3", "--steps", "40"});
    CHECK_THROWS_AS(static_cast<void>(advise(command, *question_of(command))), failure);
  }
}

} // namespace sim_advise_test
