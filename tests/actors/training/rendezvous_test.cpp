// SPDX-License-Identifier: Apache-2.0
// Goal: a replica that waits at a rendezvous is woken, with the result or with the reason why there
// is none. Method: replicas that are puppets, so that messages come in every order that there can
// be.
#include "actors/training/rendezvous.hpp"
#include "messages/errors/failure.hpp"
#include "tests/actors/deterministic_world.hpp"

#include <stdexcept>

namespace rendezvous_test {

using namespace troupe;
using namespace troupe::test;

namespace {

struct function_a {};

struct other_function {};

/// A rendezvous and the replicas that it knows.
struct meeting : deterministic_world {
  explicit meeting(uint32_t replicas)
    : place(spawn(rendezvous, rendezvous_config{replicas,
                                                [this](run_outcome outcome) {
                                                  ++endings;
                                                  over = std::move(outcome);
                                                },
                                                std::chrono::seconds{3}})) {
    for (uint32_t i = 0; i < replicas; ++i)
      cast.push_back(std::make_unique<puppet>(world));
  }

  ~meeting() { caf::anon_send_exit(place, caf::exit_reason::kill); }

  void arrive(uint32_t replica, merge_site site = {&typeid(function_a)}) {
    cast[replica]->tell(place,
                        merge_arrival{replica, std::move(site), std::make_shared<uint32_t>(replica),
                                      cast[replica]->as<replica_actor>()});
    settle();
  }

  void merged(std::shared_ptr<void> value, std::exception_ptr thrown = nullptr) {
    cast[0]->tell(place, merge_result{std::move(value), std::move(thrown)});
    settle();
  }

  void leave(uint32_t replica, std::exception_ptr thrown = nullptr) {
    cast[replica]->tell(place, departure{replica, std::make_shared<uint32_t>(replica), thrown});
    settle();
  }

  void give_up_on_it() {
    caf::anon_send(place, give_up{});
    settle();
  }

  /// How often a replica was woken.
  size_t wakes(uint32_t replica) { return cast[replica]->heard_count(); }

  error reason() {
    REQUIRE(over->thrown);
    return reason_of(over->thrown);
  }

  std::vector<std::unique_ptr<puppet>> cast;
  std::optional<run_outcome> over;
  int endings = 0;
  rendezvous_actor place;
};

std::exception_ptr thrown(const std::string& text) {
  return std::make_exception_ptr(std::runtime_error{text});
}

} // namespace

TEST_SUITE("actors/training/rendezvous") {
  TEST_CASE("replica 0 is woken when all have come, the others when it has the result") {
    for (auto order : {std::vector{0U, 1U, 2U}, {2U, 1U, 0U}, {1U, 0U, 2U}}) {
      meeting three{3};
      three.arrive(order[0]);
      three.arrive(order[1]);
      CHECK(three.wakes(0) + three.wakes(1) + three.wakes(2) == 0);
      three.arrive(order[2]);
      CHECK(three.wakes(0) == 1);
      CHECK(three.wakes(1) + three.wakes(2) == 0);
      three.merged(std::make_shared<int>(1));
      CHECK(three.wakes(0) == 1);
      CHECK(three.wakes(1) == 1);
      CHECK(three.wakes(2) == 1);
      CHECK(three.endings == 0);
    }
  }

  TEST_CASE("a run is over when all have left, with what each returned") {
    meeting two{2};
    two.leave(1);
    CHECK(!two.over);
    two.leave(0);
    REQUIRE(two.over);
    CHECK(!two.over->thrown);
    REQUIRE(two.over->results.size() == 2);
    for (uint32_t i = 0; i < 2; ++i)
      CHECK(*std::static_pointer_cast<uint32_t>(two.over->results[i]) == i);
  }

  TEST_CASE("replicas meet as often as they like") {
    meeting two{2};
    for (int round = 0; round < 3; ++round) {
      two.arrive(0);
      two.arrive(1);
      two.merged(nullptr);
    }
    CHECK(two.wakes(0) == 3);
    CHECK(two.wakes(1) == 3);
    two.leave(0);
    two.leave(1);
    CHECK(!two.over->thrown);
  }

  TEST_CASE("a quick replica may be at its next call before the others are woken") {
    meeting two{2};
    two.arrive(0);
    two.arrive(1);
    two.cast[0]->tell(two.place, merge_result{});
    two.arrive(0);
    CHECK(two.wakes(1) == 1);
    two.arrive(1);
    CHECK(two.wakes(0) == 2);
  }

  TEST_CASE("a replica that waits is woken when another returns, in either order") {
    for (auto leaver_first : {true, false}) {
      meeting three{3};
      if (leaver_first) three.leave(1);
      three.arrive(0);
      three.arrive(2);
      CHECK(three.wakes(0) == (leaver_first ? 1 : 0));
      if (!leaver_first) three.leave(1);
      CHECK(three.wakes(0) == 1);
      CHECK(three.wakes(2) == 1);
      three.leave(0, thrown("told"));
      three.leave(2, thrown("told"));
      CHECK(three.reason() == error{errc::user_code, "told"});
      CHECK(three.over->culprit == 0);
    }
  }

  TEST_CASE("no replica waits for the rest when one has failed") {
    meeting three{3};
    three.arrive(0);
    three.leave(2, thrown("mine"));
    CHECK(three.wakes(0) == 1);
    three.arrive(1); // too late, and told at once
    CHECK(three.wakes(1) == 1);
    three.leave(0, thrown("told"));
    three.leave(1, thrown("told"));
    CHECK(three.reason() == error{errc::user_code, "mine"});
    CHECK(three.over->culprit == 2);
  }

  TEST_CASE("a replica that failed after it was told that the run is over is no culprit") {
    meeting three{3};
    three.arrive(0);
    three.leave(2, thrown("first"));
    three.leave(1, thrown("second"));
    three.leave(0, thrown("told"));
    CHECK(three.over->culprit == 1); // the first, by index, that failed by itself
  }

  TEST_CASE("calls that do not belong together end the run") {
    int here = 0, there = 0;
    const std::pair<merge_site, merge_site> pairs[] = {
      {{&typeid(function_a)}, {&typeid(other_function)}},
      {{&typeid(function_a), &here}, {&typeid(function_a), &there}},
      {{&typeid(function_a), nullptr, "a vector of 1"}, {&typeid(function_a), nullptr, ""}},
    };
    for (const auto& [first, second] : pairs) {
      meeting two{2};
      two.arrive(0, first);
      two.arrive(1, second);
      CHECK(two.wakes(0) == 1);
      CHECK(two.wakes(1) == 1);
      two.leave(0);
      two.leave(1);
      CHECK(two.over->results.size() == 2); // both have lived with it
    }
  }

  TEST_CASE("told to give up, it wakes those that wait; told again, it waits for none") {
    meeting three{3};
    three.arrive(0);
    three.arrive(2);
    three.give_up_on_it();
    CHECK(three.wakes(0) == 1);
    CHECK(three.wakes(2) == 1);
    three.leave(0);
    three.leave(2);
    CHECK(three.endings == 0);
    three.give_up_on_it();
    CHECK(three.endings == 1);
    CHECK(three.reason()
          == error{errc::deadline_exceeded,
                   "a run on 3 replicas is not over after 3.0 s: still computing: replica 1; in a "
                   "merge_call: replica 0, replica 2"});
  }

  TEST_CASE("told to give up during a merge, it does not wake the replica that merges") {
    meeting two{2};
    two.arrive(0);
    two.arrive(1);
    two.give_up_on_it();
    CHECK(two.wakes(0) == 1); // with what the others brought
    CHECK(two.wakes(1) == 1);
    two.merged(nullptr); // late
    CHECK(two.wakes(1) == 1);
    two.arrive(0);
    CHECK(two.wakes(0) == 2);
    two.leave(0, thrown("told"));
    two.leave(1, thrown("told"));
    CHECK(two.endings == 1);
  }

  TEST_CASE("when one has failed and another hangs, the failure comes out") {
    meeting two{2};
    two.leave(1, thrown("mine"));
    two.give_up_on_it();
    two.give_up_on_it();
    CHECK(two.reason() == error{errc::user_code, "mine"});
    CHECK(two.over->culprit == 1);
  }

  TEST_CASE("some of many missing replicas are named") {
    meeting many{12};
    many.arrive(3);
    many.give_up_on_it();
    many.give_up_on_it();
    CHECK(many.reason().message
          == "a run on 12 replicas is not over after 3.0 s: still computing: replica 0, replica 1, "
             "replica 2, replica 4, replica 5, replica 6, replica 7, replica 8 and 3 more; in a "
             "merge_call: replica 3");
  }
}

} // namespace rendezvous_test
