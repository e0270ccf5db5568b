// SPDX-License-Identifier: Apache-2.0
// Goal: `troupe sim replay` finds a run, says what a change would make of it, and names what is
// wrong. Method: command lines, and folders written by hand.
#include "actors/recording/ledger_file.hpp"
#include "messages/errors/failure.hpp"
#include "simulation/distributions/distribution.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tools/sim/replay.hpp"

#include <fstream>

namespace sim_replay_test {

namespace {

using namespace troupe;
using namespace std::chrono_literals;

expected<replay_command> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "replay");
  return parse_replay_options(static_cast<int>(arguments.size()), arguments.data());
}

replay_command parsed(const std::vector<const char*>& arguments) {
  auto command = parse(arguments);
  REQUIRE_MESSAGE(command, (command ? "" : command.error().message));
  return *command;
}

std::string refusal(const std::vector<const char*>& arguments) {
  auto command = parse(arguments);
  return command ? "accepted" : command.error().message;
}

// A run of three replicas of which the last takes three times as long.
void write_run(const test::scratch_folder& folder) {
  std::ofstream{folder / "config.toml"}
    << "replicas = 3\naggregate = 3\npolicy = \"latest_token\"\nseed = 4\n";
  auto file = ledger_file::create(folder / "ledger.csv");
  REQUIRE(file);
  auto times = [](uint32_t replica, uint64_t) { return replica == 2 ? job_time{3s} : 1s; };
  auto report
    = simulate({.sync = {3, 3, sync_policy::latest_token},
                .steps = 40,
                .compute = times,
                .on_step = [&](const step_record& step) { REQUIRE(file->append(step)); }});
  REQUIRE_FALSE(report.job.failure);
  REQUIRE(file->flush());
}

// A run that waited for 6 of 8 replicas, and told the others to stop.
void write_cut_run(const test::scratch_folder& folder, const std::string& compute, uint64_t seed) {
  std::ofstream{folder / "config.toml"}
    << "replicas = 8\naggregate = 6\npolicy = \"cancel\"\nseed = " << seed << "\n";
  auto file = ledger_file::create(folder / "ledger.csv");
  REQUIRE(file);
  auto report
    = simulate({.sync = {6, 8, sync_policy::cancel},
                .steps = 200,
                .compute = distribution::parse(compute)->times(seed),
                .seed = seed,
                .on_step = [&](const step_record& step) { REQUIRE(file->append(step)); }});
  REQUIRE_FALSE(report.job.failure);
  REQUIRE(file->flush());
}

} // namespace

TEST_SUITE("tools/sim/replay") {
  TEST_CASE("takes a run and what to change") {
    auto command = parsed({"runs/a", "--aggregate", "3", "--replicas=5", "--repair", "7,2",
                           "--policy", "cancel", "--json", "-"});
    CHECK(command.run_dir == "runs/a");
    CHECK(command.aggregate == 3);
    CHECK(command.replicas == 5);
    CHECK(command.repaired == std::vector<uint32_t>{7, 2});
    CHECK(parsed({"runs/a", "--repair", "3, 7"}).repaired == std::vector<uint32_t>{3, 7});
    CHECK(command.policy == sync_policy::cancel);
    CHECK(command.json == "-");
    CHECK_FALSE(command.is_none());
    CHECK(parsed({"runs/a"}).is_none());
    CHECK(parsed({"--help"}).answer.find("--repair") != std::string::npos);
  }

  TEST_CASE("names what is wrong with a command line") {
    CHECK(refusal({}) == "which run? Give its folder: troupe sim replay runs/NAME");
    CHECK(refusal({"a", "b"}).find("unexpected argument 'b'") == 0);
    CHECK(refusal({"a", "--repiar", "7"})
          == "unknown option '--repiar'; the nearest known one is '--repair'");
    CHECK(refusal({"a", "--repair", "x"})
          == "--repair takes indices of replicas, such as 7 or 3,7; 'x' is none");
    CHECK(refusal({"a", "--aggregate", "0"})
          == "--aggregate must be a whole number from 1 to 1,000,000, not '0'");
    CHECK(refusal({"a", "--policy", "best"}).find("--policy: ") == 0);
  }

  TEST_CASE("says what repairing the slow replica would save") {
    test::scratch_folder folder;
    write_run(folder);
    auto run = read_run_folder(folder.path().string());
    REQUIRE_MESSAGE(run, (run ? "" : run.error().message));
    CHECK(run->seed == 4);
    auto command = parsed({folder.path().c_str(), "--repair", "2"});
    auto report = replay(*run, command);
    CHECK(report.error.mean_step == 0);
    CHECK(report.error.p90 == 0);
    REQUIRE(report.prediction);
    CHECK(report.prediction->mean == doctest::Approx(1));
    CHECK(report.prediction->low == doctest::Approx(1)); // nothing varies
    CHECK(report.difference_of_halves == 0);
    auto text = replay_text(command, *run, report);
    CHECK(text.find("off by") == std::string::npos);
    CHECK(text.find("takes 1.000 to 1.000 s a step") != std::string::npos);
    CHECK(text.find("with       --repair 2: 3 replicas") != std::string::npos);
    CHECK(text.find("so         a step takes 66.7 % less [66.7 % to 66.7 %]") != std::string::npos);
    CHECK(replay_json(command, report).find("\"repaired\": [") != std::string::npos);
  }

  TEST_CASE("predicts within its interval what a run that cut its stragglers would have taken") {
    // A step waits for 6 of 8 replicas, then for all. The longest of 8 takes 1 + 1/2 + ... + 1/8 if
    // times are exponential; the other mean is that of 400,000 draws of eight.
    const std::pair<std::string, double> truths[]
      = {{"exponential(1)", 2.71786}, {"lognormal(1, 0.5)", 2.1384}};
    for (const auto& [expression, truth] : truths) {
      int held = 0;
      for (uint64_t seed = 1; seed <= 10; ++seed) {
        test::scratch_folder folder;
        write_cut_run(folder, expression, seed);
        auto run = read_run_folder(folder.path().string());
        REQUIRE(run);
        auto report = replay(*run, parsed({"x", "--aggregate", "8"}));
        REQUIRE(report.prediction);
        held += report.prediction->low < truth && truth < report.prediction->high ? 1 : 0;
        CHECK(report.cut.cut == 400);
        CHECK(report.at_least.value_or(0) < report.prediction->mean);
        CHECK(report.prediction->high / report.prediction->low < 1.9); // it says something
        CHECK(report.prediction->mean == doctest::Approx(truth).epsilon(0.15));
      }
      CHECK(held >= 9);
    }
  }

  TEST_CASE("a replica that was always cut makes a prediction a lower bound, and is named") {
    test::scratch_folder folder;
    write_cut_run(folder, "lognormal(1, 0.1) slow={2}*3", 1);
    auto run = read_run_folder(folder.path().string());
    REQUIRE(run);
    auto command = parsed({"x", "--aggregate", "8"});
    auto report = replay(*run, command);
    CHECK(report.cut.unknown == std::vector<uint32_t>{2});
    CHECK(report.is_lower_bound);
    CHECK_FALSE(report.prediction);
    CHECK(replay_text(command, *run, report).find("a step takes at least this long")
          != std::string::npos);
    CHECK_FALSE(replay(*run, parsed({"x", "--aggregate", "7"})).is_lower_bound);
    auto repaired = replay(*run, parsed({"x", "--aggregate", "8", "--repair", "2"}));
    CHECK_FALSE(repaired.is_lower_bound);
    CHECK(repaired.cut.gradients == 1400);
    CHECK(replay_text(command, *run, report).find("longer than any that replicas like theirs")
          != std::string::npos);
    CHECK(replay_text(command, *run, report).find("replica 2 was hardly ever completed")
          != std::string::npos);
  }

  TEST_CASE("replicas that a replay leaves out make its prediction no lower bound") {
    test::scratch_folder folder;
    write_cut_run(folder, "lognormal(1, 0.1) slow={7}*3", 1);
    auto run = read_run_folder(folder.path().string());
    REQUIRE(run);
    CHECK(replay(*run, parsed({"x", "--aggregate", "8"})).is_lower_bound);
    auto fewer = replay(*run, parsed({"x", "--replicas", "7", "--aggregate", "7"}));
    CHECK(fewer.cut.unknown.empty());
    CHECK(fewer.cut.gradients == 1400); // of 7 replicas
    CHECK(fewer.cut.cut < 210);         // most were of replica 7
    CHECK_FALSE(fewer.is_lower_bound);
  }

  TEST_CASE("a change that no run can make is refused") {
    test::scratch_folder folder;
    write_run(folder);
    auto run = read_run_folder(folder.path().string());
    REQUIRE(run);
    CHECK_THROWS_AS(replay(*run, parsed({"x", "--aggregate", "4"})), failure);
    CHECK_THROWS_AS(replay(*run, parsed({"x", "--repair", "3"})), failure);
  }

  TEST_CASE("another policy leaves the slack of the recorded one behind") {
    test::scratch_folder folder;
    write_run(folder);
    std::ofstream{folder / "config.toml"}
      << "replicas = 3\naggregate = 1\npolicy = \"ssp\"\nslack = 2\n";
    auto run = read_run_folder(folder.path().string());
    REQUIRE_MESSAGE(run, (run ? "" : run.error().message));
    CHECK(run->sync.slack == 2);
    auto report = replay(*run, parsed({"x", "--policy", "cancel", "--aggregate", "2"}));
    CHECK(report.changed_sync.slack == 0);
    CHECK(replay(*run, parsed({"x", "--repair", "2"})).changed_sync.slack == 2);
  }

  TEST_CASE("a run whose gradients decided on backups cannot be replayed without them") {
    test::scratch_folder folder;
    write_run(folder);
    std::ofstream{folder / "config.toml"}
      << "replicas = 3\naggregate = 3\npolicy = \"latest_token\"\nbackups = \"dynamic\"\n";
    auto refused = read_run_folder(folder.path().string());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::failed_precondition);
    CHECK(refused.error().message.find("chose its number of backups anew") != std::string::npos);
  }

  TEST_CASE("a ledger of fewer replicas than a step needs cannot be replayed, and says so") {
    test::scratch_folder folder;
    std::ofstream{folder / "config.toml"}
      << "replicas = 3\naggregate = 3\npolicy = \"latest_token\"\n";
    std::ofstream{folder / "ledger.csv"} << ledger_file::header
                                         << "1,0,accepted,0,0,1,1,0,,,0,2,32\n";
    auto run = read_run_folder(folder.path().string());
    REQUIRE(run);
    try {
      static_cast<void>(replay(*run, parsed({folder.path().c_str()})));
      FAIL("it was replayed");
    } catch (const failure& refused) {
      CHECK(refused.reason().code == errc::stalled);
      CHECK(refused.reason().message.find("the ledger does not say enough to replay a single step")
            != std::string::npos);
    }
  }

  TEST_CASE("a folder that is no run is named") {
    test::scratch_folder folder;
    auto refused = read_run_folder(folder.path().string());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("not the folder of a run: ") == 0);
    std::ofstream{folder / "config.toml"} << "replicas = 2\naggregate = 2\n";
    refused = read_run_folder(folder.path().string());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("ledger.csv") != std::string::npos);
    std::ofstream{folder / "ledger.csv"} << ledger_file::header
                                         << "1,5,accepted,0,0,1,1,0,,,0,2,32\n";
    refused = read_run_folder(folder.path().string());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("tells of replica 5, but the run had 2")
          != std::string::npos);
  }
}

} // namespace sim_replay_test
