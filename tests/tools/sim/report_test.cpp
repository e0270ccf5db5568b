// SPDX-License-Identifier: Apache-2.0
// Goal: the table and the JSON of `troupe sim` say what a reader must know to trust the figures,
// and to repeat them. Method: small simulations by their command lines.
#include "tests/doctest.hpp"
#include "tests/tools/sim/parsed_command.hpp"
#include "tools/options/config_file.hpp"
#include "tools/sim/report.hpp"

#include <nlohmann/json.hpp>

namespace sim_report_test {

namespace {

using namespace troupe;
using troupe::test::parsed;
using json = nlohmann::json;

std::vector<sim_row> simulated(const sim_command& command) {
  std::vector<sim_row> rows;
  for (auto& options : command.rows()) {
    auto what = experiment_of(options);
    REQUIRE_MESSAGE(what, (what ? "" : what.error().message));
    rows.push_back({.options = std::move(options), .experiment = std::move(*what)});
    rows.back().report = run(rows.back().experiment);
  }
  return rows;
}

std::string table(const std::vector<const char*>& arguments) {
  auto command = parsed(arguments);
  return sim_table(command, simulated(command));
}

json report(const sim_command& command) {
  return json::parse(sim_json(command, simulated(command)));
}

bool says(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

} // namespace

TEST_SUITE("tools/sim/report") {
  TEST_CASE("the time to the goal is told if the steps to it are given") {
    std::vector<const char*> four{"--replicas", "4", "--policy", "cancel",
                                  "--compute",  "2", "--steps",  "9"};
    CHECK(report(parsed(four))["goal"].is_null());
    four.insert(four.end(), {"--iterations", "1000 + 400/N"});
    auto goal = report(parsed(four))["goal"];
    CHECK(goal["steps"] == 1100);
    CHECK(goal["seconds"].get<double>() == doctest::Approx(2200));
    CHECK(says(table(four), "1100 steps to the goal take 2200 s"));
  }

  TEST_CASE("a run that stalled, or was restarted, has no time to the goal") {
    using namespace std::chrono_literals;
    auto command = parsed({"--replicas", "4", "--aggregate", "3", "--policy", "latest_token",
                           "--compute", "1", "--steps", "30", "--iterations", "300/N"});
    command.options.fault_list = {{.at = 9500ms, .who = {"replica 1", "replica 2"}}};
    auto stalled = report(command);
    CHECK_FALSE(stalled["stalled"].is_null());
    CHECK(stalled["goal"].is_null());
    CHECK_FALSE(says(sim_table(command, simulated(command)), "to the goal"));
    command.options.fault_list = {{.at = 9500ms, .lasts = 10s, .who = {"chief"}}};
    auto restarted = report(command);
    CHECK(restarted["goal"].is_null());
    CHECK(restarted["restarts"] == 1);
    CHECK(restarted["steps"] == 39);
    CHECK(restarted["undone_steps"] == 9);
    CHECK(restarted["undone_accepted"] == 27);
    CHECK(restarted["down_seconds"] == 10);
    auto text = sim_table(command, simulated(command));
    CHECK_FALSE(says(text, "to the goal"));
    CHECK(says(text,
               "\nrestarted once: 9 steps had to be made again, and the job waited 10 s to be "
               "restarted; step times leave both out\n"));
  }

  TEST_CASE("a curve that has no number of steps for a row says so instead of the time") {
    auto told = [](const char* curve) {
      return table({"--replicas", "4", "--steps", "20", "--policy", "cancel", "--compute",
                    "exponential(1)", "--sweep", "aggregate=1:4", "--iterations", curve});
    };
    auto measured = told("2: 100, 3: 60");
    for (const char* row : {"1", "4"})
      CHECK(says(measured, fmt::format("\naggregate {0}: the curve of iterations does not say how "
                                       "many steps it takes with {0} gradients a step\n",
                                       row)));
    CHECK(says(measured, "\naggregate 3: 60 steps to the goal take "));
    CHECK(says(told("1e300*N^300"), "\naggregate 4: the curve of iterations says that it takes inf "
                                    "steps with 4 gradients a step; give one that is finite"));
    CHECK(says(told("1.7e308"), "\naggregate 4: 1.7e+308 steps to the goal take longer than any "
                                "number of seconds\n"));
    for (const char* curve : {"1e300*N^300", "1.7e308"})
      CHECK_FALSE(says(told(curve), "inf s\n"));
  }

  TEST_CASE("a stall among several runs has the seed that repeats it") {
    std::vector<const char*> risky{"--replicas", "4",  "--aggregate", "3",  "--policy", "cancel",
                                   "--compute",  "1",  "--steps",     "20", "--faults", "crash=60",
                                   "--runs",     "12", "--seed",      "0"};
    auto command = parsed(risky);
    auto stalled = report(command)["stalled"];
    REQUIRE_FALSE(stalled.is_null());
    auto runs = stalled["runs"].get<int>();
    auto seed = stalled["seed"].get<uint64_t>();
    auto reason = stalled["reason"].get<std::string>();
    REQUIRE(runs > 1);
    CHECK(says(table(risky), fmt::format("\nstalled: {} of 12 runs, the first with seed {}: {}\n",
                                         runs, seed, reason)));
    command.options.runs = 1;
    command.options.seed = seed;
    CHECK(report(command)["stalled"]["reason"] == reason);
    CHECK(report(command)["stalled"]["runs"] == 1);
    CHECK(says(sim_table(command, simulated(command)), "\nstalled: " + reason + "\n"));
  }

  TEST_CASE("times without a mean, and steps without a variance, point to the median") {
    auto told = [](const char* compute, const char* aggregate, const char* policy = "cancel") {
      return table({"--replicas", "4", "--aggregate", aggregate, "--policy", policy, "--steps",
                    "40", "--compute", compute});
    };
    const auto* mean = "\nthe computing times have no mean: look at the median\n";
    const auto* variance = "\nthe step times have no variance: their mean is known worse than its "
                           "interval says; look at the median\n";
    for (const auto* compute : {"pareto(1, 0.8)", "pareto(1, 0.8) slow={3}*2"}) {
      CHECK(says(told(compute, "4"), mean));
      CHECK_FALSE(says(told(compute, "4"), variance));
    }
    CHECK(says(told("task-tail", "4"), variance));
    CHECK_FALSE(says(told("task-tail", "3"), variance)); // the lesser of two draws has one
    CHECK(says(told("common(task-tail)", "3"), variance));
    CHECK(says(told("task-tail", "3", "latest_token"), variance)); // a late one stays late
    CHECK(says(told("task-tail", "1", "ssp"), variance));          // all wait for the slowest
    CHECK_FALSE(says(told("task-tail", "4", "k_batch_async"), variance));
    CHECK(says(told("pareto(1, 1) slow={1}*2", "3"), mean));
    for (const auto* compute : {"0 * pareto(1, 0.5)", "chen2016-like", "pareto(1, 1.26, 100)"})
      CHECK_FALSE(says(told(compute, "4"), "look at the median"));
  }

  TEST_CASE("a thousandth of the steps is told of where ten of them are longer") {
    auto command = parsed(
      {"--replicas", "4", "--compute", "exponential(1)", "--steps", "10000", "--warm-up", "0"});
    auto times = report(command)["step_time"];
    CHECK(times["p999"] > times["p99"]);
    CHECK(times["p999"] < times["max"]);
    command.options.steps = 9999;
    CHECK(report(command)["step_time"]["p999"].is_null());
  }

  TEST_CASE("the planned faults of a report are those of a scenario file again") {
    std::string_view file = R"(
replicas = 4
aggregate = 2
policy = "latest_token"
steps = 5
network = "1ms"

[[fault]]
kind = "crash"
at = 2.5
who = ["replica 1"]

[[fault]]
kind = "partition"
at = 1
for = 0.5
who = ["replica 0"]
one-way = true

[[fault]]
kind = "slow"
factor = 3

[[fault]]
kind = "skew"
ahead = 1
rate = 1.5

[[fault]]
kind = "messages"
message = "Token"
late = 0.25

[[fault]]
kind = "corrupt"
at = 100
how = "shape"
)";
    auto read = [](std::string_view toml) {
      sim_command command;
      command_options all;
      add_options(all, command);
      auto done = read_config(toml, "s.toml", all, faults_key("s.toml", command));
      REQUIRE_MESSAGE(done, (done ? "" : done.error().message));
      return command;
    };
    auto faults = report(read(file))["scenario"]["fault"];
    REQUIRE(faults.size() == 6);
    CHECK(faults[1]["one-way"] == true);
    CHECK_FALSE(faults[0].contains("for"));
    std::string again{file.substr(0, file.find("[[fault]]"))};
    for (const auto& fault : faults) {
      again += "[[fault]]\n";
      for (const auto& [key, value] : fault.items())
        again += key + " = " + value.dump() + "\n";
    }
    CHECK(report(read(again))["scenario"]["fault"] == faults);
  }
}

} // namespace sim_report_test
