// SPDX-License-Identifier: Apache-2.0
// Goal: in the virtual world messages of another schema travel as over sockets, or are refused as
// there; and whatever goes wrong, each request is answered, or fails by name. Method: a jury at the
// chief's node, asked by actors at the replicas' nodes, with drawn latencies, cuts and crashes.
#include "actors/net/network_messages.hpp"
#include "kernels/tensor/random.hpp"
#include "simulation/network/simulated_network.hpp"
#include "tests/doctest.hpp"
#include "tests/messages/trial_messages.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <vector>

namespace own_messages_test {

using namespace std::chrono_literals;
using namespace troupe;

namespace {

constexpr uint32_t replicas = 4;
constexpr uint64_t rounds = 20;

/// The answers to the askers, in order.
using diary = std::vector<std::string>;

caf::behavior jury() {
  return {[](const msg<trial::Opinion>& said) {
    auto elements = read_tensor(said.reader().getGradient(), said.owner()).element_count();
    return make_count(100 * said.reader().getReplica() + elements);
  }};
}

void ask_next(caf::event_based_actor* self, const caf::actor& judge, uint32_t replica,
              uint64_t round, diary& heard) {
  if (round > rounds) return;
  self->request(judge, caf::infinite, make_opinion(replica, zeros({static_cast<int64_t>(round)})))
    .then(
      [=, &heard](const msg<trial::Count>& answer) {
        CHECK(answer.reader().getValue() == 100 * replica + round);
        heard.push_back(fmt::format("{} hears of {}", replica, round));
        ask_next(self, judge, replica, round + 1, heard);
      },
      [=, &heard](const caf::error& reason) {
        heard.push_back(fmt::format("{} hears: {}", replica, from_caf(reason).message));
      });
}

network_options options_of(uint64_t seed, bool knows_messages) {
  network_options options;
  options.latency = [seed](const passage& goes) {
    random_stream draw{random_key{seed, "latency", goes.end, goes.count}};
    return job_time{static_cast<int64_t>(2e7 * draw.uniform())};
  };
  options.detection = 50ms;
  network_messages known;
  known.add<trial::Opinion>("trial.Opinion").add<trial::Count>("trial.Count");
  if (knows_messages) options.messages = known;
  return options;
}

/// A world with a jury, and an asker at each replica's node.
struct court {
  explicit court(uint64_t seed, bool knows_messages = true)
    : world(world::virtual_time({.seed = seed})),
      network(world, replicas, options_of(seed, knows_messages)) {
    settle("jury", world.system().spawn(jury));
    for (uint32_t replica = 0; replica < replicas; ++replica) {
      auto name = fmt::format("replica {}", replica);
      auto judge = caf::actor_cast<caf::actor>(network.placement().see(name, "jury").value());
      settle(name, world.system().spawn([=, this](caf::event_based_actor* self) -> caf::behavior {
        self->monitor(judge);
        self->set_down_handler([=, this](const caf::down_msg&) {
          heard.push_back(fmt::format("{} has lost the jury", replica));
        });
        ask_next(self, judge, replica, 1, heard);
        return {[](int) {}};
      }));
    }
  }

  ~court() {
    for (auto& actor : actors)
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    turn();
  }

  void settle(const std::string& name, const caf::actor& actor) {
    world.introduce(actor.id(), name);
    network.placement().put(name, actor);
    actors.push_back(actor);
  }

  void turn() {
    while (world.make_event()) {
    }
  }

  [[nodiscard]] std::ptrdiff_t count(const std::string& line) const {
    return std::ranges::count(heard, line);
  }

  diary heard;
  troupe::world world;
  simulated_network network;
  std::vector<caf::actor> actors;
};

/// A course with faults of all kinds, at drawn times.
diary drawn_course(uint64_t seed) {
  court all{seed};
  random_stream draw{random_key{seed, "faults"}};
  auto some_time = [&] { return job_time{static_cast<int64_t>(2e8 * draw.uniform())}; };
  auto victim = all.network.nodes().replica_node(static_cast<uint32_t>(replicas * draw.uniform()));
  auto cut_off = all.network.nodes().replica_node(static_cast<uint32_t>(replicas * draw.uniform()));
  all.network.events().at(some_time(), [&] { all.network.crash(victim, true); });
  all.network.events().at(some_time(), [&] {
    auto number
      = all.network.sever({.from = [cut_off](node_index node) { return node == cut_off; }});
    all.network.events().at(all.network.events().now() + 100ms,
                            [&, number] { all.network.heal(number); });
  });
  auto chief_ends = draw.uniform() < 0.5;
  if (chief_ends) all.network.events().at(some_time(), [&] { all.network.crash(0, true); });
  all.turn();
  for (uint32_t replica = 0; replica < replicas; ++replica) {
    if (all.network.nodes().replica_node(replica) == victim) continue;
    auto has_all = all.count(fmt::format("{} hears of {}", replica, rounds)) == 1;
    auto has_failed = all.count(fmt::format("{} hears: node 'chief' is gone", replica)) == 1;
    CHECK(has_all != has_failed);
    CHECK(all.count(fmt::format("{} has lost the jury", replica)) == (chief_ends ? 1 : 0));
    if (!chief_ends) CHECK(has_all);
  }
  return all.heard;
}

} // namespace

TEST_SUITE("simulation/network/own_messages") {
  TEST_CASE("messages of another schema are asked and answered with, and take their time") {
    court all{1};
    all.turn();
    for (uint32_t replica = 0; replica < replicas; ++replica)
      CHECK(all.count(fmt::format("{} hears of {}", replica, rounds)) == 1);
    CHECK(all.heard.size() == replicas * rounds);
    CHECK(all.world.now() > 100ms);
  }

  TEST_CASE("a network that does not know them refuses them with the words of sockets") {
    court all{1, false};
    all.turn();
    CHECK(all.count("0 hears: trial::Opinion does not travel between nodes: add it to the "
                    "network_messages of every process")
          == 1);
    CHECK(all.heard.size() == replicas);
  }

  TEST_CASE("with drawn faults each request is answered or fails by name, and a seed runs again") {
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      CAPTURE(seed);
      auto first = drawn_course(seed);
      CHECK(drawn_course(seed) == first);
    }
  }
}

} // namespace own_messages_test
