// SPDX-License-Identifier: Apache-2.0
// Goal: what goes wrong shows as it should, and the job does with it what it should. Method: whole
// jobs in virtual time, one fault each, with computing times of 1 s where steps are counted.
#include "messages/errors/failure.hpp"
#include "messages/mapped.hpp"
#include "messages/training_message.hpp"
#include "simulation/scenario.hpp"
#include "simulation/statistics.hpp"
#include "tests/doctest.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace fault_test {

using namespace std::chrono_literals;
using namespace troupe;

namespace {

scenario job(uint32_t needed, uint32_t replicas, sync_policy policy, uint64_t steps = 12) {
  return {.sync = {needed, replicas, policy}, .steps = steps, .deadline = 1000s};
}

// Nodes wait for messages however long they take.
network_options without_timeout() {
  return {.silence_timeout = 0s};
}

fault_plan plan(fault one) {
  return {.faults = {std::move(one)}};
}

std::vector<double> step_seconds(const scenario_report& report) {
  return mapped(report.step_times,
                [](auto time) { return std::chrono::duration<double>(time).count(); });
}

/// Every gradient that counted, by its replica and iteration: no two of them may be one.
struct counted_gradients {
  explicit counted_gradients(scenario& what) {
    what.on_step = [this](const step_record& step) {
      accepted += step.accepted.size();
      std::set<uint32_t> replicas;
      for (const auto& one : step.accepted)
        if (!replicas.insert(one.replica).second) ++repeated;
      if (replicas.size() < step.needed) ++short_of;
    };
  }

  uint64_t accepted = 0;
  uint64_t short_of = 0; ///< Steps with fewer replicas than they needed gradients.
  uint64_t repeated = 0; ///< A second one of a replica to the same step.
};

uint64_t probe(const scenario_report& report, const std::string& name) {
  auto found = report.probes.find(name);
  return found == report.probes.end() ? 0 : found->second;
}

} // namespace

TEST_SUITE("simulation/faults") {
  TEST_CASE("a replica that crashes for good costs one backup") {
    auto what = job(3, 4, sync_policy::latest_token);
    what.faults = plan({.at = 3500ms, .who = {"replica 1"}});
    std::chrono::duration<double> live{0};
    what.on_step = [&](const step_record& step) {
      live += std::chrono::duration<double>{step.ended - step.began} * step.live;
    };
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    CHECK(report.live_time.count() == doctest::Approx(live.count()));
    CHECK(report.live_time < 4 * report.virtual_time); // a crashed replica has none
    CHECK(report.live_time > 3 * report.virtual_time);
    REQUIRE(report.job.lost.size() == 1);
    CHECK(report.job.lost[0].replica == 1);
    CHECK(report.job.lost[0].reason.message == "node 'replica 1' is gone");
    CHECK(report.mean_step_seconds() == 1);
    CHECK(probe(report, "fault crash") == 1);
  }

  TEST_CASE("with too few replicas left the job ends, and names the lost ones") {
    auto what = job(4, 4, sync_policy::latest_token);
    what.faults = plan({.at = 3500ms, .who = {"replica 1"}});
    auto report = simulate(what);
    REQUIRE(report.job.failure);
    CHECK(report.job.failure->message
          == "step 4 needs 4 gradients, but 3 of 4 replicas are left; lost replica 1: node "
             "'replica 1' is gone");
  }

  TEST_CASE("a process that is late for a job that begins anew is started once") {
    auto what = job(2, 3, sync_policy::latest_token);
    what.network = network_options{.meets_at_roll_call = true};
    what.late_starts[3] = 10s; // replica 1: the others wait for it at the roll call
    what.faults = plan({.at = 2s, .lasts = 1s, .who = {"replica 2"}});
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    REQUIRE(report.restarts == 1);
    for (node_index node : {1, 2, 3, 4})
      CHECK_MESSAGE(std::ranges::count_if(report.processes,
                                          [node](const process_life& life) {
                                            return life.attempt == 1 && life.node == node;
                                          })
                      == 1,
                    "node ", node);
  }

  TEST_CASE("a job that may begin with fewer replicas goes on with more as they come") {
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel, sync_policy::k_async}) {
      auto what = job(2, 4, policy, 40);
      what.network = network_options{.meets_at_roll_call = true};
      what.late_starts = {{4, 12s}, {5, 15s}}; // replicas 2 and 3
      what.min_replicas = 2;
      what.compute = [](uint32_t replica, uint64_t) { return replica < 2 ? 1s : 500ms; };
      std::map<uint32_t, job_time> joined; // replicas, and when their first gradients counted
      std::map<uint64_t, uint32_t> live;   // replicas by step
      counted_gradients counted{what};
      what.on_step = [&, count = what.on_step](const step_record& step) {
        count(step);
        live[step.step] = step.live;
        for (const auto& one : step.accepted)
          joined.try_emplace(one.replica, step.ended);
      };
      auto report = simulate(what);
      CHECK_FALSE(report.job.failure);
      CHECK(counted.repeated == 0);
      CHECK(live[1] == 2);
      CHECK(live[40] == 4);
      CHECK(joined[0] < 10s); // after a last call of 5 s
      CHECK(joined[2] > 12s);
      CHECK(joined[2] < 16s);
      CHECK(joined[3] > 15s);
      CHECK(joined[3] < 19s);
    }
  }

  TEST_CASE("a job that has fewer replicas than it may is over, unless one comes back in time") {
    for (auto absence : {10s, 0s}) {
      auto what = job(2, 4, sync_policy::latest_token, 30);
      what.network = network_options{.meets_at_roll_call = true};
      what.min_replicas = 4;
      what.faults = plan({.at = 5500ms, .lasts = absence, .who = {"replica 1"}});
      auto report = simulate(what);
      if (absence > 0s) {
        CHECK_FALSE(report.job.failure);
        continue;
      }
      REQUIRE(report.job.failure);
      CHECK(report.job.failure->message
            == "the job needs 4 replicas (min_replicas), but 3 of 4 are left; lost replica 1: node "
               "'replica 1' is gone");
    }
  }

  TEST_CASE("a process that is lost before it was to start is started once, when it is back") {
    auto what = job(1, 2, sync_policy::k_async, 24);
    what.network = network_options{.meets_at_roll_call = true};
    what.late_starts[3] = 10s; // replica 1: by then it has been at work for 7 s
    what.faults = plan({.at = 2s, .lasts = 1s, .who = {"replica 1"}});
    std::vector<uint64_t> gradients(2, 0);
    what.on_step = [&](const step_record& step) { ++gradients[step.accepted.front().replica]; };
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    CHECK(report.virtual_time >= 3s + 12s); // nor is it twice as fast as the other
    CHECK(gradients == std::vector<uint64_t>{12, 12});
    CHECK(std::ranges::count(report.processes, node_index{3}, &process_life::node) == 1);
  }

  TEST_CASE("a replica that never starts does not come with its process, nor after a crash") {
    for (auto meets_at_roll_call : {false, true}) {
      auto what = job(2, 3, sync_policy::latest_token);
      what.network = network_options{.meets_at_roll_call = meets_at_roll_call};
      what.dead_replicas = {2};
      what.faults = plan({.at = 2500ms, .lasts = 1s, .who = {"replica 2"}});
      uint64_t gradients = 0;
      what.on_step = [&](const step_record& step) {
        for (const auto* list : {&step.accepted, &step.stale})
          gradients += std::ranges::count(*list, 2U, &contribution::replica);
      };
      CHECK_FALSE(simulate(what).job.failure);
      CHECK(gradients == 0);
    }
  }

  TEST_CASE("a chief that is lost before all are there begins anew, whatever else goes on") {
    auto what = job(2, 3, sync_policy::latest_token);
    what.network = network_options{.meets_at_roll_call = true};
    what.late_starts[3] = 10s; // replica 1: the chief waits for it
    what.faults = plan({.at = 2s, .lasts = 1s, .who = {"chief"}});
    what.faults.rates = {.crash_mean = 50s, .return_mean = 1s, .down_max = 1}; // without end
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    CHECK(report.restarts >= 1);
    CHECK(report.job.step == what.steps);
  }

  TEST_CASE("the holder of a token that crashes hangs tensorflow without backups") {
    auto what = job(4, 4, sync_policy::tensorflow);
    what.faults = plan({.kind = fault_kind::crash_with_token, .at = 3500ms, .who = {"replica 1"}});
    auto report = simulate(what);
    REQUIRE(report.stalled);
    CHECK(report.stalled->live == 3);
    CHECK(report.stalled->needed == 4);
    CHECK(probe(report, "fault crash_with_token") == 1);
  }

  TEST_CASE("with backups tensorflow absorbs the crash of a token's holder") {
    auto what = job(3, 4, sync_policy::tensorflow);
    what.faults = plan({.kind = fault_kind::crash_with_token, .at = 3500ms, .who = {"replica 1"}});
    CHECK_FALSE(simulate(what).job.failure);
  }

  TEST_CASE("a replica that comes back is waited for, and gives one gradient to a step") {
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel}) {
      auto what = job(4, 4, policy);
      what.faults = plan({.at = 5500ms, .lasts = 10s, .who = {"replica 1"}});
      counted_gradients counted{what};
      auto report = simulate(what);
      CHECK_FALSE(report.job.failure);
      CHECK(counted.repeated == 0);
      CHECK(probe(report, "fault restart") == 1);
      auto longest = step_seconds(report);
      CHECK(*std::max_element(longest.begin(), longest.end()) >= 11);
    }
  }

  TEST_CASE("a replica that crashes after its gradient counted gives no second one to the step") {
    auto what = job(3, 3, sync_policy::latest_token);
    what.compute = [](uint32_t replica, uint64_t) { return replica == 0 ? 10s : 1s; };
    what.faults = plan({.at = 2s, .lasts = 1s, .who = {"replica 1"}});
    counted_gradients counted{what};
    CHECK_FALSE(simulate(what).job.failure);
    CHECK(counted.repeated == 0);
    CHECK(counted.accepted == 3 * 12);
  }

  TEST_CASE("a chief that crashes restarts the job from its snapshot, and a round is wasted") {
    auto what = job(4, 4, sync_policy::tensorflow, 20);
    what.snapshot_every = 5;
    what.faults = plan({.at = 8500ms, .lasts = 30s, .who = {"chief"}});
    std::vector<uint64_t> steps;
    what.on_step = [&](const step_record& step) { steps.push_back(step.step); };
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    CHECK(report.restarts == 1);
    // Steps 6 and 7 are made twice; 1 and 6 are each followed by a round for nothing.
    CHECK(steps[6] == 7);
    CHECK(steps[7] == 6);
    CHECK(step_seconds(report)[8] == 2);
    CHECK(step_seconds(report)[9] == 1);
    CHECK(report.virtual_time == 8500ms + 30s + 15s + 1s);
    CHECK(report.undone_steps == 2);
    CHECK(report.undone_accepted == 2 * 4);
    CHECK(report.down == 30s);
  }

  TEST_CASE("a step that is undone counts as such though the job ends before it is made again") {
    auto what = job(4, 4, sync_policy::latest_token, 20);
    what.snapshot_every = 5;
    what.faults.faults
      = {{.at = 8500ms, .lasts = 2s, .who = {"chief"}}, {.at = 12s + 100ms, .who = {"chief"}}};
    auto report = simulate(what);
    REQUIRE(report.stalled);
    CHECK(report.stalled->step == 7);
    CHECK(report.step_times.size() == 8 + 1);
    CHECK(report.undone_steps == 3);
    CHECK(report.down == 2s);
  }

  TEST_CASE("a chief or an owner that crashes for good ends the job for good") {
    for (const char* whom : {"chief", "ps 0"}) {
      auto what = job(4, 4, sync_policy::latest_token, 20);
      what.snapshot_every = 5;
      what.faults = plan({.at = 8500ms, .who = {whom}});
      auto report = simulate(what);
      CHECK(report.restarts == 0);
      CHECK(report.job.failure);
      REQUIRE(report.stalled);
      CHECK(report.stalled->step == 9);
      CHECK(report.stalled->live == 4);
    }
  }

  TEST_CASE(
    "a job that ends early counts the live replicas: neither dead nor lost ones, once each") {
    auto what = job(4, 5, sync_policy::latest_token, 40);
    what.dead_replicas = {4};
    what.faults.faults
      = {{.at = 3500ms, .lasts = 2s, .who = {"replica 1"}}, {.at = 9500ms, .who = {"replica 1"}}};
    auto report = simulate(what);
    CHECK(report.job.lost.size() == 2);
    REQUIRE(report.stalled);
    CHECK(report.stalled->live == 3);
    CHECK(report.stalled->needed == 4);
    CHECK(report.stalled->tokens == 0);
    what.faults.faults[1].who = {"replica 2"}; // replica 1 is back by then
    CHECK(simulate(what).stalled->live == 3);
  }

  TEST_CASE("an owner that crashes before the first snapshot restarts the job from nothing") {
    auto what = job(2, 2, sync_policy::latest_token, 5);
    what.network = network_options{.owners = 2};
    what.faults = plan({.at = 2500ms, .lasts = 1s, .who = {"ps 1"}});
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    CHECK(report.restarts == 1);
    CHECK(report.step_times.size() == 2 + 5);
    CHECK(report.undone_steps == 2);
    CHECK(report.virtual_time == 3500ms + 5s);
  }

  TEST_CASE("a job that begins again waits for no replica that never came, under any policy") {
    for (auto policy : {sync_policy::ssp, sync_policy::k_async, sync_policy::latest_token}) {
      auto what = job(1, 3, policy, 40);
      what.dead_replicas = {2};
      what.snapshot_every = 1;
      what.faults = plan({.at = 4500ms, .lasts = 2s, .who = {"ps 0"}});
      auto report = simulate(what);
      CHECK_FALSE(report.job.failure);
      CHECK(report.restarts == 1);
    }
  }

  TEST_CASE("a job that begins again waits for replicas that are away, each of them once") {
    auto what = job(1, 2, sync_policy::latest_token);
    what.faults.faults = {{.at = 3500ms, .lasts = 1s, .who = {"ps 0"}},
                          {.at = 3600ms, .lasts = 4s, .who = {"replica 0", "replica 1"}}};
    job_time began{0};
    what.on_step = [&](const step_record& step) {
      if (step.step == 1) began = step.ended - 1s; // the second time is what counts
    };
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    CHECK(report.restarts == 1);
    CHECK(report.job.step == 12);
    CHECK(began == 7600ms); // nothing is computed on a node that is down
    CHECK(report.virtual_time == 7600ms + 12s);
  }

  TEST_CASE("a replica that freezes goes on where it was") {
    auto what = job(2, 2, sync_policy::latest_token, 6);
    what.network = without_timeout();
    what.faults
      = plan({.kind = fault_kind::freeze, .at = 2500ms, .lasts = 7s, .who = {"replica 1"}});
    CHECK(step_seconds(simulate(what)) == std::vector<double>{1, 1, 8, 1, 1, 1});
  }

  TEST_CASE("freezes that overlap hold a replica up until the last is over") {
    auto what = job(2, 2, sync_policy::latest_token, 3);
    what.network = without_timeout();
    what.faults.faults
      = {{.kind = fault_kind::freeze, .at = 1500ms, .lasts = 4s, .who = {"replica 1"}},
         {.kind = fault_kind::freeze, .at = 2500ms, .lasts = 5s, .who = {"replica 1"}}};
    CHECK(step_seconds(simulate(what)) == std::vector<double>{1, 7, 1});
  }

  TEST_CASE("a computation lasts as long as it would, and as its node is frozen meanwhile") {
    auto what = job(1, 1, sync_policy::latest_token, 3);
    what.network = without_timeout();
    what.compute = [](uint32_t, uint64_t) { return job_time{100s}; };
    what.faults.rates = {.freeze_mean = 2s, .thaw_mean = 1s};
    job_time began{0};
    job_time frozen{0};
    what.on_fault = [&](const fault_event& event) {
      if (event.what == "freeze replica 0") began = event.time;
      if (event.what == "thaw replica 0") frozen += event.time - began;
    };
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    CHECK(frozen > 100s);
    CHECK(report.virtual_time == 300s + frozen);
  }

  TEST_CASE(
    "a gradient that is cut off arrives after the cut is healed, stale, and never counts twice") {
    for (auto one_way : {false, true}) {
      auto what = job(3, 4, sync_policy::latest_token, 12);
      what.network = without_timeout();
      what.faults = plan({.kind = fault_kind::partition,
                          .at = 2500ms,
                          .lasts = 4s,
                          .who = {"replica 1"},
                          .one_way = one_way});
      counted_gradients counted{what};
      auto report = simulate(what);
      CHECK_FALSE(report.job.failure);
      CHECK(report.mean_step_seconds() == 1);
      CHECK(report.staleness_counts.at(4) == 1);
      CHECK(probe(report, "held PushGradient") == 1);
      CHECK(counted.repeated == 0);
      CHECK(counted.accepted >= 3 * 12);
    }
  }

  TEST_CASE("a cut between chief and owner is no stall") {
    auto what = job(3, 3, sync_policy::latest_token, 4);
    what.network = without_timeout();
    what.faults = plan({.kind = fault_kind::partition,
                        .at = 1500ms,
                        .lasts = 100s,
                        .who = {"chief"},
                        .other = {"ps 0"}});
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    CHECK(step_seconds(report)[1] == 100.5);
  }

  TEST_CASE("a slow link delays what passes it, and nothing after it is fast again") {
    auto what = job(2, 2, sync_policy::latest_token, 20);
    what.network = network_options{};
    what.network->latency = [](const passage&) { return 10ms; };
    what.faults
      = plan({.kind = fault_kind::slow, .at = 5s, .lasts = 5s, .who = {"replica 1"}, .factor = 10});
    auto times = step_seconds(simulate(what));
    CHECK(times[2] == doctest::Approx(1.06));
    CHECK(*std::max_element(times.begin(), times.end()) == doctest::Approx(1.6));
    CHECK(times.back() == doctest::Approx(1.06));
  }

  TEST_CASE("a fault that ends ends no other one that lasts") {
    auto seconds_with = [](std::vector<fault> faults) {
      auto what = job(2, 2, sync_policy::latest_token, 20);
      what.network = without_timeout();
      what.network->latency = [](const passage&) { return 100ms; };
      what.ask_again_after = 1s;
      what.faults.faults = std::move(faults);
      return simulate(what).virtual_time;
    };
    fault slow{.kind = fault_kind::slow, .at = 1s, .who = {"replica 1"}};
    fault shorter = slow;
    shorter.lasts = 1s;
    shorter.factor = 1;
    CHECK(seconds_with({slow, shorter}) == seconds_with({slow}));
    fault unlucky{.kind = fault_kind::messages, .message = "Token", .probabilities = {.lost = 0.5}};
    auto others = unlucky;
    others.at = 1s;
    others.lasts = 1s;
    others.probabilities = {.reordered = 1e-300};
    auto undisturbed = seconds_with({});
    CHECK(seconds_with({unlucky}) > undisturbed + 10s);
    for (const auto* message : {"Token", "PushReply", ""}) {
      others.message = message;
      CHECK(seconds_with({unlucky, others}) > undisturbed + 10s);
    }
  }

  TEST_CASE("messages are at risk where they are said to be") {
    auto lost_with = [](const std::string& whose) {
      auto what = job(2, 4, sync_policy::latest_token, 40);
      what.network = without_timeout();
      what.ask_again_after = 1s;
      what.faults = plan({.kind = fault_kind::messages,
                          .who = {whose},
                          .message = "Token",
                          .probabilities = {.lost = 1}});
      std::set<uint32_t> given;
      what.on_step = [&](const step_record& step) {
        for (const auto& one : step.accepted)
          if (step.step > 1) given.insert(one.replica);
      };
      auto lost = probe(simulate(what), "lost Token");
      return std::pair{lost > 0, given};
    };
    CHECK(lost_with("replica 1") == std::pair{true, std::set<uint32_t>{0, 2, 3}});
    CHECK(lost_with("ps 0") == std::pair{false, std::set<uint32_t>{0, 1, 2, 3}});
  }

  TEST_CASE("lost, doubled and late messages change no count, if replicas ask again") {
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel}) {
      auto what = job(4, 4, policy, 60);
      what.sync.one_gradient_per_replica = true;
      what.network = network_options{.owners = 2};
      what.network->latency = [](const passage&) { return 10ms; };
      what.ask_again_after = 200ms;
      what.faults
        = plan({.kind = fault_kind::messages,
                .probabilities = {.lost = 0.1, .duplicated = 0.1, .reordered = 0.1, .late = 50ms}});
      counted_gradients counted{what};
      auto report = simulate(what);
      CHECK_FALSE(report.job.failure);
      CHECK(report.step_times.size() == 60);
      CHECK(counted.repeated + counted.short_of == 0);
      for (const char* kind : {"ReadVariable", "VariableSnapshot", "PushGradient", "PushReply",
                               "TakeToken", "Token"}) {
        CHECK(probe(report, std::string{"lost "} + kind) > 0);
        CHECK(probe(report, std::string{"duplicated "} + kind) > 0);
        CHECK(probe(report, std::string{"reordered "} + kind) > 0);
      }
    }
  }

  TEST_CASE("a late message takes the time of its bytes and its latency, and is late beyond them") {
    auto seconds_with = [](std::vector<fault> faults) {
      auto what = job(1, 1, sync_policy::latest_token);
      what.network = network_options{.bytes_per_second = 1e8, .gradient_bytes = 100'000'000};
      what.network->latency = [](const passage&) { return 100ms; };
      what.faults.faults = std::move(faults);
      return step_seconds(simulate(what)).back();
    };
    auto usual = seconds_with({});
    CHECK(usual > 2.4); // a second each to compute and for the bytes, and latencies
    for (auto late : {1ms, 500ms})
      CHECK(seconds_with({{.kind = fault_kind::messages,
                           .message = "PushGradient",
                           .probabilities = {.reordered = 1, .late = late}}})
            == doctest::Approx(usual + std::chrono::duration<double>(late).count()).epsilon(1e-6));
  }

  TEST_CASE("messages that suffer no fault are on their way as long as without any") {
    auto what = job(3, 4, sync_policy::tensorflow, 60);
    what.network = network_options{.owners = 2};
    what.network->latency = [drawn = exponential_time(10ms, 4)](const passage& goes) {
      return drawn(goes.end, goes.count);
    };
    auto undisturbed = simulate(what);
    what.faults = plan({.kind = fault_kind::messages, .probabilities = {.reordered = 1e-300}});
    CHECK(simulate(what).log_hash == undisturbed.log_hash);
  }

  TEST_CASE("a doubled gradient would count twice, if it were not remembered") {
    auto what = job(4, 4, sync_policy::tensorflow, 40);
    what.faults = plan({.kind = fault_kind::messages,
                        .message = "PushGradient",
                        .probabilities = {.duplicated = 0.3}});
    counted_gradients counted{what};
    static_cast<void>(simulate(what));
    CHECK(counted.short_of > 0);
    what.ask_again_after = 1s;
    counted_gradients remembered{what};
    CHECK_FALSE(simulate(what).job.failure);
    CHECK(remembered.short_of == 0);
  }

  TEST_CASE("a gradient that is lost for good is counted as lost") {
    auto what = job(3, 4, sync_policy::latest_token, 10);
    what.network = network_options{};
    what.network->latency = [](const passage&) { return 10ms; };
    what.faults = plan({.kind = fault_kind::messages,
                        .at = 2s,
                        .lasts = 3s,
                        .message = "PushGradient",
                        .probabilities = {.lost = 1}});
    what.deadline = 20s;
    auto lossy = simulate(what);
    CHECK(lossy.lost == 4);
    what.ask_again_after = 200ms;
    auto patient = simulate(what);
    CHECK_FALSE(patient.job.failure);
    CHECK(patient.lost == 0);
  }

  TEST_CASE("a gradient of the wrong shape is refused, and its replica is lost with the reason") {
    auto what = job(3, 4, sync_policy::latest_token);
    what.compute = [](uint32_t replica, uint64_t) { return replica == 3 ? 1100ms : 1000ms; };
    what.faults = plan({.kind = fault_kind::corrupt,
                        .at = 3500ms,
                        .who = {"replica 2"},
                        .how = corruption::wrong_shape});
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    REQUIRE(report.job.lost.size() == 1);
    CHECK(report.job.lost[0].replica == 2);
    CHECK(report.job.lost[0].reason.code == errc::invalid_argument);
    CHECK(probe(report, "refused gradient") == 1);
  }

  TEST_CASE("a gradient that is no number is refused where that is asked for") {
    auto what = job(3, 4, sync_policy::latest_token);
    what.compute = [](uint32_t replica, uint64_t) { return replica == 3 ? 1100ms : 1000ms; };
    what.faults = plan({.kind = fault_kind::corrupt, .at = 3500ms, .who = {"replica 2"}});
    CHECK(what.faults.corrupts());
    CHECK(simulate(what).job.lost.empty());
    what.sync.require_finite = true;
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    REQUIRE(report.job.lost.size() == 1);
    CHECK(report.job.lost[0].replica == 2);
    CHECK(report.job.lost[0].reason.code == errc::invalid_argument);
    CHECK(probe(report, "refused gradient") == 1);
  }

  TEST_CASE("a swizzle delays a job, and loses nothing of it") {
    auto what = job(6, 8, sync_policy::latest_token, 40);
    what.network = network_options{.owners = 2};
    what.faults = plan({.kind = fault_kind::swizzle, .at = 5s, .lasts = 20s});
    counted_gradients counted{what};
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    CHECK(counted.repeated == 0);
    CHECK(probe(report, "fault clog") > 0);
    CHECK(probe(report, "fault clog") == probe(report, "fault unclog"));
  }

  TEST_CASE("replicas are down together as often as the binomial distribution says") {
    // Source: availability A = MTBF / (MTBF + MTTR), and P(Bin(100, 1 - A) > 4) = .0474 at 1000/20.
    auto what = job(100, 100, sync_policy::tensorflow, 1);
    what.compute = [](uint32_t, uint64_t) { return 200'000s; };
    what.deadline = job_time::max();
    what.faults.rates = {.crash_mean = 1000s, .return_mean = 20s};
    what.sync.replicas_to_aggregate = 1;
    double weighted = 0;
    double many = 0;
    int down = 0;
    job_time last{0};
    std::vector<double> batches;
    double batch = 0;
    what.on_fault = [&](const fault_event& event) {
      auto time = std::chrono::duration<double>(event.time - last).count();
      last = event.time;
      weighted += time * down;
      if (down > 4) batch += time;
      if (event.time > 2000s * static_cast<double>(batches.size() + 1)) {
        batches.push_back(batch / 2000);
        many += batch;
        batch = 0;
      }
      down += event.what.starts_with("crash") ? 1 : -1;
    };
    what.deadline = 200'000s;
    static_cast<void>(simulate(what));
    auto total = std::chrono::duration<double>(last).count();
    CHECK(weighted / total / 100 == doctest::Approx(20.0 / 1020).epsilon(0.05));
    auto estimated = estimate_of(batches);
    INFO(estimated.mean, " +- ", estimated.standard_error);
    CHECK(std::abs(estimated.mean - 0.0474) < 4 * estimated.standard_error);
    CHECK(estimated.standard_error < 0.01);
  }

  TEST_CASE("at most so many replicas are down at one time as the plan allows") {
    auto what = job(1, 20, sync_policy::tensorflow, 2000);
    what.faults.rates = {.crash_mean = 100s, .return_mean = 50s, .down_max = 3};
    int down = 0;
    int most = 0;
    what.on_fault = [&](const fault_event& event) {
      down += event.what.starts_with("crash") ? 1 : -1;
      most = std::max(most, down);
    };
    CHECK_FALSE(simulate(what).job.failure);
    CHECK(most == 3);
  }

  TEST_CASE("a wave takes no more replicas than may be down at one time") {
    auto what = job(2, 10, sync_policy::latest_token, 40);
    what.faults.rates = {.wave_mean = 5s, .wave_size = 4};
    what.faults.rates.down_max = 3;
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    CHECK(probe(report, "fault crash") == 3);
  }

  TEST_CASE(
    "no replica crashes while a run warms up, and a share of the later crashes is for good") {
    auto what = job(1, 50, sync_policy::tensorflow, 1);
    what.compute = [](uint32_t, uint64_t) { return 20'000s; };
    what.deadline = 300s;
    what.faults.rates = {.crash_mean = 100s, .return_mean = 10s, .warm_up = 60s, .permanent = 0.3};
    job_time first = job_time::max();
    what.on_fault = [&](const fault_event& event) { first = std::min(first, event.time); };
    auto report = simulate(what);
    CHECK(first >= 60s);
    auto crashes = static_cast<double>(probe(report, "fault crash"));
    auto returns = static_cast<double>(probe(report, "fault restart"));
    INFO(crashes, " crashes, ", returns, " returns");
    CHECK(crashes > 50);
    CHECK(returns / crashes < 0.85);
    CHECK(returns / crashes > 0.45);
  }

  TEST_CASE("a wave takes several replicas at once, and freezes are drawn like crashes") {
    auto what = job(4, 10, sync_policy::latest_token, 300);
    what.faults.rates
      = {.return_mean = 5s, .freeze_mean = 100s, .thaw_mean = 2s, .wave_mean = 60s, .wave_size = 4};
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    CHECK(probe(report, "fault crash") >= 8);
    CHECK(probe(report, "fault restart") >= 4);
    CHECK(probe(report, "fault freeze") >= 10);
  }

  TEST_CASE("one seed is one run, whatever goes wrong") {
    auto what = job(6, 8, sync_policy::tensorflow, 100);
    what.network = network_options{.owners = 3};
    what.compute = exponential_time(1s, 4);
    what.ask_again_after = 500ms;
    what.faults.rates = {.crash_mean = 50s, .return_mean = 5s, .freeze_mean = 50s, .thaw_mean = 3s};
    what.faults.faults
      = {{.kind = fault_kind::messages, .probabilities = {.lost = 0.05, .duplicated = 0.05}},
         {.kind = fault_kind::partition, .at = 20s, .lasts = 5s, .who = {"replica 1", "ps 1"}}};
    auto first = simulate(what);
    CHECK_FALSE(first.job.failure);
    CHECK(simulate(what).log_hash == first.log_hash);
    what.seed = 1;
    CHECK(simulate(what).log_hash != first.log_hash);
  }

  TEST_CASE("the longest absence grows with the mean, up to what a clock counts") {
    auto longest = [](job_time mean) {
      return fault_plan{.rates = {.return_mean = mean}}.longest_absence(0s);
    };
    CHECK(longest(3s) == 60s);
    CHECK(longest(500'000'000s) > 500'000'000s);
  }

  TEST_CASE("rates say about how many faults come while a step is made") {
    auto count = [](const fault_rates& rates) { return rates.count_in_step(4, 10, 1000); };
    CHECK(count({}) == 0);
    CHECK(count({.crash_mean = 1ms}) == 0); // once each, and the job is over
    CHECK(count({.crash_mean = 1s, .down_max = 1}) == 40);
    CHECK(count({.crash_mean = 1ms, .return_mean = 999ms}) == 4000); // up to the step's limit
    CHECK(count({.freeze_mean = 1s, .thaw_mean = 4s}) == 8);
    CHECK(count({.swizzle_mean = 1s, .swizzle_lasts = 5s}) == 60);
    // (e^(10/5) - 1) crashes of a replica, each of which takes 5 s and 15 s for the return.
    CHECK(count({.crash_mean = 5s, .return_mean = 15s})
          == doctest::Approx(4 * (std::exp(2.0) - 1)));
    CHECK(count({.return_mean = 15s, .wave_mean = 5s, .wave_size = 4})
          == doctest::Approx(4 * 4 * (std::exp(2.0) - 1)));
  }

  TEST_CASE("plans that make no sense are refused with the reason") {
    auto refused = [](fault_plan what) {
      auto valid = what.validate(4, 2);
      REQUIRE_FALSE(valid);
      CHECK(valid.error().code == errc::invalid_argument);
      return valid.error().message;
    };
    CHECK(refused(plan({.who = {"replica 4"}}))
          == "fault 1 (crash): there is no node 'replica 4'; there are 'replica 0' to 'replica 3', "
             "'ps 0' to 'ps 1' and 'chief'");
    CHECK(refused(plan({.kind = fault_kind::corrupt, .who = {"chief"}}))
          == "fault 1 (corrupt): it is about replicas only");
    CHECK(refused(plan({.at = -1s})) == "fault 1 (crash): its times must not be below 0");
    CHECK(refused(plan({.kind = fault_kind::slow, .factor = 0}))
          == "fault 1 (slow): its factor must be above 0");
    CHECK(refused(plan({.kind = fault_kind::messages, .probabilities = {.lost = 1.5}}))
          == "fault 1 (messages): probabilities go from 0 to 1");
    CHECK(refused(plan({.kind = fault_kind::messages}))
          == "fault 1 (messages): say how often messages are lost, doubled or late");
    CHECK(refused(plan({.kind = fault_kind::skew}))
          == "fault 1 (skew): a clock that is wrong is ahead, or runs at another rate; say how "
             "much");
    CHECK(refused(plan(
            {.kind = fault_kind::partition, .who = {"replica 0"}, .other = {"ps 0", "replica 0"}}))
          == "fault 1 (partition): 'replica 0' is on both sides of it");
    CHECK(refused({.rates = {.wave_size = 5}})
          == "a wave of 5 is of more than the 4 replicas; "
             "lower it");
    CHECK(refused({.rates = {.permanent = 1.5}})
          == "the share of permanent crashes is 1.5; give one from 0 to 1");
    CHECK(refused(plan({.kind = fault_kind::skew, .rate = 0}))
          == "fault 1 (skew): its rate goes from 0.001 to 1000");
    CHECK(parse_fault_kind("freeze") == fault_kind::freeze);
    CHECK_FALSE(parse_fault_kind("flood"));
  }
}

} // namespace fault_test
