// SPDX-License-Identifier: Apache-2.0
// Goal: an actor of another node is an ordinary handle. Method: two or three nodes of one virtual
// world, and a transport in a test's hand.
#include "actors/net/node.hpp"
#include "actors/net/remote_proxy.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/deterministic_world.hpp"

#include <deque>

namespace node_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// Carries what it is told to carry.
struct postman final : transport {
  void send(const node_address& from, parcel what) override {
    bag.push_back({from, std::move(what)});
  }

  std::deque<std::pair<node_address, parcel>> bag;
};

/// An actor that answers the step of a token with one that is greater by 1.
caf::behavior successor() {
  return {[](const msg<wire::Token>& token) { return make_token(token.reader().getStep() + 1); }};
}

struct two_nodes : deterministic_world {
  two_nodes() {
    for (node_index i : {0U, 1U})
      nodes.push_back(node::make(world.system(), post, {i, 0}, "node " + std::to_string(i)));
  }

  // Turns the world and the post until both have nothing to do.
  void settle_all() {
    settle();
    while (!post.bag.empty())
      deliver_next();
  }

  void deliver_next() {
    auto [from, what] = std::move(post.bag.front());
    post.bag.pop_front();
    nodes[what.to.at.node]->deliver(std::move(what));
    settle();
  }

  // An actor of node 1 as node 0 knows it.
  caf::actor near(const caf::actor& far) {
    auto address = nodes[1]->show(caf::actor_cast<caf::strong_actor_ptr>(far), nodes[0]->address());
    return caf::actor_cast<caf::actor>(nodes[0]->handle_of(address));
  }

  // An actor of node 1 that passes its requests on to an actor of node 2.
  caf::actor delegate_to(const caf::actor& far) {
    auto address = nodes[2]->show(caf::actor_cast<caf::strong_actor_ptr>(far), nodes[1]->address());
    auto next = caf::actor_cast<caf::actor>(nodes[1]->handle_of(address));
    return world.system().spawn([next](caf::event_based_actor* self) -> caf::behavior {
      return {[self, next](const msg<wire::Token>& token) { return self->delegate(next, token); }};
    });
  }

  // The answer to a search for a name at a node, from another or the same; empty until it comes.
  std::shared_ptr<std::optional<expected<caf::strong_actor_ptr>>>
  look_for(const std::string& name, node_index at, node_index from = 0) {
    auto result = std::make_shared<std::optional<expected<caf::strong_actor_ptr>>>();
    nodes[from]->find({at, 0}, name,
                      [result](expected<caf::strong_actor_ptr> found) { *result = found; });
    return result;
  }

  postman post;
  std::vector<std::shared_ptr<node>> nodes;
  puppet asker{world};
};

} // namespace

TEST_SUITE("actors/net/node") {
  TEST_CASE_FIXTURE(two_nodes, "a message reaches the actor that a proxy stands for") {
    puppet hearer{world};
    asker.tell(near(hearer.as<caf::actor>()), make_token(7));
    settle();
    CHECK(hearer.heard_count() == 0);
    settle_all();
    REQUIRE(hearer.heard<wire::Token>().size() == 1);
    CHECK(hearer.heard<wire::Token>()[0].reader().getStep() == 7);
  }

  TEST_CASE_FIXTURE(two_nodes, "a request is answered across nodes, and then nothing is pending") {
    auto far = spawn(successor);
    auto answered = asker.ask<msg<wire::Token>>(near(far), make_token(7));
    settle();
    CHECK_FALSE(answered.has_come());
    CHECK(nodes[0]->pending_requests() == 1);
    settle_all();
    CHECK(answered.value().reader().getStep() == 8);
    CHECK(nodes[0]->pending_requests() == 0);
    caf::anon_send_exit(far, caf::exit_reason::user_shutdown);
    settle_all();
  }

  TEST_CASE_FIXTURE(two_nodes,
                    "a request that is delegated to a third node is answered the way it came") {
    nodes.push_back(node::make(world.system(), post, {2, 0}, "node 2"));
    auto far = spawn(successor);
    auto between = delegate_to(far);
    auto answered = asker.ask<msg<wire::Token>>(near(between), make_token(7));
    settle();
    while (!post.bag.empty()) {
      const auto& what = post.bag.front();
      CHECK((what.first.node == 1 || what.second.to.at.node == 1)); // nodes 0 and 2 do not talk
      deliver_next();
    }
    CHECK(answered.value().reader().getStep() == 8);
    for (const auto& node : nodes)
      CHECK(node->pending_requests() == 0);
    auto unanswered = asker.ask<msg<wire::Token>>(near(between), make_token(7));
    settle();
    deliver_next(); // node 1 has it, and passes it on
    for (auto* left : {nodes[0].get(), nodes[1].get()})
      CHECK(left->pending_requests() == 1);
    nodes[1]->lose(nodes[2]->address(), {errc::unavailable, "node 2 is gone"});
    settle_all();
    CHECK(unanswered.error().message == "node 2 is gone");
    for (const auto& node : nodes)
      CHECK(node->pending_requests() == 0);
    caf::anon_send_exit(between, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(far, caf::exit_reason::user_shutdown);
    settle_all();
  }

  TEST_CASE_FIXTURE(two_nodes, "a delegated answer comes although its giver is gone") {
    nodes.push_back(node::make(world.system(), post, {2, 0}, "node 2"));
    auto far = spawn(successor);
    auto between = delegate_to(far);
    auto answered = asker.ask<msg<wire::Token>>(near(between), make_token(7));
    nodes[0]->lose(nodes[2]->address(), {errc::unavailable, "node 2 is gone"});
    settle_all();
    CHECK(answered.value().reader().getStep() == 8);
    CHECK(nodes[0]->pending_requests() == 0);
    caf::anon_send_exit(between, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(far, caf::exit_reason::user_shutdown);
    settle_all();
  }

  TEST_CASE_FIXTURE(two_nodes, "a message without a sender comes though another node is gone") {
    nodes.push_back(node::make(world.system(), post, {2, 0}, "node 2"));
    puppet hearer{world};
    auto address = nodes[1]->show(hearer.as<caf::strong_actor_ptr>(), nodes[2]->address());
    auto proxy = caf::actor_cast<caf::actor>(nodes[2]->handle_of(address));
    nodes[1]->lose(nodes[0]->address(), {errc::unavailable, "node 0 is gone"});
    caf::anon_send(proxy, make_token(7));
    settle_all();
    CHECK(hearer.heard_count() == 1);
    nodes[1]->lose(nodes[2]->address(), {errc::unavailable, "node 2 is gone"});
    caf::anon_send(proxy, make_token(7));
    settle_all();
    CHECK(hearer.heard_count() == 1);
  }

  TEST_CASE_FIXTURE(two_nodes, "there is one proxy of an actor at a node, and none at its own") {
    auto far = spawn(successor);
    CHECK(near(far) == near(far));
    CHECK(near(far) != far);
    auto strong = caf::actor_cast<caf::strong_actor_ptr>(far);
    auto address = nodes[1]->show(strong, nodes[0]->address());
    CHECK(nodes[1]->handle_of(address) == strong);
    // A node that passes a proxy on passes the original on.
    auto proxy = caf::actor_cast<caf::strong_actor_ptr>(near(far));
    CHECK(nodes[0]->show(proxy, nodes[1]->address()) == address);
    caf::anon_send_exit(far, caf::exit_reason::user_shutdown);
    settle_all();
  }

  TEST_CASE_FIXTURE(two_nodes, "an exit message travels, and monitors are told of the end") {
    auto far = spawn(successor);
    auto handle = near(far);
    caf::error told;
    auto watcher = spawn([&told, handle](caf::event_based_actor* self) -> caf::behavior {
      self->monitor(handle);
      self->set_down_handler([&told](const caf::down_msg& down) { told = down.reason; });
      return {[](const msg<wire::Token>&) {}};
    });
    settle_all();
    CHECK_FALSE(told);
    caf::anon_send_exit(handle, caf::exit_reason::user_shutdown);
    settle_all();
    CHECK(told == caf::exit_reason::user_shutdown);
    caf::anon_send_exit(watcher, caf::exit_reason::user_shutdown);
    settle_all();
  }

  TEST_CASE_FIXTURE(two_nodes, "an exit message names its sender") {
    puppet sender{world};
    caf::actor_addr source;
    auto far = spawn([&source](caf::event_based_actor* self) -> caf::behavior {
      self->set_exit_handler([&source](const caf::exit_msg& exit) { source = exit.source; });
      return {[](const msg<wire::Token>&) {}};
    });
    auto from = sender.as<caf::strong_actor_ptr>();
    near(far)->enqueue(
      from, caf::make_message_id(),
      caf::make_message(caf::exit_msg{from->address(), caf::exit_reason::user_shutdown}), nullptr);
    settle_all();
    auto address = nodes[0]->show(from, nodes[1]->address());
    CHECK(source == nodes[1]->handle_of(address)->address());
    caf::anon_send_exit(far, caf::exit_reason::kill);
    settle_all();
  }

  TEST_CASE_FIXTURE(two_nodes,
                    "an actor that has ended before its message leaves is known to have ended") {
    auto sender = caf::actor_cast<caf::strong_actor_ptr>(spawn(successor));
    caf::anon_send_exit(caf::actor_cast<caf::actor>(sender), caf::exit_reason::user_shutdown);
    settle_all();
    bool is_told = false;
    auto far = spawn([&is_told](caf::event_based_actor* self) -> caf::behavior {
      self->set_down_handler([&is_told](const caf::down_msg&) { is_told = true; });
      return {[self](const msg<wire::Token>&) { self->monitor(self->current_sender()); }};
    });
    near(far)->enqueue(sender, caf::make_message_id(), caf::make_message(make_token(7)), nullptr);
    settle_all();
    CHECK(is_told);
    caf::anon_send_exit(far, caf::exit_reason::user_shutdown);
    settle_all();
  }

  TEST_CASE_FIXTURE(two_nodes, "an actor of a node that is lost has ended when it is heard of") {
    nodes[0]->lose({1, 0}, {errc::unavailable, "node 'node 1' is gone"});
    auto late = nodes[0]->handle_of({{1, 0}, 77}); // named by a third node
    caf::error told;
    auto watcher = spawn([&told, late](caf::event_based_actor* self) -> caf::behavior {
      self->set_down_handler([&told](const caf::down_msg& down) { told = down.reason; });
      self->monitor(late);
      return {[](const msg<wire::Token>&) {}};
    });
    settle_all();
    CHECK(from_caf(told).message == "node 'node 1' is gone");
    caf::anon_send_exit(watcher, caf::exit_reason::user_shutdown);
    settle_all();
  }

  TEST_CASE_FIXTURE(two_nodes,
                    "a message counts at its connection until its actor is done with it") {
    puppet hearer{world};
    auto address = nodes[1]->show(hearer.as<caf::strong_actor_ptr>(), nodes[0]->address());
    auto charge = std::make_shared<int>();
    for (auto content : {caf::make_message(make_token(7)), caf::message{}})
      nodes[1]->deliver({.to = address, .content = content, .charge = charge});
    CHECK(charge.use_count() == 3);
    settle_all();
    CHECK(charge.use_count() == 1);
  }

  TEST_CASE_FIXTURE(two_nodes, "an actor that fails ends the actors that are linked to it") {
    auto far = spawn(successor);
    auto linked = spawn([handle = near(far)](caf::event_based_actor* self) -> caf::behavior {
      self->link_to(handle);
      return {[](const msg<wire::Token>&) {}};
    });
    settle_all();
    auto before = actors_alive();
    caf::anon_send_exit(far, caf::exit_reason::user_shutdown);
    settle_all();
    CHECK(actors_alive() == before - 2);
    caf::anon_send_exit(linked, caf::exit_reason::kill);
    settle_all();
  }

  TEST_CASE_FIXTURE(two_nodes, "a request to an actor that has ended is refused") {
    auto far = spawn(successor);
    auto handle = near(far);
    caf::anon_send_exit(far, caf::exit_reason::user_shutdown);
    settle(); // the news is still on its way
    auto answered = asker.ask<msg<wire::Token>>(handle, make_token(7));
    settle_all();
    CHECK(answered.error().code == errc::unavailable);
    auto later = asker.ask<msg<wire::Token>>(handle, make_token(7));
    settle_all();
    CHECK(later.error().code == errc::unavailable);
  }

  TEST_CASE_FIXTURE(two_nodes, "when a node is lost, requests and monitors learn which") {
    puppet silent{world};
    auto handle = near(silent.as<caf::actor>());
    caf::error told;
    auto watcher = spawn([&told, handle](caf::event_based_actor* self) -> caf::behavior {
      self->monitor(handle);
      self->set_down_handler([&told](const caf::down_msg& down) { told = down.reason; });
      return {[](const msg<wire::Token>&) {}};
    });
    auto asked = asker.ask<msg<wire::Token>>(handle, make_token(7));
    settle();
    post.bag.clear();
    nodes[0]->lose(nodes[1]->address(), {errc::unavailable, "node 'node 1' is gone"});
    settle_all();
    CHECK(from_caf(told).message == "node 'node 1' is gone");
    CHECK(asked.error().message == "node 'node 1' is gone");
    auto later = asker.ask<msg<wire::Token>>(handle, make_token(8));
    settle_all();
    CHECK(later.error().message == "node 'node 1' is gone");
    CHECK(nodes[0]->pending_requests() == 0);
    caf::anon_send_exit(watcher, caf::exit_reason::user_shutdown);
    settle_all();
  }

  TEST_CASE_FIXTURE(two_nodes, "a request to a node that is lost already fails at once") {
    auto far = spawn(successor);
    auto address = nodes[1]->show(caf::actor_cast<caf::strong_actor_ptr>(far), nodes[0]->address());
    nodes[0]->lose(nodes[1]->address(), {errc::unavailable, "node 'node 1' is gone"});
    auto late = caf::actor_cast<caf::actor>(nodes[0]->handle_of(address)); // named by a third node
    auto answered = asker.ask<msg<wire::Token>>(late, make_token(7));
    settle();
    CHECK(answered.error() == error{errc::unavailable, "node 'node 1' is gone"});
    CHECK(nodes[0]->pending_requests() == 0);
    CHECK(post.bag.empty());
    caf::anon_send_exit(far, caf::exit_reason::user_shutdown);
    settle_all();
  }

  TEST_CASE_FIXTURE(two_nodes, "what was for a former life of a node, or is from one, is dropped") {
    puppet hearer{world};
    auto address = nodes[1]->show(hearer.as<caf::strong_actor_ptr>(), nodes[0]->address());
    parcel late{.to = address, .content = caf::make_message(make_token(1))};
    late.to.at.incarnation = 1;
    nodes[1]->deliver(late);
    late.to.at.incarnation = 0;
    late.from.at = {0, 0};
    nodes[1]->lose({0, 0}, {errc::unavailable, "gone"});
    nodes[1]->deliver(late);
    settle_all();
    CHECK(hearer.heard_count() == 0);
    late.from.at.incarnation = 1;
    nodes[1]->deliver(late);
    settle_all();
    CHECK(hearer.heard_count() == 1);
  }

  TEST_CASE_FIXTURE(two_nodes, "an actor that was published is found by its name") {
    puppet hearer{world};
    nodes[1]->publish("hearer", hearer.as<caf::strong_actor_ptr>());
    auto found = look_for("hearer", 1);
    CHECK_FALSE(found->has_value());
    settle_all();
    REQUIRE(found->has_value());
    REQUIRE((*found)->has_value());
    CHECK(***found == caf::actor_cast<caf::strong_actor_ptr>(near(hearer.as<caf::actor>())));
    asker.tell(caf::actor_cast<caf::actor>(***found), make_token(3));
    settle_all();
    CHECK(hearer.heard_count() == 1);
  }

  TEST_CASE_FIXTURE(two_nodes,
                    "a search for an actor that is not published yet is answered when it is") {
    auto found = look_for("hearer", 1);
    auto other = look_for("somebody else", 1);
    settle_all();
    CHECK_FALSE(found->has_value());
    puppet hearer{world};
    nodes[1]->publish("hearer", hearer.as<caf::strong_actor_ptr>());
    settle_all();
    REQUIRE(found->has_value());
    CHECK((*found)->has_value());
    CHECK_FALSE(other->has_value());
  }

  TEST_CASE_FIXTURE(two_nodes, "an actor of the node itself is found without a message") {
    puppet hearer{world};
    auto before = look_for("hearer", 0);
    nodes[0]->publish("hearer", hearer.as<caf::strong_actor_ptr>());
    auto after = look_for("hearer", 0);
    CHECK(post.bag.empty());
    for (const auto& found : {before, after}) {
      REQUIRE(found->has_value());
      CHECK(***found == hearer.as<caf::strong_actor_ptr>());
    }
  }

  TEST_CASE_FIXTURE(two_nodes, "an actor that has ended is found no more, its successor is") {
    auto first = spawn(successor);
    nodes[1]->publish("one", caf::actor_cast<caf::strong_actor_ptr>(first));
    caf::anon_send_exit(first, caf::exit_reason::user_shutdown);
    settle_all();
    auto found = look_for("one", 1);
    settle_all();
    CHECK_FALSE(found->has_value());
    puppet second{world};
    nodes[1]->publish("one", second.as<caf::strong_actor_ptr>());
    settle_all();
    REQUIRE(found->has_value());
    CHECK(***found == caf::actor_cast<caf::strong_actor_ptr>(near(second.as<caf::actor>())));
  }

  TEST_CASE_FIXTURE(two_nodes, "a search for an actor of a lost node names the node") {
    auto before = look_for("hearer", 1);
    nodes[0]->lose({1, 0}, {errc::unavailable, "node 'node 1' is gone"});
    auto after = look_for("hearer", 1);
    for (const auto& found : {before, after}) {
      REQUIRE(found->has_value());
      REQUIRE_FALSE((*found)->has_value());
      CHECK((*found)->error().code == errc::unavailable);
      CHECK((*found)->error().message == "node 'node 1' is gone");
    }
  }

  TEST_CASE_FIXTURE(two_nodes, "an answer to no request, or of another node, is dropped") {
    nodes.push_back(node::make(world.system(), post, {2, 0}, "node 2"));
    auto found = look_for("hearer", 1);
    auto number = post.bag.back().second.id;
    post.bag.clear();
    auto say_found = [&](node_index from, uint64_t actor, uint64_t id) {
      nodes[0]->deliver({.kind = parcel::content_kind::found,
                         .to = {{0, 0}, 0},
                         .from = {{from, 0}, actor},
                         .id = id});
    };
    say_found(1, 5, number + 1);
    say_found(2, 5, number);
    say_found(1, 0, number);
    nodes[1]->deliver({.kind = parcel::content_kind::find, .to = {{1, 0}, 0}, .from = {{0, 0}, 0}});
    CHECK_FALSE(found->has_value());
    say_found(1, 5, number);
    CHECK(found->has_value());
    settle_all();
  }
}

} // namespace node_test
