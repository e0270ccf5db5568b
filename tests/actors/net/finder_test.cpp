// SPDX-License-Identifier: Apache-2.0
// Goal: a program may look for an actor as often as it likes; what is kept does not grow. Method:
// two nodes of one virtual world, and a transport that counts questions.
#include "actors/net/finder.hpp"
#include "actors/net/node.hpp"
#include "tests/actors/deterministic_world.hpp"

#include <deque>

namespace finder_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// Carries what it is told to carry, and counts the questions.
struct counting_transport final : transport {
  void send(const node_address& /*from*/, parcel what) override {
    if (what.kind == parcel::content_kind::find) ++questions;
    bag.push_back(std::move(what));
  }

  std::deque<parcel> bag;
  size_t questions = 0;
};

/// Node 0 of two that are there; the other one is not while there is trouble with it.
struct two_members final : membership {
  explicit two_members(std::shared_ptr<node> own) : own_(std::move(own)) {}

  [[nodiscard]] const std::shared_ptr<node>& here() const override { return own_; }

  [[nodiscard]] std::string name_of(node_index peer) const override {
    return "node " + std::to_string(peer);
  }

  [[nodiscard]] std::shared_future<expected<node_address>> arrival(node_index peer) override {
    if (!trouble.empty()) return absent_;
    std::promise<expected<node_address>> there;
    there.set_value(node_address{peer, 0});
    return there.get_future();
  }

  [[nodiscard]] std::string trouble_with(node_index /*peer*/) const override { return trouble; }

  std::string trouble;

private:
  std::shared_ptr<node> own_;
  std::promise<expected<node_address>> comes_never_;
  std::shared_future<expected<node_address>> absent_ = comes_never_.get_future();
};

struct finder_of_two_nodes : deterministic_world {
  ~finder_of_two_nodes() {
    caf::anon_send_exit(seeker, caf::exit_reason::user_shutdown); // it may look again later
    settle_all();
  }

  void settle_all() {
    settle();
    while (!post.bag.empty()) {
      auto what = std::move(post.bag.front());
      post.bag.pop_front();
      (what.to.at.node == 0 ? here : there)->deliver(std::move(what));
      settle();
    }
  }

  answer<found_actor> look_for(const std::string& name, node_index at = 1) {
    auto result = asker.ask<found_actor>(
      seeker, find_actor{.at = at, .name = name, .deadline = job_time{100ms}});
    settle_all();
    return result;
  }

  void publish(const std::string& name, const puppet& actor) {
    publish_for_finders(*there, name, actor.as<caf::strong_actor_ptr>());
    settle_all();
  }

  counting_transport post;
  std::shared_ptr<node> here = node::make(world.system(), post, {0, 0}, "node 0");
  std::shared_ptr<node> there = node::make(world.system(), post, {1, 0}, "node 1");
  two_members members{here};
  finder_actor seeker = spawn(finder, &members);
  puppet asker{world};
  puppet store{world};
};

} // namespace

TEST_SUITE("actors/net/finder") {
  TEST_CASE_FIXTURE(finder_of_two_nodes, "a search that is too early ends at its deadline") {
    auto result = look_for("store");
    CHECK_FALSE(result.has_come());
    pass(200ms);
    CHECK(result.error().code == errc::deadline_exceeded);
    CHECK(result.error().message.find("'store' of node 1") != std::string::npos);
  }

  TEST_CASE_FIXTURE(finder_of_two_nodes, "a search at a node that does not come says why") {
    members.trouble = "process 7 is refused: it lacks a message";
    auto result = look_for("store");
    pass(200ms);
    CHECK(result.error()
          == error{errc::deadline_exceeded, "waited 0.1 s for the actor 'store' of node 1: process "
                                            "7 is refused: it lacks a message"});
  }

  TEST_CASE_FIXTURE(finder_of_two_nodes, "searches one after the other leave one question behind") {
    for (int i = 0; i < 5; ++i) {
      auto result = look_for("store");
      pass(200ms);
      CHECK(result.error().code == errc::deadline_exceeded);
    }
    CHECK(post.questions == 1);
    auto waiting = look_for("store");
    publish("store", store);
    CHECK(waiting.value().actor != nullptr);
    CHECK(post.questions == 1);
  }

  TEST_CASE_FIXTURE(finder_of_two_nodes,
                    "an answer that came too late is no answer to a later one") {
    look_for("store");
    pass(200ms);
    publish("store", store); // answers the question, and no search waits
    CHECK(look_for("store").value().actor != nullptr);
    CHECK(post.questions == 2);
  }

  TEST_CASE_FIXTURE(finder_of_two_nodes, "searches at the same time share a question") {
    auto first = look_for("store");
    auto second = look_for("store");
    auto other = look_for("shop");
    CHECK(post.questions == 2);
    publish("store", store);
    CHECK(first.value().actor == second.value().actor);
    CHECK_FALSE(other.has_come());
    pass(200ms);
    CHECK(other.error().code == errc::deadline_exceeded);
  }

  TEST_CASE_FIXTURE(finder_of_two_nodes, "a node that is lost ends all searches at it") {
    auto first = look_for("store");
    auto second = look_for("store");
    here->lose({1, 0}, {errc::unavailable, "gone"});
    settle();
    CHECK(first.error().code == errc::unavailable);
    CHECK(second.error().code == errc::unavailable);
    CHECK(look_for("store").error().code == errc::unavailable);
  }
}

} // namespace finder_test
