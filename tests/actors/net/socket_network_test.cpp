// SPDX-License-Identifier: Apache-2.0
// Goal: actors on nodes that are joined by sockets talk as those of one node do. Method: two or
// three threads worlds in one process, each with a node of its own.
#include "actors/ask.hpp"
#include "actors/net/socket_network.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"

#include <future>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

/// An actor that answers the step of a token with one that is greater by 1.
caf::behavior successor() {
  return {[](const msg<wire::Token>& token) { return make_token(token.reader().getStep() + 1); }};
}

/// One node with its world.
struct station {
  explicit station(socket_network_options options)
    : network(socket_network::open(world.system(), std::move(options)).value()) {}

  // The actor of that name at another node.
  caf::actor find(node_index where, const std::string& name) {
    auto at = network->arrival(where).get().value();
    std::promise<expected<caf::strong_actor_ptr>> found;
    network->here().find(at, name, [&](auto answer) { found.set_value(std::move(answer)); });
    return caf::actor_cast<caf::actor>(found.get_future().get().value());
  }

  void publish(const std::string& name, const caf::actor& actor) {
    network->here().publish(name, caf::actor_cast<caf::strong_actor_ptr>(actor));
  }

  troupe::world world = world::threads({.threads = 1});
  std::unique_ptr<socket_network> network;
};

socket_network_options options_of(node_index self, const std::string& first_address) {
  return {
    .job = "test", .nodes = {{"chief", first_address}, {"worker:0", "127.0.0.1:0"}}, .self = self};
}

} // namespace

TEST_SUITE("actors/net/socket_network") {
  TEST_CASE("a request is answered by an actor of another node") {
    station chief{options_of(0, "127.0.0.1:0")};
    station worker{options_of(1, chief.network->listening_at())};
    chief.publish("successor", chief.world.system().spawn(successor));
    auto far = worker.find(0, "successor");
    auto answer = ask<msg<wire::Token>>(worker.world, far, make_token(7));
    REQUIRE(answer);
    CHECK(answer->reader().getStep() == 8);
  }
}
