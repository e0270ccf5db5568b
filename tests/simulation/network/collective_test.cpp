// SPDX-License-Identifier: Apache-2.0
// Goal: processes combine arrays over a simulated network as over any other, and each time alike.
// Method: a group in a virtual world, twice with one seed.
#include "actors/collective/collective_group.hpp"
#include "simulation/network/simulated_network.hpp"
#include "tests/actors/collective/collective_group.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_SUITE("simulation/network/collective") {
  TEST_CASE("a group agrees in a virtual world, over a simulated network, again and again alike") {
    auto play = [](uint64_t seed) {
      deterministic_world stage{seed};
      simulated_network network{
        stage.world, 4, {.latency = [](const passage& one) { return 1ms + one.count * 10us; }}};
      auto members = join_collective_group(stage.world, network, {.size = 4}).value();
      std::vector<puppet> callers;
      std::vector<answer<collective_result>> answers;
      std::vector<tensor> all;
      for (uint32_t rank = 0; rank < 4; ++rank) {
        callers.emplace_back(stage.world);
        all.push_back(sample(dtype::f32, {400'003}, rank));
        answers.push_back(callers[rank].ask<collective_result>(
          members[rank], collective_call{.kind = collective_kind::all_reduce,
                                         .name = "sum",
                                         .contributions = {all[rank]}}));
      }
      stage.pass(1s);
      for (const auto& one : answers)
        CHECK(is_same(one.value().value, folded(all)));
      for (auto& member : members)
        caf::anon_send_exit(member, caf::exit_reason::kill);
      stage.settle();
      return stage.world.event_count();
    };
    auto events = play(7);
    CHECK(play(7) == events);
  }
}
