// SPDX-License-Identifier: Apache-2.0
// Goal: what a failover client has asked is asked again in the right order, and a chief is told of
// each gradient once. Method: the parts of its state, without actors.
#include "actors/replication/failover_client.hpp"
#include "messages/checks/limits.hpp"
#include "messages/replication_message.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"

namespace failover_client_state_test {

using namespace troupe;
using phase = failover_client_state::phase;
using id_list = std::vector<uint64_t>;

namespace {

arrival of_replica(uint32_t replica) {
  return {{.replica = replica}};
}

msg<wire::TakenGradient> report(uint64_t step, const std::vector<arrival>& accepted) {
  return make_taken_gradient(step, accepted, {});
}

/// A search that finds nothing.
bool in_vain(const std::function<void(const caf::strong_actor_ptr&)>&) {
  return false;
}

failover_client_state state_of(bool has_accumulators) {
  failover_client_config config{.name = "w", .closes_steps = true, .first_step = 3};
  if (has_accumulators) config.accumulators = {in_vain, in_vain};
  return failover_client_state{std::move(config)};
}

} // namespace

TEST_SUITE("actors/replication/failover_client_state") {
  TEST_CASE("gradients that are given again come before what was asked first") {
    flight_list flights;
    CHECK(flights.add({}) == 0);
    CHECK(flights.add({.is_repetition = true}) == 1);
    CHECK(flights.add({}) == 2);
    CHECK(flights.in_order() == id_list{1, 0, 2});
    auto again = flights.take_if([](const flight& one) { return one.is_repetition; });
    CHECK(again.size() == 1);
    CHECK(flights.in_order() == id_list{0, 2});
    CHECK(flights.add({}) == 3); // a number is not given twice
  }

  TEST_CASE("only the answer to the last asking counts") {
    flight_list flights;
    auto id = flights.add({});
    flights.at(id).attempts = 2;
    CHECK(flights.find(id, 1) == nullptr);
    REQUIRE(flights.find(id, 2) != nullptr);
    flights.take(id);
    CHECK(flights.find(id, 2) == nullptr);
  }

  TEST_CASE("a flight waits for another holder, or for the present one to be found") {
    flight_list flights;
    auto& one = flights.at(flights.add({}));
    CHECK_FALSE(flights.any_waits());
    one.is_early = true;
    CHECK(flights.any_waits());
    CHECK_FALSE(flights.any_failed());
    one.is_early = false;
    one.failed = error{errc::unavailable, "gone"};
    CHECK(flights.any_failed());
    CHECK(flights.any_waits());
  }

  TEST_CASE("no change is asked for before it has a number, nor more than an owner remembers") {
    change_numbers changes;
    std::vector<request_id> asked;
    for (size_t i = 0; i < limits::requests_of_client_max + 2; ++i)
      changes.later.emplace_back([&] { asked.push_back(changes.begin()); });
    changes.ask_later_ones(false);
    CHECK(asked.empty());
    changes.client = 7;
    changes.ask_later_ones(false);
    REQUIRE(asked.size() == limits::requests_of_client_max);
    CHECK(asked.front() == request_id{7, 1, 1});
    CHECK(asked.back() == request_id{7, limits::requests_of_client_max, 1});
    changes.open.erase(1);
    changes.ask_later_ones(false);
    CHECK(asked.back() == request_id{7, limits::requests_of_client_max + 1, 2});
    changes.ask_later_ones(true);
    CHECK(changes.later.empty());
  }

  TEST_CASE("no change is asked for that makes an owner forget an earlier one without an answer") {
    change_numbers changes;
    changes.client = 7;
    size_t asked = 0;
    auto ask_one_more = [&] {
      changes.later.emplace_back([&] {
        static_cast<void>(changes.begin());
        ++asked;
      });
      changes.ask_later_ones(false);
    };
    for (size_t i = 0; i < limits::requests_of_client_max; ++i)
      ask_one_more();
    changes.open = {1};
    ask_one_more();
    CHECK(asked == limits::requests_of_client_max);
    changes.open.clear();
    changes.ask_later_ones(false);
    CHECK(asked == limits::requests_of_client_max + 1);
  }

  TEST_CASE("a report that comes again is told as far as it is new") {
    step_reports reports{0, true};
    CHECK(reports.add(report(0, {of_replica(1)})).reader().getAccepted().size() == 1);
    CHECK(reports.add(report(0, {of_replica(1)})).is_empty());
    auto amended = reports.add(report(0, {of_replica(1), of_replica(2)}));
    REQUIRE_FALSE(amended.is_empty());
    CHECK(amended.reader().getAmends());
    CHECK(amended.reader().getAccepted().size() == 1);
    CHECK(reports.add_closed({.step = 0, .accepted = {of_replica(2)}}).is_empty());
    CHECK_FALSE(reports.add(report(1, {of_replica(1)})).is_empty());
    CHECK(reports.add_closed({.step = 0, .accepted = {of_replica(3)}}).is_empty()); // it is over
  }

  TEST_CASE("a report is held back until its step is closed, or void") {
    step_reports reports{4, false};
    CHECK(reports.next() == 4);
    CHECK(reports.add(report(4, {of_replica(1)})).is_empty());
    CHECK(reports.has_uncertain());
    reports.forget_uncertain();
    CHECK(reports.release().is_empty());
    CHECK(reports.add(report(4, {of_replica(2)})).is_empty());
    reports.close(4);
    CHECK(reports.next() == 5);
    CHECK(reports.release().reader().getAccepted()[0].getOrigin().getReplica() == 2);
    CHECK_FALSE(reports.has_uncertain());
  }

  TEST_CASE("a variable that has moved is sought again, by term") {
    auto state = state_of(true);
    CHECK(state.now_in == phase::asking);
    state.holder.is_looking = true;
    state.move(2);
    CHECK(state.now_in == phase::seeking);
    CHECK(state.holder.term == 2);
    CHECK(state.holder.is_looking); // the tick still comes
    state.holder.is_sought = true;
    state.find({.term = 2});
    CHECK_FALSE(state.holder.is_sought);
    CHECK(state.now_in == phase::seeking);
  }

  TEST_CASE("the chief's does not follow a mirror that is behind the job") {
    auto state = state_of(false);
    CHECK_FALSE(state.behind(std::nullopt)); // the mirror collects for the first step
    state.reports.close(3);
    REQUIRE(state.behind(std::nullopt));
    CHECK(state.behind(std::nullopt)->code == errc::unavailable);
    CHECK_FALSE(state.behind(closed_step{.step = 3}));
  }
}

} // namespace failover_client_state_test
