// SPDX-License-Identifier: Apache-2.0
// Goal: where owners are replicated, the loss of one loses nothing, whenever it happens. Method:
// jobs in the virtual world that lose a parameter server at one of many moments, compared with the
// same job undisturbed, or judged by the checkers of the drawn jobs.
#include "kernels/tensor/buffer.hpp"
#include "kernels/tensor/change.hpp"
#include "kernels/tensor/random.hpp"
#include "simulation/distributions/distribution.hpp"
#include "tests/doctest.hpp"
#include "tests/sim/checkers.hpp"
#include "tests/strategies/refusal.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace owner_loss_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t moments = 60;

scenario replicated_job(sync_policy policy, uint32_t aggregate, uint32_t owners, uint64_t seed) {
  scenario job;
  job.seed = seed;
  job.sync.policy = policy;
  job.sync.total_num_replicas = 4;
  job.sync.replicas_to_aggregate = aggregate;
  job.steps = 5;
  job.replicate_owners = 2;
  job.deadline = 10min;
  job.compute = distribution::parse("uniform(0.5, 1.5)").value().times(seed);
  job.network.emplace();
  job.network->owners = owners;
  job.network->seed = seed;
  job.network->detection = seed % 2 == 0 ? 0ms : 300ms;
  auto times = distribution::parse("exponential(0.05)").value().times(seed + 1);
  job.network->latency = [times](const passage& goes) { return times(goes.end, goes.count); };
  return job;
}

// Where training is asynchronous, and updates take fewer gradients, more steps take as long.
scenario asynchronous_job(sync_policy policy, uint32_t owners, uint64_t seed) {
  auto is_ssp = policy == sync_policy::ssp;
  auto job = replicated_job(policy, is_ssp ? 1 : 3, owners, seed);
  if (is_ssp) job.sync.slack = seed % 3;
  job.steps = is_ssp ? 20 : 7;
  return job;
}

constexpr std::array asynchronous_policies{sync_policy::k_async, sync_policy::k_batch_async,
                                           sync_policy::ssp};

// One of `moments` at which a job of 5 steps may lose a parameter server, more of them than steps.
job_time moment_of(uint64_t seed) {
  random_stream draw{random_key{seed, "moment of loss", 0, 0}};
  return job_time{static_cast<int64_t>(8e9 * draw.uniform())};
}

fault loss_of(const std::string& who, job_time at) {
  return {.kind = fault_kind::crash, .at = at, .who = {who}};
}

// The requests of replicas, and the answers, may be lost, come twice, or late.
scenario over_bad_links(scenario job) {
  job.faults.faults.push_back(
    {.kind = fault_kind::messages,
     .probabilities = {.lost = 0.15, .duplicated = 0.2, .reordered = 0.2, .late = 300ms}});
  job.ask_again_after = 500ms;
  return job;
}

bool are_equal(const std::vector<tensor>& a, const std::vector<tensor>& b) {
  if (a.size() != b.size() || a.empty()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].bytes() != b[i].bytes() || std::memcmp(a[i].data(), b[i].data(), a[i].bytes()) != 0)
      return false;
  return true;
}

std::string failure_of(const evidence& course) {
  return course.report.job.failure.value_or(error{}).message;
}

// Every gradient that a ledger has as accepted is part of the only variable.
size_t accepted_and_not_counted(const evidence& course) {
  std::set<std::pair<uint32_t, uint32_t>> counted;
  for (const auto& one : course.made)
    if (ballot_model::share(course.values[0], one.replica, one.number) != 0)
      counted.insert({one.replica, one.number});
  size_t accepted = 0;
  for (const auto& step : course.steps)
    accepted += step.accepted.size();
  return accepted > counted.size() ? accepted - counted.size() : 0;
}

// Every update is made of as many gradients as it needs, each of which counts once.
void check_updates_are_whole(const evidence& course) {
  for (const auto& value : course.values) {
    auto counted = std::ranges::count_if(course.made, [&](const auto& one) {
      return ballot_model::share(value, one.replica, one.number) != 0;
    });
    CHECK(static_cast<uint64_t>(counted)
          == course.what.steps * course.what.sync.replicas_to_aggregate);
  }
}

/// The outcome of a job with gradients that depend on what was read and on the replica alone: a
/// step has the same bits, whichever of a replica's lives it was made in.
struct repeatable_course {
  scenario_report report;
  std::vector<tensor> values;
};

repeatable_course run_repeatable(scenario job, const std::vector<fault>& faults) {
  repeatable_course course;
  auto task = std::make_shared<learning_task>();
  for (int i = 0; i < 3; ++i)
    task->variables.emplace_back(fmt::format("w{}", i), filled(dtype::f32, {5}, 1.0 + i));
  task->differentiate = [](std::span<const tensor> values, uint32_t replica, uint64_t) {
    computed_batch made{.examples = 1};
    for (const auto& value : values) {
      auto gradient = value.clone();
      for (auto& element : gradient.mutable_values<float>())
        element = 0.3F * element + 0.1F * static_cast<float>(replica);
      made.gradients.emplace_back(std::move(gradient));
    }
    return made;
  };
  task->evaluate = [&course](std::span<const tensor> values, std::span<const uint32_t>) {
    course.values.assign(values.begin(), values.end());
    return 0.0;
  };
  job.learning = learning_options{.task = task,
                                  .plan = {.rule = rules::adam{.learning_rate = 0.01}},
                                  .evaluate_every = 1'000'000};
  job.faults.faults = faults;
  course.report = simulate(job);
  return course;
}

void check_as_undisturbed(const repeatable_course& course, const repeatable_course& undisturbed) {
  CHECK_MESSAGE(!course.report.job.failure, course.report.job.failure.value_or(error{}).message);
  CHECK(course.report.restarts == 0);
  CHECK(course.report.job.step == undisturbed.report.job.step);
  CHECK(are_equal(course.values, undisturbed.values));
}

void check_same_bits(const scenario& job, uint32_t variables, const update_plan& plan,
                     const std::string& lost) {
  auto undisturbed = run_job(job, variables, plan);
  REQUIRE_MESSAGE(!undisturbed->report.job.failure, failure_of(*undisturbed));
  REQUIRE(!undisturbed->values.empty());
  for (uint64_t moment = 0; moment < moments; ++moment) {
    auto disturbed = job;
    auto at = moment_of(moment * 1000 + job.seed);
    disturbed.faults.faults.push_back(loss_of(lost, at));
    INFO(fmt::format("{} is lost at {} ns, seed {}", lost, at.count(), job.seed));
    auto course = run_job(disturbed, variables, plan);
    CHECK_MESSAGE(!course->report.job.failure, failure_of(*course));
    CHECK(course->report.restarts == 0);
    CHECK(course->report.job.step == job.steps);
    CHECK(are_equal(course->values, undisturbed->values));
    REQUIRE(course->steps.size() == job.steps);
    for (const auto& step : course->steps)
      CHECK(step.accepted.size() == 4);
  }
}

// The word of a mirror that it knows what its owner holds.
const std::string mirror_filled = "OfferMirror, filled";

/// A job that loses parameter servers, and what came to its nodes when.
struct watched_course {
  std::unique_ptr<const evidence> seen;
  std::vector<std::pair<job_time, std::string>> deliveries;

  /// The times between the last delivery of one kind and the next of another; none, if there was
  /// none of the first. An empty `until` means the end.
  [[nodiscard]] std::vector<job_time> times_after(const std::string& from,
                                                  const std::string& until = {}) const {
    std::vector<job_time> times;
    auto has_begun = false;
    for (const auto& [time, kind] : deliveries) {
      if (kind == from) times.clear();
      has_begun = kind == from || (has_begun && kind != until);
      if (has_begun) times.push_back(time);
    }
    return times;
  }

  /// Whether one of a kind came after the last one of another.
  [[nodiscard]] bool has_after(const std::string& from, const std::string& kind) const {
    auto has_come = false;
    for (const auto& one : deliveries)
      has_come = one.second != from && (has_come || one.second == kind);
    return has_come;
  }

  [[nodiscard]] uint64_t count(const std::string& kind) const {
    return static_cast<uint64_t>(
      std::ranges::count(deliveries, kind, &std::pair<job_time, std::string>::second));
  }
};

watched_course run_watched(scenario job, uint32_t variables, const update_plan& plan,
                           const std::vector<fault>& faults) {
  watched_course course;
  job.faults.faults = faults;
  job.on_delivery = [&course](const delivery& came) {
    auto is_filled = false;
    if (came.content->match_elements<msg<wire::OfferMirror>>())
      is_filled = came.content->get_as<msg<wire::OfferMirror>>(0).reader().getIsFilled();
    course.deliveries.emplace_back(came.time, is_filled ? mirror_filled : came.kind);
  };
  course.seen = run_job(job, variables, plan);
  return course;
}

fault lost_for(const std::string& who, job_time at, job_time lasts) {
  auto one = loss_of(who, at);
  one.lasts = lasts;
  return one;
}

job_time one_of(const std::vector<job_time>& times, random_stream& draw) {
  return times[static_cast<size_t>(draw.uniform() * static_cast<double>(times.size()))];
}

std::string describe(const std::vector<fault>& faults) {
  std::string text;
  for (const auto& one : faults)
    text += fmt::format("{} at {} ns for {} ns; ", one.who[0], one.at.count(), one.lasts.count());
  return text;
}

/// The course of a job that loses an owner, which must keep its promises and go on.
std::unique_ptr<const evidence> lose_one(scenario job, const char* whom, job_time at,
                                         uint32_t variables) {
  job.faults.faults.push_back(loss_of(whom, at));
  auto course = run_job(job, variables);
  INFO(to_string(job.sync.policy), " seed ", job.seed, ", ", whom, " at ", at.count(), " ns");
  CHECK_MESSAGE(!course->report.job.failure, failure_of(*course));
  CHECK(course->report.restarts == 0);
  auto complaints = judge(*course);
  CHECK_MESSAGE(complaints.empty(), complaints);
  if (variables == 1) CHECK(accepted_and_not_counted(*course) == 0);
  return course;
}

/// How often a parameter server that came back took over, in jobs that lose their two in turn, each
/// after the other has come back.
uint64_t lose_in_turn(const scenario& job, uint32_t variables, const update_plan& plan,
                      const std::function<void(const watched_course&)>& check) {
  random_stream draw{random_key{job.seed, "losses in turn", 0, 0}};
  uint64_t turns = 0;
  for (uint32_t chain = 0; chain < 6; ++chain) {
    std::vector<fault> faults;
    job_time at{static_cast<int64_t>(1e9 + 6e9 * draw.uniform())};
    for (uint32_t turn = chain % 2; turn < 5; ++turn) {
      job_time lasts{static_cast<int64_t>(1e7 + 1e9 * draw.uniform())};
      faults.push_back(lost_for(turn % 2 == 0 ? "ps 0" : "ps 1", at, lasts));
      auto course = run_watched(job, variables, plan, faults);
      INFO(fmt::format("seed {}: {}", job.seed, describe(faults)));
      CHECK_MESSAGE(!course.seen->report.job.failure, failure_of(*course.seen));
      CHECK(course.seen->report.restarts == 0);
      CHECK(course.seen->report.job.step == job.steps);
      if (at >= course.seen->report.virtual_time) break; // the job ended at that moment
      check(course);
      if (course.count(mirror_filled) < faults.size() * variables) break; // the job was over before
      if (course.has_after("RepeatChanges", "OfferMirror")) break; // the next one is missed for it
      if (faults.size() > 1) ++turns;
      at = one_of(course.times_after(mirror_filled), draw);
    }
  }
  return turns;
}

} // namespace

TEST_SUITE("sim/owner_loss") {
  TEST_CASE("parameter servers that are lost in turn and come back leave the same bits") {
    update_plan adam{.rule = rules::adam{.learning_rate = 0.01}};
    uint64_t turns = 0;
    for (uint64_t seed = 21; seed < 25; ++seed) {
      auto job = replicated_job(seed % 3 == 0 ? sync_policy::cancel : sync_policy::latest_token, 4,
                                2, seed);
      job.steps = 15;
      job.network->meets_at_roll_call = seed % 4 < 2;
      if (seed == 22) job.sync.clip_global_norm = 0.5;
      auto undisturbed = run_job(job, 3, adam);
      turns += lose_in_turn(job, 3, adam, [&](const watched_course& course) {
        CHECK(are_equal(course.seen->values, undisturbed->values));
        REQUIRE(course.seen->steps.size() == job.steps);
        for (const auto& step : course.seen->steps)
          CHECK(step.accepted.size() == 4);
      });
    }
    CHECK(turns > 30);
  }

  TEST_CASE("with backups, parameter servers that come back lose no gradient, and double none") {
    uint64_t turns = 0;
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel})
      for (uint64_t seed = 31; seed < 33; ++seed) {
        auto job = replicated_job(policy, 3, 2, seed);
        job.steps = 15;
        turns += lose_in_turn(job, 1,
                              {.rule = rules::sgd{.learning_rate = ballot_model::learning_rate}},
                              [&](const watched_course& course) {
                                auto complaints = judge(*course.seen);
                                CHECK_MESSAGE(complaints.empty(), complaints);
                                CHECK(accepted_and_not_counted(*course.seen) == 0);
                              });
      }
    CHECK(turns > 30);
  }

  TEST_CASE("one that is lost again while it is told what it missed changes nothing") {
    update_plan momentum{.rule = rules::momentum{.learning_rate = 0.1}};
    uint64_t reached = 0;
    for (uint64_t seed = 41; seed < 45; ++seed) {
      auto job = replicated_job(sync_policy::latest_token, 4, 2, seed);
      auto undisturbed = run_job(job, 3, momentum);
      std::vector<fault> faults{lost_for("ps 0", 2s, 500ms)};
      auto once = run_watched(job, 3, momentum, faults);
      for (auto at : once.times_after("OfferMirror", mirror_filled)) {
        faults.resize(1);
        faults.push_back(lost_for("ps 0", at, 0s));
        auto course = run_watched(job, 3, momentum, faults);
        INFO(fmt::format("seed {}: {}", seed, describe(faults)));
        CHECK_MESSAGE(!course.seen->report.job.failure, failure_of(*course.seen));
        CHECK(course.seen->report.restarts == 0);
        CHECK(are_equal(course.seen->values, undisturbed->values));
        if (course.count(mirror_filled) < 3) ++reached;
      }
    }
    CHECK(reached > 10);
  }

  TEST_CASE(
    "if the owner that tells it is lost meanwhile, the job begins again from the snapshot") {
    auto job = replicated_job(sync_policy::latest_token, 4, 2, 51);
    std::vector<fault> faults{lost_for("ps 0", 2s, 500ms)};
    auto times = run_watched(job, 2, {.rule = rules::sgd{}}, faults).times_after("RepeatChanges");
    REQUIRE_FALSE(times.empty());
    faults.push_back(lost_for("ps 1", times.front(), 0s));
    auto course = run_watched(job, 2, {.rule = rules::sgd{}}, faults);
    CHECK_MESSAGE(!course.seen->report.job.failure, failure_of(*course.seen));
    CHECK(course.seen->report.restarts == 1);
    CHECK(course.seen->report.job.step == job.steps);
  }

  TEST_CASE("where all replicas are needed, a job that loses an owner comes to the same bits") {
    update_plan adam{.rule = rules::adam{.learning_rate = 0.01}};
    uint64_t seed = 1;
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel})
      for (uint32_t owners : {2, 3}) {
        auto job = replicated_job(policy, 4, owners, ++seed);
        CAPTURE(to_string(policy));
        CAPTURE(owners);
        check_same_bits(job, owners + 1, adam, "ps 0");
        check_same_bits(job, owners + 1, adam, fmt::format("ps {}", owners - 1));
      }
  }

  TEST_CASE("owners and mirrors that lose each other alone leave the same bits, and lose nothing") {
    update_plan adam{.rule = rules::adam{.learning_rate = 0.01}};
    uint64_t parted = 0;
    for (uint64_t moment = 0; moment < moments; ++moment) {
      auto job = replicated_job(sync_policy::latest_token, 4, 2 + moment % 2, 61 + moment % 7);
      job.steps = 15;
      auto variables = static_cast<uint32_t>(1 + moment % 4);
      auto undisturbed = run_job(job, variables, adam);
      fault apart{.kind = fault_kind::partition,
                  .at = moment_of(moment + 900),
                  .lasts = moment % 3 == 0 ? job_time{0} : job_time{4s},
                  .who = {"ps 0"},
                  .other = {"ps 1"},
                  .one_way = moment % 5 == 0};
      auto course = run_watched(job, variables, adam, {apart});
      INFO(fmt::format("apart at {} ns, seed {}", apart.at.count(), job.seed));
      CHECK_MESSAGE(!course.seen->report.job.failure, failure_of(*course.seen));
      CHECK(course.seen->report.restarts == 0);
      CHECK(course.seen->report.job.step == job.steps);
      CHECK(are_equal(course.seen->values, undisturbed->values));
      if (course.count("OfferMirror") > 0) ++parted;
    }
    CHECK(parted > moments / 2);
  }

  TEST_CASE("a slow link, and one that is cut for less than the timeout, leave the same bits") {
    update_plan adam{.rule = rules::adam{.learning_rate = 0.01}};
    for (uint32_t copies : {1, 2}) {
      auto job = replicated_job(sync_policy::latest_token, 4, 2, 71 + copies);
      job.replicate_owners = copies;
      auto undisturbed = run_job(job, 3, adam);
      for (const auto* who : {"replica 1", "ps 0", "ps 1", "chief"}) {
        fault slow{.kind = fault_kind::slow, .at = 1s, .who = {who}, .factor = 30};
        fault cut{.kind = fault_kind::partition, .at = 2s, .lasts = 900ms, .who = {who}};
        for (const auto& what : {slow, cut}) {
          INFO(to_string(what.kind), " of ", who, ", owners held by ", copies);
          auto disturbed = job;
          disturbed.faults.faults = {what};
          auto course = run_job(disturbed, 3, adam);
          CHECK_MESSAGE(!course->report.job.failure, failure_of(*course));
          CHECK(course->report.job.lost.empty());
          CHECK(course->report.restarts == 0);
          CHECK(are_equal(course->values, undisturbed->values));
        }
      }
    }
  }

  TEST_CASE("updates that wait for the norm of all gradients are not lost either") {
    update_plan momentum{.rule = rules::momentum{.learning_rate = 0.1}};
    auto job = replicated_job(sync_policy::latest_token, 4, 2, 7);
    job.sync.clip_global_norm = 0.5;
    check_same_bits(job, 3, momentum, "ps 0");
    check_same_bits(job, 3, momentum, "ps 1");
  }

  TEST_CASE("the loss of a mirror changes nothing") {
    auto job = replicated_job(sync_policy::latest_token, 4, 2, 9);
    check_same_bits(job, 1, {.rule = rules::sgd{.learning_rate = 0.5}}, "ps 1");
  }

  TEST_CASE("a replica whose node comes back after the loss takes part again, to the same bits") {
    uint64_t returned = 0;
    for (uint64_t moment = 0; moment < 2 * moments; ++moment) {
      auto job = replicated_job(sync_policy::latest_token, 4, 2 + moment % 2, moment + 11);
      auto undisturbed = run_repeatable(job, {});
      // A replica is not waited for if its node is down before the job begins.
      auto replica = loss_of(fmt::format("replica {}", moment % 4), 1s + moment_of(moment));
      replica.lasts = 1s;
      auto ps = loss_of(moment % 3 == 0 ? "ps 1" : "ps 0", moment_of(moment + 500));
      INFO(fmt::format("{} is lost at {} ns, {} at {} ns, seed {}", ps.who[0], ps.at.count(),
                       replica.who[0], replica.at.count(), job.seed));
      auto course = run_repeatable(job, {ps, replica});
      check_as_undisturbed(course, undisturbed);
      if (ps.at < replica.at && !course.report.job.lost.empty()) ++returned;
    }
    CHECK(returned > moments / 4);
  }

  TEST_CASE(
    "a gradient that a replica gives twice counts once, though an owner is lost with the first") {
    uint64_t given_again = 0;
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel})
      for (uint64_t moment = 0; moment < moments / 2; ++moment) {
        auto job = replicated_job(policy, 4, 2 + moment % 2, moment + 31);
        auto times = distribution::parse("uniform(0.5, 1.5) * slow({3}, 8)").value();
        job.compute = times.times(job.seed);
        auto undisturbed = run_repeatable(job, {});
        auto replica = lost_for("replica 1", 2s, 300ms); // it has given, and gives again
        auto ps = loss_of("ps 0", 3500ms + moment_of(moment) / 4);
        INFO(fmt::format("{}: ps 0 is lost at {} ns, seed {}", to_string(policy), ps.at.count(),
                         job.seed));
        auto course = run_repeatable(job, {replica, ps});
        check_as_undisturbed(course, undisturbed);
        given_again += course.report.probes.count("delivered TookOver");
      }
    CHECK(given_again > moments / 2);
  }

  TEST_CASE("with backups, no gradient is counted twice, and none that was accepted is lost") {
    uint64_t reached = 0;
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel})
      for (uint64_t moment = 0; moment < moments; ++moment) {
        auto job = replicated_job(policy, 3, 2 + moment % 2, moment);
        auto variables = static_cast<uint32_t>(1 + moment % 3);
        auto course
          = lose_one(job, moment % 3 == 0 ? "ps 1" : "ps 0", moment_of(moment + 77), variables);
        reached += course->report.probes.count("delivered TookOver");
      }
    CHECK(reached > moments); // jobs that were not over yet
  }

  TEST_CASE("where training is asynchronous, each gradient that was accepted counts once, too") {
    uint64_t reached = 0;
    for (auto policy : asynchronous_policies)
      for (uint64_t moment = 0; moment < moments; ++moment) {
        auto job = asynchronous_job(policy, 2 + moment % 2, moment);
        auto variables = static_cast<uint32_t>(1 + moment % 3);
        auto course
          = lose_one(job, moment % 3 == 0 ? "ps 1" : "ps 0", moment_of(moment + 177), variables);
        check_updates_are_whole(*course);
        reached += course->report.probes.count("delivered TookOver");
      }
    CHECK(reached > moments); // jobs that were not over yet
  }

  TEST_CASE("so it is where parameter servers are lost in turn and come back") {
    uint64_t turns = 0;
    for (auto policy : asynchronous_policies)
      for (uint64_t seed = 81; seed < 84; ++seed) {
        auto job = asynchronous_job(policy, 2, seed);
        job.steps *= 3;
        if (seed == 83) job.sync.clip_global_norm = 1e6; // held, and never clipped
        turns += lose_in_turn(job, 1,
                              {.rule = rules::sgd{.learning_rate = ballot_model::learning_rate}},
                              [&](const watched_course& course) {
                                auto complaints = judge(*course.seen);
                                CHECK_MESSAGE(complaints.empty(), complaints);
                                check_updates_are_whole(*course.seen);
                                CHECK(accepted_and_not_counted(*course.seen) == 0);
                              });
      }
    CHECK(turns > 30);
  }

  TEST_CASE("with dynamic backups, a step outlives the loss of a replica and then of an owner") {
    auto job = replicated_job(sync_policy::latest_token, 4, 2, 61);
    job.sync.dynamic = dynamic_backups{.gain = gain_model::power};
    job.compute = constant_time(100s);
    job.faults.faults = {loss_of("replica 3", 30s), loss_of("ps 0", 60s)};
    auto course = run_job(job, 2);
    CHECK_MESSAGE(!course->report.job.failure, failure_of(*course));
    CHECK(course->report.restarts == 0);
    CHECK(course->report.job.step == job.steps);
    CHECK(course->report.probes.count("delivered TookOver") > 0);
    auto complaints = judge(*course);
    CHECK_MESSAGE(complaints.empty(), complaints);
  }

  TEST_CASE("over links that lose, double and delay messages, each accepted gradient counts once") {
    uint64_t reached = 0;
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel})
      for (uint64_t moment = 0; moment < moments; ++moment) {
        auto job = over_bad_links(replicated_job(policy, 3, 2 + moment % 2, moment + 3));
        auto variables = static_cast<uint32_t>(1 + moment % 3);
        auto course
          = lose_one(job, moment % 3 == 0 ? "ps 1" : "ps 0", moment_of(moment + 377), variables);
        reached += course->report.probes.count("delivered TookOver");
      }
    CHECK(reached > moments);
  }

  TEST_CASE("so it is over such links where training is asynchronous") {
    uint64_t reached = 0;
    for (auto policy : asynchronous_policies)
      for (uint64_t moment = 0; moment < moments; ++moment) {
        auto job = over_bad_links(asynchronous_job(policy, 2 + moment % 2, moment + 5));
        auto variables = static_cast<uint32_t>(1 + moment % 3);
        auto course
          = lose_one(job, moment % 3 == 0 ? "ps 1" : "ps 0", moment_of(moment + 477), variables);
        check_updates_are_whole(*course);
        reached += course->report.probes.count("delivered TookOver");
      }
    CHECK(reached > moments);
  }

  TEST_CASE("where all replicas are needed, such links leave the same bits") {
    update_plan adam{.rule = rules::adam{.learning_rate = 0.01}};
    auto job = replicated_job(sync_policy::latest_token, 4, 2, 13);
    auto undisturbed = run_job(job, 3, adam);
    for (uint64_t moment = 0; moment < moments; ++moment) {
      auto disturbed = over_bad_links(job);
      disturbed.faults.faults.push_back(loss_of("ps 0", moment_of(moment + 577)));
      auto course = run_job(disturbed, 3, adam);
      CHECK_MESSAGE(!course->report.job.failure, failure_of(*course));
      CHECK(course->report.restarts == 0);
      CHECK(are_equal(course->values, undisturbed->values));
    }
  }

  TEST_CASE("where training is asynchronous, replicas are lost beside an owner, and the job ends") {
    uint64_t reached = 0;
    for (auto policy : asynchronous_policies)
      for (uint64_t moment = 0; moment < moments; ++moment) {
        auto job = asynchronous_job(policy, 2 + moment % 2, moment + 7);
        auto at = moment_of(moment + 277);
        auto replica = loss_of(fmt::format("replica {}", moment % 4), at + job_time{moment % 3});
        replica.lasts = 2s;
        job.faults.faults = {loss_of(moment % 3 == 0 ? "ps 1" : "ps 0", at), replica};
        auto course = run_job(job, static_cast<uint32_t>(1 + moment % 3));
        INFO(to_string(policy), " moment ", moment, " at ", at.count(), " ns");
        CHECK_MESSAGE(!course->report.job.failure, failure_of(*course));
        CHECK(course->report.restarts == 0);
        CHECK(course->report.job.step == job.steps);
        auto complaints = judge(*course);
        CHECK_MESSAGE(complaints.empty(), complaints);
        reached += course->report.probes.count("delivered TookOver");
      }
    CHECK(reached > moments);
  }

  TEST_CASE("a job that has lost an owner leaves no memory behind") {
    auto job = replicated_job(sync_policy::latest_token, 3, 2, 5);
    job.faults.faults.push_back(loss_of("ps 0", 2s));
    static_cast<void>(run_job(job, 2));
    auto before = cpu_pool().bytes_in_use();
    for (int i = 0; i < 5; ++i)
      static_cast<void>(run_job(job, 2));
    CHECK(cpu_pool().bytes_in_use() == before);
  }

  TEST_CASE("a job that replicated owners do not go with is refused") {
    auto line_of = [](const scenario& job) {
      auto refused = refusal_of([&] { static_cast<void>(run_job(job, 1)); });
      return refused.message;
    };
    auto job = replicated_job(sync_policy::cancel, 4, 1, 1);
    CHECK(line_of(job).find("takes 2 parameter servers") != std::string::npos);
    job.replicate_owners = 3;
    CHECK(line_of(job).find("held by 1 or 2 parameter servers") != std::string::npos);
  }

  TEST_CASE("after the second loss, the job begins again with what was saved") {
    auto job = replicated_job(sync_policy::latest_token, 4, 2, 3);
    job.faults.faults = {loss_of("ps 0", 1s), loss_of("ps 1", 3s)};
    auto course = run_job(job, 2);
    CHECK(course->report.restarts == 1);
    CHECK_MESSAGE(!course->report.job.failure, failure_of(*course));
    CHECK(course->report.job.step == job.steps);
  }
}

} // namespace owner_loss_test
