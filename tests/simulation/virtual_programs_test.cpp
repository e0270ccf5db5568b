// SPDX-License-Identifier: Apache-2.0
// Goal: the programs of several processes share a virtual world, wait in it as they would alone,
// and take turns alike each time. Method: programs that wait for times, for each other and for
// nothing; and strategies that find each other over a simulated network.
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/kinds/multi_worker_mirrored_strategy.hpp"
#include "tests/actors/deterministic_world.hpp"
#include "tests/simulation/network/process_placement.hpp"
#include "tests/simulation/virtual_programs.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/refusal.hpp"

#include <fmt/format.h>

namespace virtual_programs_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

using lines = std::vector<std::string>;

expected<void> sleep(world& own, caf::actor alarm, job_time time) {
  auto over = std::make_shared<std::promise<void>>();
  auto due = over->get_future();
  caf::delayed_anon_send(alarm, time,
                         script{[over](caf::event_based_actor*) { over->set_value(); }});
  return own.run_until(due);
}

/// Three processes of a network, each with a strategy of its own.
class three_processes : deterministic_world {
public:
  explicit three_processes(const std::function<void(strategy&, uint32_t rank)>& program,
                           uint32_t present = 3) {
    virtual_programs programs{world};
    for (uint32_t rank = 0; rank < present; ++rank)
      programs.add(names_[rank], [this, program, rank](troupe::world& own) {
        process_placement here{own, network_, names_, rank, 5s};
        auto options = multi_worker_mirrored_options{
          .devices = cpu_devices(2), .placement = &here, .workers = names_, .deadline = 20s};
        thrown[rank] = refusal_of([&] {
          multi_worker_mirrored_strategy strategy{own, options};
          program(strategy, rank);
        });
      });
    programs.play();
    settle();
    left = actors_alive();
  }

  std::vector<error> thrown{3};
  size_t left = 0;

private:
  simulated_network network_{world, 3, {.latency = [](const passage&) { return 1ms; }}};
  std::vector<std::string> names_{"worker:0", "worker:1", "worker:2"};
};

} // namespace

TEST_SUITE("simulation/virtual_programs") {
  TEST_CASE("programs that wait take turns by their waits' ends, then in their order") {
    auto play = [] {
      deterministic_world stage;
      puppet alarm{stage.world};
      lines said;
      {
        virtual_programs programs{stage.world};
        for (auto [name, pause] : {std::pair{"a", 3s}, std::pair{"b", 1s}, std::pair{"c", 3s}})
          programs.add(name, [&, name = name, pause = pause](world& own) {
            for (int i = 0; i < 2; ++i) {
              said.push_back(fmt::format("{} at {} s", name, own.now() / 1s));
              CHECK(sleep(own, alarm.as<caf::actor>(), pause));
            }
          });
        programs.play();
        CHECK(stage.world.now() == 6s);
      }
      return said;
    };
    auto said = play();
    CHECK(said == lines{"a at 0 s", "b at 0 s", "c at 0 s", "b at 1 s", "a at 3 s", "c at 3 s"});
    CHECK(play() == said);
  }

  TEST_CASE("one program ends another one's wait, at once") {
    deterministic_world stage;
    std::promise<void> done;
    lines said;
    virtual_programs programs{stage.world};
    programs.add("waits", [&](world& own) {
      auto over = done.get_future();
      CHECK(own.run_until(over));
      said.emplace_back("is told");
    });
    programs.add("tells", [&](world&) {
      done.set_value();
      said.emplace_back("tells");
    });
    programs.play();
    CHECK(said == lines{"tells", "is told"});
  }

  TEST_CASE("a wait is over after its timeout, and where nothing is left to do") {
    deterministic_world stage;
    puppet alarm{stage.world};
    virtual_programs programs{stage.world};
    std::promise<void> never;
    std::promise<void> not_either;
    programs.add("is impatient", [&](world& own) {
      auto over = never.get_future();
      CHECK(own.run_until(over, 2s).error().code == errc::deadline_exceeded);
      CHECK(own.now() == 3s); // when the first thing happens after it
    });
    programs.add("waits for ever", [&](world& own) {
      auto over = not_either.get_future();
      CHECK(own.run_until(over).error().code == errc::stalled);
    });
    programs.add("sleeps", [&](world& own) {
      CHECK(sleep(own, alarm.as<caf::actor>(), 1s));
      CHECK(sleep(own, alarm.as<caf::actor>(), 2s));
    });
    programs.play();
    CHECK(stage.world.now() == 3s);
  }

  TEST_CASE("a program that was stopped does not go on before the others have ended") {
    deterministic_world stage;
    puppet alarm{stage.world};
    lines said;
    {
      virtual_programs programs{stage.world};
      for (const auto* name : {"killed", "lives"})
        programs.add(name, [&, name](world& own) {
          CHECK(sleep(own, alarm.as<caf::actor>(), 1s));
          said.emplace_back(name);
        });
      programs.add("kills", [&](world&) { programs.stop("killed"); });
      programs.play();
      CHECK(said == lines{"lives"});
    }
    CHECK(said == lines{"lives", "killed"}); // what is on its stack is released
  }

  TEST_CASE("strategies of several processes reduce over a simulated network, and leave nothing") {
    three_processes played{[](strategy& strategy, uint32_t rank) {
      CHECK(strategy.num_replicas_in_sync() == 6);
      auto weights = strategy.make_variable("w", scalar(rank + 7.0));
      CHECK(numbers_of(strategy.read(weights)) == numbers{7}); // the first process's
      auto sum = strategy.reduce(reduce_op::sum, scalar(rank + 1.0));
      CHECK(numbers_of(sum) == numbers{6});
    }};
    CHECK(played.thrown == std::vector<error>(3));
    CHECK(played.left == 0);
  }

  TEST_CASE("a missing process is named when the start deadline is over") {
    three_processes played{[](strategy&, uint32_t) { FAIL("there is no strategy"); }, 2};
    for (uint32_t rank = 0; rank < 2; ++rank) {
      CHECK(played.thrown[rank].code == errc::deadline_exceeded);
      CHECK(played.thrown[rank].message == "waited 5.0 s for 'communicator 2' at worker:2");
    }
    CHECK(played.left == 0);
  }
}

} // namespace virtual_programs_test
