// SPDX-License-Identifier: Apache-2.0
// Nodes that are joined by sockets of this machine, each with a world of its own.
#pragma once

#include "actors/net/sockets/socket_network.hpp"
#include "actors/world/ask.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/net/forced_spin.hpp"
#include "tests/doctest.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <string>

namespace troupe::test {

using namespace std::chrono_literals;

/// An actor that answers the step of a token with one that is greater by 1, and a gradient.
inline caf::behavior successor() {
  return {[](const msg<wire::Token>& token) { return make_token(token.reader().getStep() + 1); },
          [](const msg<wire::PushGradient>& push) {
            return make_push_reply(verdict::accepted, push.reader().getOrigin().getReplica(), 0);
          }};
}

/// A value that another thread tells once.
template <class T>
class news {
public:
  void tell(T what) {
    if (!told_.exchange(true)) promise_.set_value(std::move(what));
  }

  // Fails the test after a time that no working machine needs.
  T wait() {
    REQUIRE(future_.wait_for(30s) == std::future_status::ready);
    return future_.get();
  }

private:
  std::atomic<bool> told_ = false;
  std::promise<T> promise_;
  std::future<T> future_ = promise_.get_future();
};

/// One node with its world.
struct station {
  explicit station(socket_network_options options, uint32_t threads = 1)
    : world(troupe::world::threads({.threads = threads})) {
    options.on_warning = [this](const std::string& line) { warning.tell(line); };
    network = socket_network::open(world.system(), std::move(options)).value();
    network->on_loss([this](node_index, const error& why) { loss.tell(why); });
  }

  // The actor of that name at another node.
  caf::actor find(node_index where, const std::string& name) {
    auto at = network->arrival(where).get().value();
    auto found = std::make_shared<news<expected<caf::strong_actor_ptr>>>();
    network->here()->find(at, name, [found](auto answer) { found->tell(std::move(answer)); });
    return caf::actor_cast<caf::actor>(found->wait().value());
  }

  template <class Function>
  caf::actor publish(const std::string& name, Function behaviour) {
    auto actor = world.system().spawn(behaviour);
    network->here()->publish(name, caf::actor_cast<caf::strong_actor_ptr>(actor));
    return actor;
  }

  troupe::world world;
  news<std::string> warning;
  news<error> loss;
  std::unique_ptr<socket_network> network;
};

// The first of `count` nodes listens wherever there is room.
inline socket_network_options options_of(node_index self, const std::string& first = "127.0.0.1:0",
                                         node_index count = 2) {
  socket_network_options options{
    .job = "test", .nodes = {{"chief", first}}, .self = self, .spin = forced_spin()};
  for (node_index i = 1; i < count; ++i)
    options.nodes.push_back({"worker:" + std::to_string(i - 1), ""});
  options.talk = [](node_index one, node_index other) { return one == 0 || other == 0; };
  return options;
}

} // namespace troupe::test
