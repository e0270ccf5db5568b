// SPDX-License-Identifier: Apache-2.0
// Goal: the chief's decisions, and the phases that it goes through. Method: its state in a world in
// which no actor lives, with replicas that join and leave as the test says.
#include "actors/policies/backup_arrays.hpp"
#include "actors/training/chief.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/deterministic_world.hpp"

namespace chief_state_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;
using phase = chief_state::phase;

namespace {

/// A job of 4 replicas, of which a step needs 3.
struct states : deterministic_world {
  chief_state state_of(chief_config config = {}) {
    config.sync.replicas_to_aggregate = 3;
    config.sync.total_num_replicas = 4;
    config.sync.one_gradient_per_replica = true;
    config.first_step = 6;
    config.steps = 10;
    config.on_warning = [this](const std::string& line) { warnings.push_back(line); };
    config.on_trouble = [this](const std::string& line) { troubles.push_back(line); };
    config.on_open_step = [this](const open_step& step) { open = step; };
    config.world = &world;
    chief_state state{std::move(config)};
    state.begin_step();
    for (uint32_t replica = 0; replica < 4; ++replica)
      state.roster.join(replica);
    return state;
  }

  static const lost_replica& lose(chief_state& state, uint32_t replica) {
    REQUIRE(state.roster.leave(replica));
    return state.note_loss(replica, {errc::unavailable, "its node is gone"});
  }

  std::vector<std::string> warnings;
  std::vector<std::string> troubles;
  open_step open; ///< That the user was told of last.
};

} // namespace

TEST_SUITE("actors/training/chief_state") {
  TEST_CASE_FIXTURE(states, "a step is collected, applied and settled before it is saved") {
    auto state = state_of();
    CHECK(state.now_in == phase::collecting);
    CHECK(state.is_collecting());
    CHECK_FALSE(state.now_in.may_enter(phase::settling));
    CHECK_FALSE(state.now_in.may_enter(phase::saving));
    state.now_in.enter(phase::applying);
    CHECK_FALSE(state.is_collecting());
    CHECK_FALSE(state.now_in.may_enter(phase::collecting));
    CHECK(state.close_books().step == 7);
    state.enter(phase::settling);
    state.open_snapshot();
    CHECK(state.close_snapshot().step == 7);
    state.begin_step();
    CHECK(state.is_training());
    state.enter(phase::ending);
    CHECK_FALSE(state.is_training());
    CHECK_FALSE(state.now_in.may_enter(phase::collecting));
  }

  TEST_CASE_FIXTURE(states, "no gradient arrives after its step, whatever another clock says") {
    auto state = state_of();
    state.ledger = step_ledger{1};
    const std::vector<arrival> accepted{{{.replica = 0, .local_step = 6}, 0s, 6},
                                        {{.replica = 1, .local_step = 6}, 5s, 6}};
    const std::vector<arrival> stale{{{.replica = 2, .local_step = 5}, 3s, 6}};
    state.ledger.add(accepted, stale);
    state.now_in.enter(phase::applying);
    auto record = state.close_books();
    CHECK(record.ended == 0s);
    CHECK(record.apply == 0s);
    REQUIRE(record.accepted.size() == 2);
    REQUIRE(record.stale.size() == 1);
    CHECK(record.accepted[1].replica == 1);
    CHECK(record.accepted[1].arrived == record.ended);
    CHECK(record.stale[0].arrived == record.ended);
  }

  TEST_CASE_FIXTURE(states, "the user is told of the replicas that an open step has and needs") {
    auto state = state_of();
    CHECK(open == open_step{.step = 7, .live = 0, .needed = 3, .tokens = {}});
    state.note_join(2, {});
    CHECK(open.live == 4);
    lose(state, 1);
    CHECK(open == open_step{.step = 7, .live = 3, .needed = 3, .tokens = {}});
    REQUIRE(state.roster.leave(0));
    state.note_departure(0);
    CHECK(open.live == 2);
  }

  TEST_CASE_FIXTURE(states, "no replica of a snapshot has had a token of a step taken back") {
    auto state = state_of();
    state.end.ask(1s);
    state.end.ask(2s);
    CHECK(state.end.asked == 1s);
    CHECK(state.is_last());
    state.now_in.enter(phase::taking_back);
    CHECK(state.is_collecting());
    state.open_snapshot();
    state.saving.taken.replicas
      = {{.replica = 1, .local_step = 6}, {.replica = 0, .local_step = 4}};
    auto taken = state.close_snapshot();
    CHECK(taken.step == 6);
    CHECK(taken.replicas[0].replica == 0);
    CHECK(taken.replicas[0].local_step == 4);
    CHECK(taken.replicas[1].local_step == 5);
  }

  TEST_CASE_FIXTURE(states, "no replica of a snapshot is at a later step than the job") {
    auto state = state_of({.sync = {.policy = sync_policy::k_async}});
    state.now_in.enter(phase::applying);
    state.enter(phase::settling);
    state.open_snapshot();
    state.saving.taken.replicas
      = {{.replica = 0, .local_step = 6}, {.replica = 1, .local_step = 3000}};
    auto taken = state.close_snapshot();
    CHECK(taken.step == 6);
    CHECK(taken.replicas[0].local_step == 6);
    CHECK(taken.replicas[1].local_step == 6);
  }

  TEST_CASE_FIXTURE(states, "a loss is told, and how the job goes on") {
    auto state = state_of();
    state.warn_of(lose(state, 2));
    CHECK(state.enough_live());
    CHECK(troubles == std::vector<std::string>{"lost replica 2: its node is gone"});
    CHECK(warnings
          == std::vector<std::string>{
            "lost replica 2: its node is gone; the job goes on with 3 of 4 replicas"});
    const auto& last = lose(state, 0);
    CHECK_FALSE(state.enough_live());
    CHECK(state.want_of_replicas(last).message
          == "step 7 needs 3 gradients, but 2 of 4 replicas are left; "
             "lost replica 0: its node is gone");
    CHECK(state.end.report.lost.size() == 2);
    CHECK_FALSE(state.end.asked);
  }

  TEST_CASE_FIXTURE(states,
                    "a job that ends tells of a replica that failed, not of those it ends") {
    auto state = state_of();
    state.note_late_failure(1, {});
    state.note_late_failure(2, {errc::cancelled, "no step is wanted"});
    CHECK(warnings.empty());
    state.note_late_failure(3, {errc::user_code, "it found no rows"});
    CHECK(warnings
          == std::vector<std::string>{"lost replica 3: it found no rows; the job ends without it"});
    REQUIRE(state.end.report.lost.size() == 1);
    CHECK(state.end.report.lost[0].replica == 3);
  }

  TEST_CASE_FIXTURE(states, "a replica that may come back is awaited") {
    auto state = state_of({.rejoin_timeout = 30s});
    lose(state, 2);
    state.warn_of(lose(state, 3));
    CHECK(state.roster.awaited() == std::vector<uint32_t>{2, 3});
    CHECK(state.enough_live());
    CHECK(warnings.back()
          == "lost replica 3: its node is gone; it is awaited for 30.0 s, since step 7 needs 3 "
             "gradients and 2 of 4 replicas are left");
  }

  TEST_CASE_FIXTURE(states, "a job that stops for a loss stops for the first") {
    auto state = state_of({.stops_on_loss = true});
    lose(state, 1);
    lose(state, 2);
    REQUIRE(state.end.reason);
    CHECK(state.end.reason->message == "lost replica 1: its node is gone; the job stops for that");
    CHECK(state.is_last());
  }

  TEST_CASE_FIXTURE(states, "a replica may leave a job that has enough, and join it again") {
    auto state = state_of({.min_replicas = 3});
    const error asked{errc::cancelled, "its process was asked to stop"};
    REQUIRE(state.roster.leave(2));
    REQUIRE(state.may_leave(asked));
    CHECK_FALSE(state.may_leave({errc::unavailable, "its node is gone"}));
    state.note_departure(2);
    state.note_join(2, replica_actor{});
    CHECK(warnings
          == std::vector<std::string>{
            "replica 2 leaves after step 6, as its process is asked to; the job goes on with 3 of "
            "4 replicas",
            "replica 2 joins after step 6; the job goes on with 4 of 4 replicas"});
    CHECK(state.end.report.lost.empty());
  }

  TEST_CASE_FIXTURE(states, "a job that lacks a replica that was asked to leave stops") {
    auto state = state_of({.min_replicas = 4});
    const error asked{errc::cancelled, "its process was asked to stop"};
    REQUIRE(state.roster.leave(2));
    REQUIRE_FALSE(state.may_leave(asked));
    state.note_loss(2, asked);
    REQUIRE(state.end.reason);
    CHECK(state.end.reason->message
          == "the job needs 4 replicas (min_replicas), but 3 of 4 are left; lost replica 2: its "
             "process was asked to stop");
    CHECK(state.end.reason->code == errc::unavailable);
    CHECK(state.is_last());
  }

  TEST_CASE_FIXTURE(states, "a job stops for a replica that left as asked and did not come back") {
    auto state = state_of({.min_replicas = 4, .rejoin_timeout = 30s});
    const error asked{errc::cancelled, "its process was asked to stop"};
    for (uint32_t replica : {2U, 1U}) {
      REQUIRE(state.roster.leave(replica));
      state.note_loss(replica, asked);
    }
    CHECK_FALSE(state.end.asked); // it is awaited
    CHECK_FALSE(state.give_up(2));
    REQUIRE(state.end.reason);
    CHECK(state.end.reason->message
          == "the job needs 4 replicas (min_replicas), but 3 of 4 are left; lost replica 2: was "
             "awaited for 30.0 s after its process was asked to stop");
    CHECK(state.is_last());
    CHECK_FALSE(state.give_up(1)); // the job stops already
    CHECK(state.end.reason->message.find("lost replica 2") != std::string::npos);
  }

  TEST_CASE_FIXTURE(states, "a job that is asked to stop does not fail for a replica that left") {
    auto state = state_of({.min_replicas = 4, .rejoin_timeout = 30s});
    REQUIRE(state.roster.leave(2));
    state.note_loss(2, {errc::cancelled, "its process was asked to stop"});
    state.end.ask(1s);
    CHECK_FALSE(state.give_up(2));
    CHECK_FALSE(state.end.reason);
  }

  TEST_CASE_FIXTURE(states, "a job fails at once for a lost replica that did not come back") {
    auto state = state_of({.min_replicas = 4, .rejoin_timeout = 30s});
    lose(state, 2);
    auto failure = state.give_up(2);
    REQUIRE(failure);
    CHECK(failure->message
          == "the job needs 4 replicas (min_replicas), but 3 of 4 are left; lost replica 2: was "
             "awaited for 30.0 s after its node was gone");
    CHECK_FALSE(state.end.asked);
  }

  TEST_CASE_FIXTURE(states, "a step needs no more than are left, but never no gradient at all") {
    auto state = state_of({.sync = {.dynamic = dynamic_backups{.gain = gain_model::power}}});
    CHECK_FALSE(state.lowers_needed());
    for (uint32_t replica : {3U, 2U})
      REQUIRE(state.roster.leave(replica));
    CHECK(state.lowers_needed());
    CHECK(state.open.needed == 2);
    for (uint32_t replica : {1U, 0U})
      REQUIRE(state.roster.leave(replica));
    CHECK_FALSE(state.lowers_needed());
    CHECK(state.open.needed == 2);
  }

  TEST_CASE_FIXTURE(states, "a job goes on with estimates for backups, and saves them") {
    backup_estimates known;
    for (uint64_t step = 0; step < 3; ++step)
      known.arrivals.push_back(
        {.local_step = 3 + step, .arrivals = {{.seconds = 1.0}, {.seconds = 1.0}}});
    auto state = state_of({.sync = {.dynamic = dynamic_backups{.gain = gain_model::power}},
                           .resumes = true,
                           .backups = known});
    CHECK(state.open.needed == 4); // all are expected, and none had joined when the step began
    state.now_in.enter(phase::applying);
    CHECK(state.close_books().needed == 4);
    state.enter(phase::settling);
    state.open_snapshot();
    auto saved = read_backup_estimates(state.close_snapshot().backups).value();
    REQUIRE(saved.arrivals.size() == 4);
    CHECK(saved.arrivals[2].arrivals == known.arrivals[2].arrivals);
    CHECK(saved.arrivals[3].local_step == 6);
  }

  TEST_CASE_FIXTURE(states, "a stall names the variables that lack gradients others have") {
    auto state = state_of({.collected = {{.name = "v"}, {.name = "w"}, {.name = "x"}}});
    auto message_of = [&state](const std::vector<accumulator_progress>& progress) {
      return state.stall(0, progress).message;
    };
    CHECK(message_of({{7, 0}, {6, 2}, {6, 0}}).find("; too few gradients came for 'w', 'x'")
          != std::string::npos);
    CHECK(message_of({{6, 0}, {6, 2}, {6, 0}}).find("too few") == std::string::npos);
  }

  TEST_CASE_FIXTURE(states, "a phase that lasts too long says what it waits for") {
    auto state = state_of({.deadline = 60s, .stop_timeout = 5s});
    CHECK_FALSE(state.overdue(1h)); // the look at the queue says what is missing
    CHECK_FALSE(state.lateness({}, 10s));
    CHECK(warnings.empty());
    CHECK_FALSE(state.lateness({0, 1, 2}, 11s));
    CHECK_FALSE(state.lateness({0, 1, 2}, 12s));
    CHECK(warnings
          == std::vector<std::string>{"step 7 takes 11.0 s so far; still waiting for replica 3"});
    CHECK(state.lateness({}, 61s)->code == errc::deadline_exceeded);
    state.end.ask(10s);
    state.now_in.enter(phase::taking_back);
    CHECK_FALSE(state.overdue(75s));
    CHECK(state.overdue(76s)->code == errc::deadline_exceeded);
    state.config.deadline = job_time::max();
    CHECK_FALSE(state.overdue(1h));
    state.config.deadline = 60s;
    state.open_snapshot();
    CHECK_FALSE(state.overdue(60s));
    CHECK(state.overdue(61s)->message
          == "0 of those asked for a checkpoint of step 6 did not answer");
  }

  TEST_CASE_FIXTURE(states, "a stall is found with the second look, when all wait") {
    auto state = state_of();
    CHECK_FALSE(state.finds_stall({0, 1, 2}));
    CHECK_FALSE(state.finds_stall({0, 1, 2, 3}));
    CHECK(state.finds_stall({0, 1, 2, 3}));
    CHECK(state.stall(0, {}).code == errc::stalled);
    auto awaiting = state_of({.rejoin_timeout = 30s});
    lose(awaiting, 3);
    for (auto look = 0; look < 2; ++look)
      CHECK_FALSE(awaiting.finds_stall({0, 1, 2})); // the awaited one may still give a gradient
  }

  TEST_CASE_FIXTURE(states, "a stall after a loss names the last lost replica, and has its code") {
    auto state = state_of();
    lose(state, 2);
    REQUIRE(state.roster.leave(1));
    state.note_loss(1, {errc::user_code, "the data are broken"});
    CHECK(state.stall(0, {})
          == error{errc::user_code,
                   "step 7 cannot end: it needs 3 gradients, 2 of 4 replicas are live, all of them "
                   "wait for a token, and no token is left; lost replica 1: the data are broken"});
  }

  TEST_CASE_FIXTURE(states, "a stall has to do with a replica that is back only for its token") {
    for (auto policy : {sync_policy::latest_token, sync_policy::tensorflow}) {
      chief_config config;
      config.sync.policy = policy;
      auto state = state_of(std::move(config));
      lose(state, 2);
      state.roster.await(2, 0s, false);
      state.roster.join(2);
      auto is_named = policy == sync_policy::tensorflow;
      CHECK(state.stall(0, {}).code == (is_named ? errc::unavailable : errc::stalled));
    }
  }

  TEST_CASE_FIXTURE(states, "a replica that the job does not have gives it nothing") {
    auto state = state_of();
    std::vector<arrival> known{{{.replica = 3}}};
    std::vector<arrival> unknown{{{.replica = 4}}};
    CHECK_FALSE(state.stranger_in(make_taken_gradient(6, known, {}).reader()));
    auto stranger = state.stranger_in(make_taken_gradient(6, known, unknown).reader());
    REQUIRE(stranger);
    CHECK(stranger->code == errc::malformed);
    CHECK(stranger->message == "step 7 was given a gradient of replica 4; there are 4");
  }
}

} // namespace chief_state_test
