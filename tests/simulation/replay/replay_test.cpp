// SPDX-License-Identifier: Apache-2.0
// Goal: the replay of a recorded run makes its steps again, and what is changed has its effect.
// Method: simulated runs as ledgers, read back and replayed; ledgers written by hand; and, with
// --no-skip, a run of the threads world; its fidelity is printed.
#include "actors/recording/ledger_file.hpp"
#include "messages/errors/failure.hpp"
#include "simulation/ledger_hash.hpp"
#include "simulation/replay/replay.hpp"
#include "strategies/jobs/training.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"

#include <algorithm>
#include <vector>

namespace replay_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

/// Traces of a run: its ledger as text, and its step times.
struct left_behind {
  std::string ledger;
  std::vector<job_time> step_times;
};

left_behind record(scenario what) {
  test::scratch_folder folder;
  auto file = ledger_file::create(folder / "ledger.csv");
  REQUIRE(file);
  what.on_step = [&](const step_record& step) { REQUIRE(file->append(step)); };
  auto report = simulate(what);
  REQUIRE(file->flush());
  return {test::content(folder / "ledger.csv"), report.step_times};
}

recorded_run read(const std::string& ledger) {
  auto run = read_ledger(ledger, "ledger.csv");
  REQUIRE_MESSAGE(run, (run ? "" : run.error().message));
  return *run;
}

std::vector<job_time> replay(const recorded_run& run, sync_options sync,
                             std::vector<uint32_t> repaired = {}) {
  return simulate(replay_of(run, {.sync = std::move(sync), .repaired = std::move(repaired)}))
    .step_times;
}

std::string refusal(std::string_view lines) {
  auto run = read_ledger(std::string{ledger_file::header}.append(lines), "l.csv");
  return run ? "accepted" : run.error().message;
}

double mean_seconds(const std::vector<job_time>& times) {
  double sum = 0;
  for (auto time : times)
    sum += std::chrono::duration<double>(time).count();
  return sum / static_cast<double>(times.size());
}

constexpr sync_policy policies[]
  = {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel};

} // namespace

TEST_SUITE("simulation/replay") {
  TEST_CASE("the replay of an unchanged run is the run, to the nanosecond") {
    for (auto policy : policies) {
      sync_options sync{6, 8, policy};
      auto run = record({.sync = sync, .steps = 200, .compute = exponential_time(1s, 5)});
      CHECK(replay(read(run.ledger), sync) == run.step_times);
    }
  }

  TEST_CASE("asynchronous runs are replayed as well") {
    for (auto policy : {sync_policy::k_async, sync_policy::k_batch_async, sync_policy::ssp}) {
      CAPTURE(to_string(policy));
      sync_options sync{policy == sync_policy::ssp ? 1U : 2U, 8, policy};
      if (policy == sync_policy::ssp) sync.slack = 3;
      auto run = record({.sync = sync, .steps = 200, .compute = exponential_time(1s, 5)});
      CHECK(replay(read(run.ledger), sync) == run.step_times);
    }
  }

  TEST_CASE("updates take as long as they took") {
    for (auto policy : policies) {
      CAPTURE(to_string(policy));
      sync_options sync{6, 8, policy};
      auto run = record({.sync = sync,
                         .steps = 200,
                         .compute = exponential_time(1s, 5),
                         .update = [](uint64_t step) { return job_time{50ms} + step * 100us; }});
      auto recorded = read(run.ledger);
      REQUIRE(recorded.updates.size() == 200);
      CHECK(recorded.updates[9] == 51ms);
      CHECK(replay(recorded, sync) == run.step_times);
    }
  }

  TEST_CASE("an update delays the replicas that wait for it, and no others") {
    scenario slow_updates{.sync = {4, 4, sync_policy::latest_token},
                          .steps = 10,
                          .update = [](uint64_t) { return job_time{100ms}; }};
    auto report = simulate(slow_updates);
    for (auto time : report.step_times)
      CHECK(time == 1100ms);
    CHECK(report.virtual_time == 11s);
  }

  TEST_CASE("a repaired replica no longer holds the others up") {
    auto times = [](uint32_t replica, uint64_t) { return replica == 2 ? job_time{3s} : 1s; };
    auto run = record({.sync = {4, 4, sync_policy::latest_token}, .steps = 20, .compute = times});
    auto recorded = read(run.ledger);
    CHECK(typical_replica(recorded, {}) != 2);
    CHECK(mean_seconds(replay(recorded, {4, 4, sync_policy::latest_token})) == 3);
    CHECK(mean_seconds(replay(recorded, {4, 4, sync_policy::latest_token}, {2})) == 1);
  }

  TEST_CASE("another number of gradients, and a replica more, are what they would have been") {
    auto times = exponential_time(1s, 9);
    auto run = record({.sync = {8, 8, sync_policy::latest_token}, .steps = 400, .compute = times});
    auto recorded = read(run.ledger);
    // Replicas of a run that waits for all compute as often as it has steps: their draws suffice.
    auto truth = simulate({.sync = {6, 8, sync_policy::cancel}, .steps = 400, .compute = times});
    CHECK(replay(recorded, {6, 8, sync_policy::cancel}) == truth.step_times);
    auto one_more = replay(recorded, {8, 9, sync_policy::cancel});
    CHECK(mean_seconds(one_more) < 0.85 * mean_seconds(run.step_times)); // 1.93 / 2.72 in theory
    CHECK(mean_seconds(one_more) > 0.60 * mean_seconds(run.step_times));
  }

  TEST_CASE("a cancelled gradient takes at least as long as it had") {
    sync_options sync{3, 4, sync_policy::cancel};
    auto run = record({.sync = sync, .steps = 100, .compute = exponential_time(1s, 3)});
    auto recorded = read(run.ledger);
    std::vector<recorded_time> all;
    for (const auto& of_replica : recorded.times)
      all.insert(all.end(), of_replica.begin(), of_replica.end());
    CHECK(all.size() == 400);
    CHECK(std::ranges::count(all, true, &recorded_time::at_least) == 100);
    auto replayed = replay_of(recorded, {.sync = sync});
    for (uint32_t replica = 0; replica < 4; ++replica)
      for (size_t i = 0; i < recorded.times[replica].size(); ++i)
        CHECK(replayed.compute(replica, i) >= recorded.times[replica][i].time);
  }

  TEST_CASE("a replica that never came never comes") {
    scenario what{.sync = {3, 4, sync_policy::latest_token}, .steps = 20};
    what.dead_replicas = {3};
    auto run = record(what);
    auto recorded = read(run.ledger);
    CHECK(recorded.times.size() == 3);
    recorded.set_replica_count(4);
    CHECK(replay_of(recorded, {.sync = what.sync}).dead_replicas == std::vector<uint32_t>{3});
    CHECK(replay_of(recorded, {.sync = what.sync, .repaired = {3}}).dead_replicas.empty());
    CHECK(replay(recorded, what.sync) == run.step_times);
  }

  TEST_CASE("a replica that cannot be repaired is named") {
    auto recorded = read(record({.sync = {2, 2}, .steps = 5}).ledger);
    CHECK_THROWS_WITH_AS(replay_of(recorded, {.sync = {2, 2}, .repaired = {2}}),
                         "replica 2 cannot be repaired: there are 2, counted from 0", failure);
    CHECK_THROWS_AS(replay_of(recorded, {.sync = {2, 2}, .repaired = {0, 1}}), failure);
  }

  TEST_CASE("reads ledgers, and answers what is none by its line") {
    auto whole = read(std::string{ledger_file::header}
                      + "1,0,accepted,0,0,1.5,1.25,0,1,0.25,0.5,2,32\n"
                        "1,1,accepted,0,0,1.75,1.5,0,,,0.25,2,32\n"
                        "2,0,accepted,1,0,3,1,0.5,,,0.125,2,32\n"
                        "2,1,cancelled,1,0,3.125,0,0,,,,,0\n"
                        "3,0,accep");
    CHECK(whole.step_count() == 2);
    CHECK(whole.step_ends == std::vector<job_time>{0s, 2s, 3125ms});
    CHECK(whole.updates == std::vector<job_time>{250ms, 125ms});
    CHECK(whole.times[0][1].time == 1s);
    CHECK(whole.times[1][1].at_least);
    CHECK(whole.step_seconds() == std::vector<double>{2, 1.125});
    std::string older{ledger_file::header};
    older.replace(older.find("staleness"), std::string_view{"staleness"}.size(), "lag");
    CHECK(read_ledger(older, "l.csv").error().message
          == "l.csv:1: not the ledger of a run of this version: its first line is not the one that "
             "troupe train writes");
    CHECK(refusal("")
          == "l.csv holds no step: the run has made none, or --ledger-bytes had no room for one");
    CHECK(refusal("1,0,stale,0,0,1,1,0,,,,2,32\n") == "l.csv: no gradient was accepted");
    CHECK(refusal("1,0,fresh,0,0,1,1,0,,,,2,32\n") == "l.csv:2: not a line of a ledger");
    CHECK(refusal("1,0,accepted,0,0,x,1,0,,,0,2,32\n") == "l.csv:2: not a line of a ledger");
    CHECK(refusal("1,0,accepted,0,0,1e30,1,0,,,0,2,32\n") == "l.csv:2: not a line of a ledger");
    // Added up, these would be more nanoseconds than fit.
    CHECK(refusal("1,0,accepted,0,0,8e9,1,0,,,8e9,2,32\n") == "l.csv:2: not a line of a ledger");
    CHECK(refusal("1,0,accepted,1,0,1,1,0,,,0,2,32\n") == "l.csv:2: not a line of a ledger");
    CHECK(refusal("1,9999999,accepted,0,0,1,1,0,,,0,2,32\n") == "l.csv:2: not a line of a ledger");
    CHECK(refusal("1,0,accepted\n") == "l.csv:2: not a line of a ledger");
    CHECK(refusal("1,0,accepted,0,0,1,1,0,,,0,2,32\n3,0,accepted,0,0,1,1,0,,,0,2,32\n")
          == "l.csv: step 2 is missing");
    CHECK(refusal("1,0,accepted,0,0,-1,1,0,,,0,2,32\n") == "l.csv:2: not a line of a ledger");
    CHECK(refusal("1,0,accepted,0,0,3,1,0,,,0,2,32\n2,0,accepted,1,0,2,1,0,,,0,2,32\n")
          == "l.csv:3: step 2 ends before the step before it");
  }

  TEST_CASE("steps that no whole gradient came to are taken to be as long as their neighbours") {
    auto run = read(std::string{ledger_file::header}
                    + "1,0,accepted,0,0,1,1,0,,,1,2,32\n"
                      "2,1,stale,0,0,1.5,1.5,0,,,,2,32\n"
                      "4,0,accepted,1,0,7.5,1,0,,,0.5,2,32\n"
                      "4,1,accepted,1,0,7.75,1,0,,,0.25,2,32\n");
    CHECK(run.step_ends == std::vector<job_time>{0s, 2s, 4s, 6s, 8s});
    CHECK(run.updates == std::vector<job_time>{1s, 1s, 1s, 250ms});
    CHECK(refusal("1,0,accepted,0,0,1,1,0,,,0,2,32\n4,1,accepted,0,0,1,1,0,,,0,2,32\n")
          == "l.csv: step 2 is missing");
  }

  TEST_CASE("errors are shares of what was recorded") {
    const double recorded[] = {1, 1, 2, 4};
    const double replayed[] = {1, 1.1, 2, 3};
    auto error = error_of(recorded, replayed);
    CHECK(error.mean_step == doctest::Approx(7.1 / 8 - 1));
    CHECK(error.median == 0);
    CHECK(error.p90 == doctest::Approx(0.25));
  }

  TEST_CASE("a step that took no time, in the run and in its replay, is no error") {
    const double steps[] = {0, 0, 0, 1};
    CHECK(error_of(steps, steps).median == 0);
    CHECK(error_of(steps, steps).p90 == 0);
  }
}

} // namespace replay_test
