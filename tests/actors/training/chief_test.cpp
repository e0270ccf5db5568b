// SPDX-License-Identifier: Apache-2.0
// Goal: steps close when they have enough, and a job ends with every replica accounted for. Method:
// the real actors around a chief, but puppets for replicas, which come, push and leave when the
// test says.
#include "tests/actors/training/chief_job.hpp"

namespace chief_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

chief_config needing(uint32_t needed, uint32_t replicas,
                     sync_policy policy = sync_policy::latest_token, uint64_t steps = 3) {
  return {.sync = {needed, replicas, policy}, .steps = steps};
}

} // namespace

TEST_SUITE("actors/training/chief") {
  TEST_CASE("the token queue begins with a token for each gradient needed, under tensorflow") {
    job tensorflow{needing(2, 3, sync_policy::tensorflow)};
    CHECK(tensorflow.status().getTokens() == 2);
    CHECK(tensorflow.status().getNextStep() == 0);
    job other{needing(2, 3)};
    CHECK(other.status().getTokens() == 0);
  }

  TEST_CASE("a step ends when it has enough, and lets the replicas go") {
    job job{needing(2, 3)};
    job.join({0, 1, 2});
    job.push(2, 0);
    auto token = job.take(2, 0);
    CHECK(job.steps.empty());
    job.push(0, 0);
    REQUIRE(job.steps.size() == 1);
    CHECK(job.steps[0].step == 1);
    CHECK(job.steps[0].needed == 2);
    CHECK(job.steps[0].live == 3);
    CHECK(replicas_of(job.steps[0].accepted) == replica_list{0, 2});
    CHECK(job.steps[0].stale.empty());
    CHECK(job.steps[0].cancelled.empty());
    CHECK(token.value().reader().getStep() == 1);
  }

  TEST_CASE("an update makes as many tokens as there are replicas, under tensorflow") {
    job job{needing(2, 3, sync_policy::tensorflow)};
    job.join({0, 1, 2});
    job.push(0, 0);
    job.push(1, 0);
    CHECK(job.status().getTokens() == 2 + 3);
    for (uint64_t step : {0U, 0U, 1U, 1U, 1U})
      CHECK(job.take(0, 0).value().reader().getStep() == step);
  }

  TEST_CASE("a record says when the step began and ended, and when each owner was done") {
    job job{needing(2, 2), {"w", "bias"}};
    job.join({0, 1});
    for (uint64_t step = 0; step < 2; ++step) {
      job.pass(5s);
      job.push(0, step);
      job.pass(2s);
      job.push(1, step);
    }
    REQUIRE(job.steps.size() == 2);
    CHECK(job.steps[0].began == 0s);
    CHECK(job.steps[0].ended == 7s);
    CHECK(job.steps[0].apply == 0s);
    CHECK(job.steps[0].accepted[0].arrived == 5s);
    CHECK(job.steps[0].accepted[1].arrived == 7s);
    CHECK(job.steps[1].began == 7s);
    CHECK(job.steps[1].ended == 14s);
    REQUIRE(job.steps[1].updates.size() == 2);
    for (const auto& update : job.steps[1].updates) {
      CHECK((update.variable == "w" || update.variable == "bias"));
      CHECK(update.ended == 14s);
      CHECK(update.took == 0s);
    }
  }

  TEST_CASE("a step with several variables ends with the last of them") {
    job job{needing(2, 3), {"w", "bias"}};
    job.join({0, 1, 2});
    job.push(0, 0);
    job.push_to(job.accumulators[0], 1, 0);
    CHECK(job.steps.empty());
    job.push_to(job.accumulators[1], 2, 0);
    REQUIRE(job.steps.size() == 1);
    CHECK(replicas_of(job.steps[0].accepted) == replica_list{0});
  }

  TEST_CASE("a late gradient is in the books of the next step") {
    job job{needing(1, 2)};
    job.join({0, 1});
    job.push(0, 0);
    job.push(1, 0);
    job.push(0, 1);
    REQUIRE(job.steps.size() == 2);
    CHECK(job.steps[0].stale.empty());
    CHECK(replicas_of(job.steps[1].accepted) == replica_list{0});
    CHECK(replicas_of(job.steps[1].stale) == replica_list{1});
    CHECK(job.steps[1].stale[0].staleness == 1);
  }

  TEST_CASE("after the last step all replicas are sent home, and the report waits for them") {
    job job{needing(2, 2, sync_policy::latest_token, 1)};
    job.join({0, 1});
    job.push(0, 0);
    auto token = job.take(0, 0);
    job.push(1, 0);
    CHECK(token.error().code == errc::cancelled);
    CHECK(job.cancelled(0) == std::vector<uint64_t>{never});
    CHECK(job.cancelled(1) == std::vector<uint64_t>{never});
    job.leave(0);
    CHECK_FALSE(job.report);
    job.leave(1);
    REQUIRE(job.report);
    CHECK(job.report->step == 1);
    CHECK_FALSE(job.report->failure);
    CHECK_FALSE(job.report->stopped);
    CHECK(job.report->lost.empty());
  }

  TEST_CASE("a job that is over leaves none of its actors behind") {
    job job{needing(1, 1, sync_policy::latest_token, 1)};
    auto before = job.actors_alive();
    job.join({0});
    job.push(0, 0);
    job.leave(0);
    REQUIRE(job.report);
    CHECK(job.actors_alive() == before - 4); // chief, recorder, token queue, accumulator
  }

  TEST_CASE("a job may begin with a later step") {
    auto config = needing(1, 1, sync_policy::latest_token, 2);
    config.first_step = 40;
    job job{config};
    job.join({0});
    job.push(0, 39);
    job.push(0, 40);
    CHECK(job.take(0, 40).value().reader().getStep() == 41);
    job.push(0, 41);
    job.leave(0);
    REQUIRE(job.steps.size() == 2);
    CHECK(job.steps[0].step == 41);
    CHECK(replicas_of(job.steps[0].stale) == replica_list{0});
    CHECK(job.report->step == 42);
  }

  TEST_CASE("cancel tells the others to stop as soon as there is enough") {
    job job{needing(2, 4, sync_policy::cancel)};
    job.join({0, 1, 2, 3});
    job.push(0, 0);
    CHECK(job.cancelled(3).empty());
    job.push(2, 0);
    for (uint32_t who = 0; who < 4; ++who)
      CHECK(job.cancelled(who) == std::vector<uint64_t>{1});
    REQUIRE(job.steps.size() == 1);
    CHECK(replicas_of(job.steps[0].cancelled) == replica_list{1, 3});
    CHECK(job.steps[0].cancelled[0].local_step == 0);
  }

  TEST_CASE("a replica that fails is named, and the job goes on while there are enough") {
    job job{needing(1, 3)};
    job.join({0, 1, 2});
    job.leave(1, {errc::user_code, "the data is gone"});
    CHECK(job.warnings
          == std::vector<std::string>{
            "lost replica 1: the data is gone; the job goes on with 2 of 3 replicas"});
    job.push(0, 0);
    REQUIRE(job.steps.size() == 1);
    CHECK(job.steps[0].live == 2);
    job.stop("enough");
    job.push(2, 1);
    job.leave(0);
    job.leave(2);
    REQUIRE(job.report);
    REQUIRE(job.report->lost.size() == 1);
    CHECK(job.report->lost[0].replica == 1);
    CHECK(job.report->lost[0].reason == error{errc::user_code, "the data is gone"});
    CHECK_FALSE(job.report->failure);
  }

  TEST_CASE("too few replicas end the job, and the line names the last one lost") {
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel}) {
      job job{needing(2, 2, policy)};
      job.join({0, 1});
      job.leave(1, {errc::user_code, "the data is gone"});
      job.leave(0);
      REQUIRE(job.report);
      REQUIRE(job.report->failure);
      CHECK(*job.report->failure
            == error{errc::user_code, "step 1 needs 2 gradients, but 1 of 2 replicas are left; "
                                      "lost replica 1: the data is gone"});
      CHECK(job.report->step == 0);
      REQUIRE(job.report->lost.size() == 1);
      CHECK(job.warnings.empty());
    }
  }

  TEST_CASE("under tensorflow a single replica may be enough") {
    job job{needing(2, 2, sync_policy::tensorflow)};
    job.join({0, 1});
    job.leave(1, {errc::user_code, "the data is gone"});
    CHECK(job.warnings.size() == 1);
    job.push(0, 0);
    job.push(0, 0);
    CHECK(job.steps.size() == 1);
    job.leave(0, {errc::user_code, "the other half too"});
    REQUIRE(job.report);
    CHECK(job.report->failure->code == errc::user_code);
    CHECK(job.report->lost.size() == 2);
  }

  TEST_CASE("a replica that fails before the others have come is not the last one") {
    job job{needing(2, 3)};
    job.join({0});
    job.leave(0, {errc::user_code, "too early"});
    CHECK_FALSE(job.report);
    job.join({1, 2});
    job.push(1, 0);
    job.push(2, 0);
    CHECK(job.steps.size() == 1);
  }

  TEST_CASE("a replica that vanishes is missed") {
    job job{needing(1, 2)};
    job.join({0, 1});
    job.replicas[1].reset();
    job.settle();
    CHECK(job.warnings
          == std::vector<std::string>{"lost replica 1: is gone without a farewell; the job goes on "
                                      "with 1 of 2 replicas"});
  }

  TEST_CASE("a replica that another has taken the place of is not missed") {
    job job{needing(1, 3)};
    job.join({0, 1});
    job.replicas[2]->tell(job.lead, make_join_job(1));
    job.settle();
    job.replicas[1].reset();
    job.settle();
    CHECK(job.warnings.empty());
    job.replicas[2].reset();
    job.settle();
    CHECK(job.warnings.size() == 1);
  }

  TEST_CASE("a replica that leaves before the end without a reason is lost as well") {
    job job{needing(1, 2)};
    job.join({0, 1});
    job.leave(0);
    CHECK(job.warnings
          == std::vector<std::string>{"lost replica 0: its function returned before the job was "
                                      "over; the job goes on with 1 of 2 replicas"});
  }

  TEST_CASE("a farewell of a replica that never came is ignored") {
    job job{needing(2, 2)};
    job.join({0});
    job.leave(1, {errc::user_code, "who am I"});
    CHECK_FALSE(job.report);
    CHECK(job.warnings.empty());
  }

  TEST_CASE("a job that is asked to stop ends with its step, which has its record") {
    job job{needing(2, 2)};
    job.join({0, 1});
    job.push(0, 0);
    job.stop("Ctrl-C");
    job.stop("again");
    CHECK(job.cancelled(0).empty());
    job.push(1, 0);
    CHECK(job.cancelled(0) == std::vector<uint64_t>{never});
    job.leave(0);
    job.leave(1);
    REQUIRE(job.report);
    CHECK(job.report->stopped == "Ctrl-C");
    CHECK_FALSE(job.report->failure);
    CHECK(job.report->step == 1);
    CHECK(job.steps.size() == 1);
    CHECK(job.report->lost.empty());
  }

  TEST_CASE("a step that is half done after a stop is taken back, without a snapshot, and said") {
    auto config = needing(2, 2);
    config.wants_snapshot = [](uint64_t, bool last) { return last; };
    job job{config, {"v", "w"}};
    job.join({0, 1});
    job.push(0, 0);
    job.push(1, 0);
    job.push(0, 1);
    job.push_to(job.accumulators[0], 1, 1); // enough for one of the variables
    job.stop("Ctrl-C");
    job.pass(6s);
    CHECK(job.cancelled(0) == std::vector<uint64_t>{never});
    job.push_to(job.accumulators[1], 1, 1);
    job.leave(0);
    job.leave(1);
    REQUIRE(job.report);
    CHECK_FALSE(job.report->failure);
    CHECK(job.report->step == 1);
    CHECK(job.steps.size() == 1);
    CHECK(job.snapshots.empty());
    CHECK(job.warnings
          == std::vector<std::string>{
            "no checkpoint of step 1: step 2 has changed 1 of 2 variables, and cannot end"});
  }

  TEST_CASE("a replica that comes after the end is sent home, and waited for") {
    job job{needing(1, 2)};
    job.join({0});
    job.stop("changed my mind");
    job.push(0, 0);
    job.leave(0);
    CHECK_FALSE(job.report);
    job.join({1});
    CHECK(job.cancelled(1) == std::vector<uint64_t>{never});
    CHECK_FALSE(job.report);
    job.leave(1);
    CHECK(job.report);
  }

  TEST_CASE("a job that is stopped before a replica came waits for those on their way") {
    job job{needing(2, 2)};
    job.stop("changed my mind");
    CHECK_FALSE(job.report);
    job.pass(6s);
    job.join({0, 1});
    CHECK(job.cancelled(0) == std::vector<uint64_t>{never});
    job.leave(0);
    job.leave(1);
    REQUIRE(job.report);
    CHECK(job.report->stopped == "changed my mind");
    CHECK(job.report->lost.empty());
  }

  TEST_CASE("a step that cannot end is noticed, with what there is and what it needs") {
    auto config = needing(3, 3);
    config.absent = {1};
    job job{config};
    job.join({0, 2});
    job.give_and_wait({0, 2});
    job.pass(2s);
    job.leave(0);
    job.leave(2);
    REQUIRE(job.report);
    REQUIRE(job.report->failure);
    CHECK(*job.report->failure
          == error{errc::stalled,
                   "step 1 cannot end: it needs 3 gradients, 2 of 3 replicas are live, all of them "
                   "wait for a token, and no token is left"});
  }

  TEST_CASE("no step stalls for gradients that lost replicas gave only in part") {
    job job{needing(1, 3, sync_policy::k_batch_async, 10), {"w", "v"}};
    job.join({0, 1, 2});
    for (uint32_t lost : {0, 1}) {
      job.push_to(job.accumulators[0], lost, 0);
      ++job.pushes;
      job.leave(lost, {errc::unavailable, "its node is gone"});
    }
    job.push(2, 0);
    CHECK(job.steps.size() == 1);
    auto token = job.replicas[2]->ask<msg<wire::Token>>(job.tokens, make_take_token(2, 0, 3));
    job.settle();
    CHECK_FALSE(token.has_come());
    job.pass(2s);
    CHECK(token.has_come());
    CHECK(job.steps.size() == 3);
    CHECK(job.steps.back().updates.size() == 2);
    CHECK(job.warnings.back()
          == "'v' does without 2 gradients that lost replicas gave only in part");
    CHECK_FALSE(job.report);
  }

  TEST_CASE("no step stalls for gradients that were lost with their replicas and an owner") {
    job job{needing(2, 2, sync_policy::k_batch_async, 10)};
    job.join({0, 1});
    job.push(0, 0);
    job.leave(1, {errc::unavailable, "its node is gone"});
    job.stranger.tell(job.lead, make_owners_lost("node 'ps 1' is gone"));
    auto token = job.replicas[0]->ask<msg<wire::Token>>(job.tokens, make_take_token(0, 0, 1));
    job.settle();
    CHECK_FALSE(token.has_come());
    job.pass(2s);
    CHECK(token.has_come());
    CHECK(job.steps.size() == 1);
    CHECK_FALSE(job.report);
  }

  TEST_CASE("without a loss, a variable that lacks gradients stalls the job") {
    job job{needing(1, 1, sync_policy::k_batch_async), {"w", "v"}};
    job.join({0});
    job.push_to(job.accumulators[0], 0, 0);
    job.replicas[0]->ask<msg<wire::Token>>(job.tokens, make_take_token(0, 0, 1));
    job.pass(2s);
    job.leave(0);
    REQUIRE(job.report);
    REQUIRE(job.report->failure);
    CHECK(*job.report->failure
          == error{errc::stalled,
                   "step 1 cannot end: it needs 1 gradients, 1 of 1 replicas are live, all of them "
                   "wait for a token, and no token is left; too few gradients came for 'v'"});
  }

  TEST_CASE("a step is not taken for stalled while a replica computes") {
    auto config = needing(3, 3);
    config.absent = {1};
    job job{config};
    job.join({0, 2});
    job.push(0, 0);
    CHECK_FALSE(job.take(0, 0).has_come());
    job.pass(60s);
    CHECK(job.warnings.empty());
    CHECK(job.cancelled(0).empty());
  }

  TEST_CASE("a step is not taken for stalled while a replica is on the way") {
    job job{needing(2, 2)};
    job.join({0});
    job.push(0, 0);
    CHECK_FALSE(job.take(0, 0).has_come());
    job.pass(60s);
    job.join({1});
    job.push(1, 0);
    CHECK(job.steps.size() == 1);
  }

  TEST_CASE("a replica that comes unexpected is not taken for one that is on the way") {
    auto config = needing(3, 3);
    config.absent = {2};
    job job{config};
    job.join({0, 2});
    job.give_and_wait({0, 2});
    job.pass(60s);
    CHECK(job.cancelled(0).empty());
    job.join({1});
    job.push(1, 0);
    CHECK(job.steps.size() == 1);
  }

  TEST_CASE("a replica that failed and comes again is not taken for one that is awaited") {
    auto config = needing(2, 3);
    config.rejoin_timeout = 30s;
    job job{config};
    job.join({0, 1, 2});
    job.leave(2, {errc::user_code, "the data is gone"});
    job.leave(1, {errc::unavailable, "its node is gone"});
    job.join({2});
    job.push(2, 0);
    CHECK_FALSE(job.take(2, 0).has_come());
    job.leave(0, {errc::user_code, "the data is gone"});
    job.pass(20s);
    CHECK(job.cancelled(2).empty());
    job.join({1});
    job.push(1, 0);
    CHECK(job.steps.size() == 1);
  }

  TEST_CASE("a warning names a lost replica that is awaited, how long, and what for") {
    auto config = needing(2, 3);
    config.rejoin_timeout = 30s;
    job job{config};
    job.join({0, 1, 2});
    job.leave(1, {errc::unavailable, "its node is gone"});
    job.leave(2, {errc::unavailable, "its node is gone"});
    CHECK(job.warnings
          == std::vector<std::string>{
            "lost replica 1: its node is gone; the job goes on with 2 of 3 replicas, and awaits it "
            "for 30.0 s",
            "lost replica 2: its node is gone; it is awaited for 30.0 s, since step 1 needs 2 "
            "gradients and 1 of 3 replicas are left"});
  }

  TEST_CASE("a job that ends awaits no replica, and sends home those that come") {
    auto config = needing(2, 3);
    config.steps = 1;
    config.rejoin_timeout = 1000s;
    job job{config};
    job.join({0, 1, 2});
    job.leave(2, {errc::unavailable, "its node is gone"});
    job.push(0, 0);
    job.push(1, 0);
    job.leave(0);
    CHECK_FALSE(job.report);
    job.join({2});
    CHECK_FALSE(job.cancelled(2).empty());
    job.leave(1);
    CHECK_FALSE(job.report);
    job.leave(2);
    REQUIRE(job.report);
    CHECK_FALSE(job.report->failure);
  }

  TEST_CASE("a job that lacks a replica for good is over as soon as it is stopped") {
    auto config = needing(3, 3);
    config.rejoin_timeout = 1000s;
    job job{config};
    job.join({0, 1, 2});
    job.leave(2, {errc::unavailable, "its node is gone"});
    job.stop("enough");
    job.pass(config.stop_timeout + 2s);
    job.leave(0);
    job.leave(1);
    CHECK(job.report);
  }

  TEST_CASE("under dynamic backups a replica that is awaited no longer is not needed") {
    auto config = needing(3, 3);
    config.sync.dynamic = dynamic_backups{.gain = gain_model::power};
    config.rejoin_timeout = 5s;
    job job{config};
    job.join({0, 1, 2});
    job.give_and_wait({0, 1});
    job.leave(2, {errc::unavailable, "its node is gone"});
    job.pass(4s);
    CHECK(job.steps.empty());
    job.pass(2s);
    REQUIRE(job.steps.size() == 1);
    CHECK(job.steps[0].needed == 2);
  }

  TEST_CASE("a step that takes too long ends the job, and names the missing replicas") {
    auto config = needing(3, 4);
    config.deadline = 60s;
    job job{config};
    job.join({0, 1, 2});
    job.push(1, 0);
    CHECK_FALSE(job.take(1, 0).has_come());
    job.pass(11s);
    CHECK(job.warnings
          == std::vector<std::string>{"step 1 takes 10.5 s so far; still waiting for replica 0, "
                                      "replica 2, replica 3 (not there)"});
    job.pass(40s);
    CHECK(job.warnings.size() == 1);
    CHECK(job.cancelled(0).empty());
    job.pass(10s);
    CHECK(job.cancelled(0) == std::vector<uint64_t>{never});
    for (uint32_t who : {0U, 1U, 2U})
      job.leave(who);
    job.pass(31s);
    REQUIRE(job.report);
    REQUIRE(job.report->failure);
    CHECK(*job.report->failure
          == error{errc::deadline_exceeded,
                   "step 1 is not over after 60.5 s; still missing: replica 0, replica 2, replica "
                   "3 (not there)"});
  }

  TEST_CASE("an owner that says nothing ends the job at the deadline, and its variable is named") {
    auto config = needing(1, 1);
    config.deadline = 60s;
    job job{config, {"v", "w"}, owners_that::say_nothing};
    job.join({0});
    job.push(0, 0);
    job.stop("Ctrl-C"); // cuts no update short
    job.pass(62s);
    job.leave(0);
    REQUIRE(job.report);
    REQUIRE(job.report->failure);
    CHECK(
      *job.report->failure
      == error{errc::deadline_exceeded, "step 1 is not over after 60.5 s; not updated yet: v, w"});
  }

  TEST_CASE("reports that come twice, or without gradients, close no step") {
    job job{needing(2, 2)};
    job.join({0, 1});
    auto report = [&](uint32_t replica) {
      arrival came{.from = {.replica = replica}};
      job.stranger.tell(job.lead, make_taken_gradient(0, {&came, 1}, {}));
      job.settle();
    };
    report(0);
    report(0);
    CHECK(job.steps.empty());
    job.leave(0);
    job.leave(1);
    REQUIRE(job.report);
    CHECK(job.report->failure);
  }

  TEST_CASE("a gradient of a replica that there is not ends the job, and is named") {
    job job{needing(2, 2)};
    job.join({0, 1});
    arrival came{.from = {.replica = 4'000'000'000}};
    job.stranger.tell(job.lead, make_taken_gradient(0, {&came, 1}, {}));
    job.settle();
    job.leave(0);
    job.leave(1);
    REQUIRE(job.report);
    CHECK(
      *job.report->failure
      == error{errc::malformed, "step 1 was given a gradient of replica 4000000000; there are 2"});
  }

  TEST_CASE("an actor that joins as a replica that there is not is none of the job's") {
    job job{needing(1, 1)};
    job.stranger.tell(job.lead, make_join_job(7));
    caf::anon_send(job.lead, make_join_job(0)); // without a sender
    job.settle();
    job.join({0});
    job.push(0, 0);
    CHECK(job.steps.size() == 1);
    CHECK(job.steps[0].live == 1);
  }

  TEST_CASE("each step has a deadline and a warning of its own") {
    auto config = needing(1, 1);
    config.deadline = 60s;
    job job{config};
    job.join({0});
    for (uint64_t step = 0; step < 2; ++step) {
      job.pass(50s);
      job.push(0, step);
    }
    CHECK(job.steps.size() == 2);
    CHECK(job.warnings.size() == 2);
  }

  TEST_CASE("a replica that does not leave is left behind, and named") {
    auto config = needing(1, 2);
    config.leave_deadline = 20s;
    job job{config};
    job.join({0, 1});
    job.stop("enough");
    job.push(0, 0);
    job.leave(0);
    job.pass(20s);
    CHECK_FALSE(job.report);
    job.pass(2s);
    REQUIRE(job.report);
    REQUIRE(job.report->lost.size() == 1);
    CHECK(job.report->lost[0].replica == 1);
    CHECK(job.report->lost[0].reason
          == error{errc::deadline_exceeded, "did not leave when the job was over"});
    CHECK_FALSE(job.report->failure);
  }

  TEST_CASE("an owner that refuses an update ends the job with its reason") {
    job job{needing(1, 1), {"w"}, owners_that::lack_an_optimizer};
    job.join({0});
    job.push(0, 0);
    job.leave(0);
    REQUIRE(job.report);
    REQUIRE(job.report->failure);
    CHECK(job.report->failure->code == errc::failed_precondition);
    CHECK(job.report->failure->message
          == "variable 'w' has no optimizer yet; send UseOptimizer first");
    CHECK(job.report->step == 0);
  }

  TEST_CASE("an owner that is gone ends the job") {
    job job{needing(1, 1)};
    job.join({0});
    caf::anon_send_exit(job.owners[0], caf::exit_reason::kill);
    job.push(0, 0);
    job.leave(0);
    REQUIRE(job.report);
    REQUIRE(job.report->failure);
    CHECK(job.report->failure->code == errc::unavailable);
  }

  TEST_CASE("a snapshot holds what owners and queue hold, and is taken before tokens go out") {
    chief_config config{.sync = {1, 1, sync_policy::tensorflow}, .steps = 3};
    config.wants_snapshot = [](uint64_t step, bool) { return step == 1; };
    job run{config};
    run.join({0});
    run.push(0, 0);
    REQUIRE(run.steps.size() == 1);
    REQUIRE(run.snapshots.size() == 1);
    const auto& taken = run.snapshots.front();
    CHECK(taken.step == 1);
    CHECK(taken.time == run.steps[0].ended);         // taking it took no time
    CHECK(taken.tokens == std::vector<uint64_t>{0}); // the initial one
    REQUIRE(taken.variables.size() == 1);
    CHECK(taken.variables[0].name == "w");
    CHECK(taken.variables[0].state.version == 1);
    CHECK(taken.variables[0].state.optimizer == "sgd");
    CHECK(taken.replicas.empty()); // a puppet does not say where it is
    CHECK(run.status().getTokens() == 2);
  }

  TEST_CASE("a job that goes on from a snapshot puts a step's tokens first, not the initial ones") {
    job run{
      {.sync = {1, 3, sync_policy::tensorflow}, .first_step = 7, .steps = 3, .resumes = true}};
    CHECK(run.status().getTokens() == 3);
    CHECK(run.status().getNextStep() == 7);
  }

  TEST_CASE("a job that saves and is asked to stop saves the step that it ends with") {
    chief_config config{.sync = {1, 1, sync_policy::latest_token}, .steps = 9};
    std::vector<bool> asked;
    config.wants_snapshot = [&asked](uint64_t, bool last) {
      asked.push_back(last);
      return last;
    };
    job run{config};
    run.join({0});
    run.stop("enough");
    CHECK_FALSE(run.report);
    run.push(0, 0);
    run.leave(0);
    REQUIRE(run.report);
    CHECK(run.report->step == 1);
    CHECK(run.report->stopped == "enough");
    CHECK(asked == std::vector<bool>{true});
    CHECK(run.snapshots.size() == 1);
  }

  TEST_CASE("a job that saves and is asked to stop does not wait for ever for its step") {
    chief_config config{.sync = {1, 1, sync_policy::latest_token}, .steps = 9};
    config.wants_snapshot = [](uint64_t, bool) { return true; };
    job run{config};
    run.join({0});
    run.stop("enough");
    run.pass(6s);
    run.leave(0);
    REQUIRE(run.report);
    CHECK(run.report->step == 0);
    CHECK(run.snapshots.empty());
  }

  TEST_CASE("a stopped job is saved when its replicas leave as asked, dynamic or not") {
    for (auto is_dynamic : {false, true}) {
      CAPTURE(is_dynamic);
      auto config = needing(3, 3);
      if (is_dynamic) config.sync.dynamic = dynamic_backups{.gain = gain_model::power};
      config.min_replicas = 1;
      config.wants_snapshot = [](uint64_t, bool last) { return last; };
      job job{config};
      job.join({0, 1, 2});
      for (uint32_t who : {0U, 1U, 2U})
        job.push(who, 0);
      job.stop("SIGTERM");
      for (uint32_t who : {0U, 1U, 2U})
        job.leave(who, {errc::cancelled, "its process was asked to stop"});
      job.pass(20s);
      REQUIRE(job.report);
      CHECK_FALSE(job.report->failure);
      CHECK(job.report->step == 1);
      CHECK(job.snapshots.size() == 1);
    }
  }

  TEST_CASE("a job whose replicas left as asked is saved before it fails, awaited or not") {
    for (auto timeout : {0s, 5s}) {
      CAPTURE(timeout.count());
      auto config = needing(2, 3);
      config.min_replicas = 2;
      config.rejoin_timeout = timeout;
      config.wants_snapshot = [](uint64_t, bool last) { return last; };
      job job{config};
      job.join({0, 1, 2});
      job.push(0, 0);
      job.push(1, 0);
      for (uint32_t who : {0U, 1U})
        job.leave(who, {errc::cancelled, "its process was asked to stop"});
      job.pass(timeout + config.stop_timeout + 2s);
      job.leave(2);
      REQUIRE(job.report);
      REQUIRE(job.report->failure);
      CHECK(job.report->failure->message.find("its process was asked to stop")
            != std::string::npos);
      CHECK(job.report->step == 1);
      CHECK(job.snapshots.size() == 1);
    }
  }

  TEST_CASE("a job may lose replicas if those that are left can give what a step needs") {
    CHECK(may_lose_replicas({3, 4, sync_policy::latest_token}));
    CHECK(may_lose_replicas({3, 4, sync_policy::cancel}));
    CHECK(may_lose_replicas({3, 4, sync_policy::k_async}));
    CHECK_FALSE(may_lose_replicas({4, 4, sync_policy::latest_token}));
    CHECK_FALSE(may_lose_replicas({4, 4, sync_policy::k_async}));
    CHECK_FALSE(may_lose_replicas({1, 1, sync_policy::tensorflow}));
    CHECK_FALSE(may_lose_replicas({1, 1, sync_policy::ssp}));
    // One replica may give several gradients to a step.
    CHECK(may_lose_replicas({4, 4, sync_policy::tensorflow}));
    CHECK(may_lose_replicas({4, 4, sync_policy::k_batch_async}));
    sync_options once{4, 4, sync_policy::tensorflow};
    once.one_gradient_per_replica = true;
    CHECK_FALSE(may_lose_replicas(once));
    sync_options dynamic{4, 4, sync_policy::latest_token};
    dynamic.dynamic.emplace();
    CHECK(may_lose_replicas(dynamic));
  }
}

} // namespace chief_test
