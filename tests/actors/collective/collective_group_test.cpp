// SPDX-License-Identifier: Apache-2.0
// Goal: communicators of several processes find each other and agree, over any network, and hear of
// each other's ends. Method: threads that play processes, each with a world of its own, over
// sockets and over direct parcels.
#include "actors/collective/collective_group.hpp"
#include "actors/net/cluster_placement.hpp"
#include "actors/net/sockets/socket_network.hpp"
#include "actors/world/ask.hpp"
#include "tests/actors/collective/collective_group.hpp"
#include "tests/actors/net/direct_network.hpp"
#include "tests/actors/net/free_addresses.hpp"

#include <functional>
#include <latch>
#include <thread>

namespace collective_group_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

// One process of a group.
struct process {
  troupe::world& world;
  uint32_t rank;
  communicator_actor communicator;

  expected<collective_result> call(collective_call what) {
    return ask<collective_result>(world, communicator, std::move(what));
  }
};

// A time that no working machine needs.
constexpr auto deadline = 120s;

using script_of_process = std::function<void(process&)>;

void run_process(membership& here, world& world, cluster_layout layout, uint32_t rank,
                 const script_of_process& act) {
  cluster_placement placement{layout, here, deadline};
  auto members
    = join_collective_group(world, placement, {.size = layout.workers, .deadline = deadline});
  REQUIRE(members);
  process self{world, rank, (*members)[rank]};
  act(self);
  caf::anon_send_exit(self.communicator, caf::exit_reason::user_shutdown);
}

// Runs a process for each worker of a cluster, in a thread of its own.
void run_group(uint32_t size, bool has_sockets, const script_of_process& act) {
  cluster_layout layout{.workers = size, .workers_meet = true};
  std::vector<std::string> names;
  for (uint32_t rank = 0; rank < size; ++rank)
    names.push_back(layout.name_of(rank));
  direct_network direct{names};
  auto addresses = free_addresses(size);
  std::vector<std::thread> processes;
  for (uint32_t rank = 0; rank < size; ++rank)
    processes.emplace_back([&, rank] {
      auto in_process = world::threads({.threads = 1});
      if (!has_sockets) {
        direct_membership here{direct, in_process.system(), rank};
        return run_process(here, in_process, layout, rank, act);
      }
      socket_network_options options{.job = "group", .self = rank, .silence_timeout = deadline};
      for (uint32_t i = 0; i < size; ++i)
        options.nodes.push_back({names[i], addresses[i]});
      auto network = socket_network::open(in_process.system(), options);
      REQUIRE(network);
      run_process(**network, in_process, layout, rank, act);
      (*network)->leave(deadline);
    });
  for (auto& one : processes)
    one.join();
}

collective_call sum_of(const tensor& value, collective_algorithm algorithm) {
  using enum collective_algorithm;
  return {.kind = collective_kind::all_reduce,
          .name = "sum",
          .contributions = {value},
          .algorithm = algorithm,
          .fixed_order = algorithm == direct || algorithm == chain || algorithm == all_to_all};
}

// All algorithms, short and long; then a barrier, so that no process leaves before all are done.
void agree(process& self, uint32_t size) {
  using enum collective_algorithm;
  for (auto algorithm : {direct, chain, ring, halving_doubling, tree, all_to_all})
    for (int64_t length : {3, 1'000'003}) {
      std::vector<tensor> all;
      for (uint32_t rank = 0; rank < size; ++rank)
        all.push_back(sample(dtype::i32, {length}, rank));
      auto call = sum_of({}, algorithm);
      for (auto in_place : {false, true}) {
        call.contributions = {sample(dtype::i32, {length}, self.rank)};
        call.in_place = in_place;
        auto sum = self.call(call);
        REQUIRE_MESSAGE(sum, (sum ? "" : sum.error().message));
        CHECK(is_same(sum->value, folded(all)));
      }
    }
  CHECK(self.call({.name = "done"}));
}

} // namespace

TEST_SUITE("actors/collective/collective_group") {
  TEST_CASE("processes agree over sockets, with every algorithm") {
    run_group(3, true, [](process& self) { agree(self, 3); });
  }

  TEST_CASE("processes agree where parcels are handed over") {
    run_group(4, false, [](process& self) { agree(self, 4); });
  }

  TEST_CASE("a process whose connection ends is named to all that wait for it") {
    std::latch both_know{2}; // one that leaves before might be named instead
    run_group(3, true, [&](process& self) {
      CHECK(self.call({.name = "all there"}));
      if (self.rank == 2) return;
      auto sum
        = self.call(sum_of(sample(dtype::f32, {5}, self.rank), collective_algorithm::direct));
      both_know.arrive_and_wait();
      REQUIRE_FALSE(sum);
      CHECK(sum.error().code == errc::unavailable);
      CHECK(sum.error().message.starts_with("worker:2 "));
    });
  }

  TEST_CASE("processes that do not call the same are told so, over sockets") {
    run_group(2, true, [](process& self) {
      auto sum
        = self.call(sum_of(sample(dtype::f32, {5 + self.rank}, 0), collective_algorithm::direct));
      REQUIRE_FALSE(sum);
      CHECK(sum.error().code == errc::invalid_argument);
      CHECK(sum.error().message.find("worker:0") != std::string::npos);
      CHECK(sum.error().message.find("worker:1") != std::string::npos);
      CHECK(sum.error().message.find("f32 [6]") != std::string::npos);
    });
  }

  TEST_CASE("workers that do not meet cannot form a group") {
    auto in_process = world::threads({.threads = 1});
    direct_network direct{{"worker:0", "worker:1", "worker:2"}};
    std::vector<std::thread> others;
    direct_membership zero{direct, in_process.system(), 0};
    direct_membership one{direct, in_process.system(), 1};
    direct_membership two{direct, in_process.system(), 2};
    cluster_layout layout{.workers = 3};
    cluster_placement first{layout, zero, 5s};
    for (uint32_t rank = 0; rank < 3; ++rank)
      CHECK(first.enter(fmt::format("communicator {}", rank)));
    puppet stand_in{in_process};
    first.put("communicator 0", stand_in.as<caf::actor>());
    cluster_placement second{layout, one, 5s};
    auto members = join_collective_group(in_process, second, {.size = 3});
    REQUIRE_FALSE(members);
    CHECK(members.error().code == errc::failed_precondition);
    CHECK(members.error().message
          == "communicator 1 and communicator 2 do not talk to each other in this cluster; have "
             "its workers meet (workers_meet)");
  }
}

} // namespace collective_group_test
