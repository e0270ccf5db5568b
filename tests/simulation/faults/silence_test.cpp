// SPDX-License-Identifier: Apache-2.0
// Goal: a node that is frozen or cut off is given up after the silence that a link allows, and what
// is shorter changes nothing. Method: the watch alone, and whole jobs in virtual time with one
// fault each.
#include "simulation/scenario.hpp"
#include "tests/doctest.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace silence_test {

using namespace std::chrono_literals;
using namespace troupe;

namespace {

scenario job(uint32_t needed, uint32_t replicas, uint64_t steps = 20) {
  return {.sync = {needed, replicas, sync_policy::latest_token}, .steps = steps, .deadline = 1000s};
}

fault freeze(const char* whom, job_time at, job_time lasts) {
  return {.kind = fault_kind::freeze, .at = at, .lasts = lasts, .who = {whom}};
}

fault cut_off(const char* whom, job_time at, job_time lasts) {
  return {.kind = fault_kind::partition, .at = at, .lasts = lasts, .who = {whom}};
}

/// Runs the scenario. @returns Each kind of fault event with its first time.
std::map<std::string, job_time> play(scenario what, scenario_report& report) {
  std::map<std::string, job_time> events;
  what.on_fault = [&](const fault_event& event) { events.emplace(event.what, event.time); };
  report = simulate(what);
  return events;
}

uint64_t given_up(const scenario_report& report) {
  auto found = report.probes.find("given up node");
  return found == report.probes.end() ? 0 : found->second;
}

} // namespace

TEST_SUITE("simulation/faults/silence") {
  TEST_CASE("silence lasts from the tick in which something was heard for ten more") {
    silence_watch watch{2500ms};
    CHECK(watch.look({1, 0}, true, 3500ms) == 6250ms);
    CHECK_FALSE(watch.look({1, 0}, true, 5s)); // is silent already
    CHECK(watch.look({2, 0}, true, 3749ms) == 6250ms);
    CHECK(watch.take_given_up(6249ms).empty());
    CHECK(watch.take_given_up(6250ms).size() == 2);
    CHECK(watch.take_given_up(7s).empty());
  }

  TEST_CASE("a node that is heard again, or has ended, is not given up") {
    silence_watch watch{2500ms};
    CHECK(watch.look({1, 0}, true, 1s));
    CHECK(watch.look({2, 0}, true, 1s));
    CHECK_FALSE(watch.look({1, 0}, false, 3s));
    watch.forget(2);
    CHECK(watch.take_given_up(100s).empty());
    CHECK(watch.look({1, 0}, true, 100s) == 102'750ms);
  }

  TEST_CASE("a clock that runs twice as fast is patient for half as long") {
    silence_watch watch{2500ms};
    CHECK(watch.look({1, 0}, true, 1s, 2) == 2375ms);
  }

  TEST_CASE("the slowest clock waits for the longest timeout") {
    silence_watch watch{1'000'000'000s};
    CHECK(watch.look({1, 0}, true, 1s, 0.001) > 1'000'000'000s);
  }

  TEST_CASE("without a timeout no node is given up") {
    silence_watch watch{0s};
    CHECK(watch.is_off());
    CHECK_FALSE(watch.look({1, 0}, true, 1s));
  }

  TEST_CASE("a replica that freezes is lost, with the reason, and has a new life when it is back") {
    auto what = job(3, 4);
    what.faults.faults = {freeze("replica 1", 3500ms, 8s)};
    scenario_report report;
    auto events = play(what, report);
    CHECK_FALSE(report.job.failure);
    CHECK(events.at("given up replica 1") == 6250ms);
    CHECK(events.at("restart replica 1") == 11'500ms);
    CHECK(report.mean_step_seconds() == 1);
    REQUIRE(report.job.lost.size() == 1);
    CHECK(report.job.lost[0].reason.message
          == "node 'replica 1' is gone: nothing was heard of it for 2.5 s");
  }

  TEST_CASE("where it is needed it is waited for, and its gradient is computed anew") {
    auto what = job(4, 4, 6);
    what.faults.faults = {freeze("replica 1", 3500ms, 8s)};
    scenario_report report;
    play(what, report);
    CHECK_FALSE(report.job.failure);
    CHECK(report.step_times[3] >= 9500ms); // it is back after 8.5 s; the chief's watch looks then
    CHECK(report.step_times[3] <= 10s);
    CHECK(report.step_times[4] == 1s);
  }

  TEST_CASE("one that freezes for good is lost for good") {
    auto what = job(4, 4);
    what.faults.faults = {freeze("replica 1", 3500ms, 0s)};
    auto report = simulate(what);
    REQUIRE(report.job.failure);
    CHECK(report.job.failure->message.ends_with(
      "lost replica 1: node 'replica 1' is gone: nothing was heard of it for 2.5 s"));
  }

  TEST_CASE("one that stays down where it is given up is waited for by no later attempt") {
    auto what = job(3, 4);
    what.faults.rates = {.return_mean = 1s, .permanent = 1};
    what.faults.faults = {freeze("replica 1", 3500ms, 8s),
                          {.kind = fault_kind::crash, .at = 15s, .lasts = 1s, .who = {"chief"}}};
    scenario_report report;
    auto events = play(what, report);
    CHECK_FALSE(report.job.failure);
    CHECK(events.at("given up replica 1") == 6250ms);
    CHECK_FALSE(events.contains("restart replica 1"));
    CHECK(report.restarts == 1);
    CHECK(std::ranges::count(report.step_times, 1s) == std::ssize(report.step_times));
  }

  TEST_CASE("a silence no longer than the timeout changes nothing but times") {
    for (const auto& fault :
         {cut_off("replica 1", 3500ms, 2499ms), freeze("replica 1", 3500ms, 2499ms),
          cut_off("ps 0", 3500ms, 2499ms), cut_off("chief", 3500ms, 2499ms)}) {
      auto impatient = job(4, 4);
      impatient.network = network_options{};
      impatient.faults.faults = {fault};
      auto endless = impatient;
      endless.network->silence_timeout = 0s;
      auto report = simulate(impatient);
      CHECK_FALSE(report.job.failure);
      CHECK(given_up(report) == 0);
      CHECK(report.log_hash == simulate(endless).log_hash);
    }
  }

  TEST_CASE("a node that is cut off in one direction is lost, too, and none of its gradients "
            "counts twice") {
    for (auto one_way : {false, true}) {
      auto what = job(3, 4);
      what.faults.faults = {cut_off("replica 1", 2500ms, 10s)};
      what.faults.faults[0].one_way = one_way;
      std::map<std::pair<uint32_t, uint64_t>, int> counted;
      what.on_step = [&](const step_record& step) {
        for (const auto& one : step.accepted)
          ++counted[{one.replica, one.local_step}];
      };
      scenario_report report;
      auto events = play(what, report);
      CHECK_FALSE(report.job.failure);
      CHECK(events.at("given up replica 1") == 5250ms);
      CHECK(events.at("restart replica 1") == 12'500ms);
      CHECK(report.mean_step_seconds() == 1);
      CHECK(std::ranges::all_of(counted, [](const auto& one) { return one.second == 1; }));
    }
  }

  TEST_CASE(
    "both sides of a cut name the node that they have lost, and the job waits for its return") {
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel}) {
      auto what = job(2, 2);
      what.sync.policy = policy;
      what.faults.faults = {{.at = 10'500ms, .lasts = 10s, .who = {"replica 0"}},
                            cut_off("replica 1", 12'500ms, 4s)};
      scenario_report report;
      auto events = play(what, report);
      CHECK_FALSE(report.job.failure);
      CHECK(events.at("given up replica 1") == 15'250ms);
      REQUIRE(report.job.lost.size() == 2);
      CHECK(report.job.lost[1].replica == 1);
      CHECK(report.job.lost[1].reason.message
            == "node 'replica 1' is gone: nothing was heard of it for 2.5 s");
    }
  }

  TEST_CASE("cuts that overlap stall no job") {
    for (uint64_t seed = 0; seed < 15; ++seed) {
      scenario what{.sync = {6, 6, sync_policy::latest_token},
                    .steps = 200,
                    .compute = exponential_time(1s, seed),
                    .seed = seed};
      what.network = network_options{};
      what.network->latency = [](const passage&) { return 20ms; };
      what.faults.rates.swizzle_mean = 150s;
      what.faults.rates.swizzle_lasts = 10s;
      auto report = simulate(what);
      CHECK_MESSAGE(!report.stalled, "seed ", seed, ": ",
                    report.job.failure.value_or(error{}).message);
    }
  }

  TEST_CASE("replicas that are lost between the parts of their gradients stall no job") {
    for (auto policy : {sync_policy::ssp, sync_policy::k_batch_async}) {
      auto what = job(1, 2, 40);
      what.sync.policy = policy;
      if (policy == sync_policy::ssp) what.sync.slack = 3;
      what.network = network_options{.owners = 2};
      what.network->silence_timeout = 0s;
      what.network->latency = [](const passage&) { return 10ms; };
      for (uint32_t replica = 0; replica < 2; ++replica) {
        auto name = fmt::format("replica {}", replica);
        auto later = replica * 5s;
        what.faults.faults.push_back({.kind = fault_kind::partition,
                                      .at = 3500ms + later,
                                      .lasts = 1500ms,
                                      .who = {name},
                                      .other = {"ps 1"},
                                      .one_way = true});
        what.faults.faults.push_back({.at = 4700ms + later, .lasts = 500ms, .who = {name}});
      }
      auto report = simulate(what);
      CHECK_FALSE(report.stalled);
      CHECK_FALSE(report.job.failure);
      CHECK(report.job.step == 40);
    }
  }

  TEST_CASE("when chief and parameter server lose each other the job begins again") {
    auto what = job(4, 4);
    what.snapshot_every = 5;
    what.faults.faults = {cut_off("ps 0", 8500ms, 20s)};
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    CHECK(report.restarts == 1);
    CHECK(report.virtual_time == 8500ms + 20s + 15s);
  }

  TEST_CASE("a parameter server that freezes has a mirror take over") {
    auto what = job(4, 4);
    what.network = network_options{.owners = 2};
    what.replicate_owners = 2;
    what.faults.faults = {freeze("ps 0", 8500ms, 20s)};
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    CHECK(report.restarts == 0);
    CHECK(report.probes.count("delivered TookOver") == 1);
  }

  TEST_CASE("clocks that are wrong change no step, but what is waited for by them") {
    auto right = job(4, 5);
    right.compute = exponential_time(1s, 3);
    right.network = network_options{.owners = 2};
    right.network->latency = [](const passage&) { return 10ms; };
    auto wrong = right;
    wrong.faults.faults = {{.kind = fault_kind::skew,
                            .at = 3s,
                            .who = {"replica 1", "replica 2", "ps 0", "ps 1"},
                            .ahead = 5s,
                            .rate = 1.5}};
    auto report = simulate(wrong);
    CHECK_FALSE(report.job.failure);
    auto times = simulate(right).step_times;
    REQUIRE(report.step_times.size() == times.size());
    for (size_t i = 0; i < times.size(); ++i) // clocks count whole nanoseconds
      CHECK(std::chrono::abs(report.step_times[i] - times[i]) < 10ns);
    CHECK(report.probes.at("fault skew") == 1);
    // The chief's own clock is what deadlines are kept by.
    auto late = job(4, 4);
    late.compute = [](uint32_t, uint64_t) { return 8s; };
    late.deadline = 10s;
    late.faults.faults = {{.kind = fault_kind::skew, .at = 1s, .who = {"chief"}, .rate = 1.5}};
    auto ended = simulate(late);
    REQUIRE(ended.job.failure);
    CHECK(ended.job.failure->code == errc::deadline_exceeded);
    late.faults.faults[0].rate = 1.1;
    CHECK_FALSE(simulate(late).job.failure);
  }

  TEST_CASE("a replica that has lost a parameter server, but not the chief, is started again") {
    for (const char* silent : {"replica 1", "ps 0"}) {
      auto what = job(4, 4);
      what.faults.faults = {
        {.kind = fault_kind::skew, .who = {"replica 1", "ps 0"}, .rate = 2},
        {.kind = fault_kind::partition,
         .at = 3500ms,
         .lasts = 2s,
         .who = {silent},
         .one_way = true},
      };
      scenario_report report;
      auto events = play(what, report);
      CHECK_FALSE(report.job.failure);
      CHECK(report.restarts == 0);
      CHECK(events.at("given up replica 1") == 4875ms);
      CHECK(events.at("restart replica 1") == 5500ms);
      REQUIRE(report.job.lost.size() == 1);
      CHECK(report.job.lost[0].replica == 1);
    }
  }

  TEST_CASE("a fast clock asks again sooner, and gives up sooner") {
    auto what = job(3, 4);
    what.faults.faults = {
      {.kind = fault_kind::skew, .who = {"chief", "ps 0"}, .rate = 2},
      freeze("replica 1", 3500ms, 20s),
    };
    scenario_report report;
    auto events = play(what, report);
    CHECK(events.at("given up replica 1") == 4875ms);
  }
}

} // namespace silence_test
