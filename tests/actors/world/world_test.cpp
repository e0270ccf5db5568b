// SPDX-License-Identifier: Apache-2.0
// Goal: a virtual world is its seed, and both worlds can be reached from outside. Method: puppets
// that speak at the same moment; other threads, but no timing.
#include "actors/training/token_queue.hpp"
#include "actors/world/ask.hpp"
#include "actors/world/world.hpp"
#include "messages/mapped.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/deterministic_world.hpp"

#include <algorithm>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

namespace world_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// Has `speaker` say its `index`, `delay` from now.
void let_speak(const puppet& speaker, const puppet& listener, uint32_t index, job_time delay) {
  auto say = [to = listener.as<caf::actor>(), index](caf::event_based_actor* self) {
    self->send(to, make_join_job(index));
  };
  caf::delayed_anon_send(speaker.as<caf::actor>(), delay, script{say});
}

std::vector<uint32_t> heard_by(const puppet& listener) {
  return mapped(listener.heard<wire::JoinJob>(),
                [](const auto& message) { return message.reader().getReplica(); });
}

/// In which order eight puppets are heard that all speak at the same moment, again and again.
std::vector<uint32_t> interleaving(uint64_t seed) {
  deterministic_world stage{seed};
  puppet listener{stage.world};
  std::vector<puppet> speakers;
  for (uint32_t i = 0; i < 8; ++i)
    speakers.emplace_back(stage.world);
  for (auto moment = 1s; moment <= 5s; moment += 1s)
    for (uint32_t i = 0; i < speakers.size(); ++i)
      let_speak(speakers[i], listener, i, moment);
  stage.pass(6s);
  return heard_by(listener);
}

token_queue_actor spawn_queue(world& world) {
  return world.system().spawn(token_queue, token_queue_config{});
}

void end(const token_queue_actor& queue) {
  caf::anon_send_exit(queue, caf::exit_reason::user_shutdown);
}

} // namespace

TEST_SUITE("actors/world/world") {
  TEST_CASE("a virtual world with the same seed runs again exactly") {
    auto first = interleaving(7);
    CHECK(first.size() == 40);
    CHECK(interleaving(7) == first);
  }

  TEST_CASE("a virtual world with another seed takes another order") {
    CHECK(interleaving(7) != interleaving(8));
  }

  TEST_CASE("one puppet's words stay in their order under every seed") {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      deterministic_world stage{seed};
      puppet listener{stage.world};
      puppet speaker{stage.world};
      std::vector<uint32_t> said;
      for (uint32_t word = 0; word < 20; ++word) {
        speaker.tell(listener.as<caf::actor>(), make_join_job(word));
        said.push_back(word);
      }
      stage.pass(1ns);
      CHECK(heard_by(listener) == said);
    }
  }

  TEST_CASE("virtual time passes only when nothing else is left to do, and then all at once") {
    deterministic_world stage;
    CHECK(stage.world.now() == 0ns);
    puppet listener{stage.world};
    puppet speaker{stage.world};
    let_speak(speaker, listener, 0, 24h);
    stage.settle();
    CHECK(stage.world.now() == 0ns);
    CHECK(listener.heard_count() == 0);
    stage.pass(24h);
    CHECK(stage.world.now() == 24h);
    CHECK(listener.heard_count() == 1);
  }

  TEST_CASE("things happen in the order of their times") {
    deterministic_world stage;
    puppet listener{stage.world};
    puppet speaker{stage.world};
    for (auto [index, delay] : {std::pair{3U, 30ns}, {1U, 10ns}, {4U, 31ns}, {2U, 20ns}})
      let_speak(speaker, listener, index, delay);
    stage.pass(30ns);
    CHECK(heard_by(listener) == std::vector<uint32_t>{1, 2, 3});
    stage.pass(1ns);
    CHECK(heard_by(listener) == std::vector<uint32_t>{1, 2, 3, 4});
  }

  TEST_CASE("a virtual world says that it stalled when nothing is left that could end a wait") {
    auto world = world::virtual_time();
    std::promise<void> never;
    auto done = never.get_future();
    auto turned = world.run_until(done);
    REQUIRE_FALSE(turned);
    CHECK(turned.error().code == errc::stalled);
    CHECK(turned.error().message
          == "the virtual world has nothing left to do, and the job is not done");
    never.set_value();
    CHECK(world.run_until(done));
  }

  TEST_CASE("a caller lets virtual time pass by a wait for what never comes") {
    deterministic_world stage;
    puppet listener{stage.world};
    puppet speaker{stage.world};
    for (auto [index, delay] : {std::pair{1U, 5ms}, {2U, 7ms}, {3U, 9ms}})
      let_speak(speaker, listener, index, delay);
    std::promise<void> unkept;
    auto never = unkept.get_future();
    CHECK(stage.world.run_until(never, 7ms).error().code == errc::deadline_exceeded);
    CHECK(heard_by(listener) == std::vector<uint32_t>{1, 2});
    CHECK(stage.world.now() == 9ms);
    CHECK(stage.world.run_until(never, 7ms).error().code == errc::stalled);
    CHECK(heard_by(listener) == std::vector<uint32_t>{1, 2, 3});
  }

  TEST_CASE("a virtual world counts what happens in it") {
    deterministic_world stage;
    auto before = stage.world.event_count();
    puppet listener{stage.world};
    puppet speaker{stage.world};
    let_speak(speaker, listener, 0, 1s);
    std::promise<void> heard;
    auto done = heard.get_future();
    CHECK_FALSE(stage.world.run_until(done)); // nothing is left to do
    CHECK(stage.world.event_count() > before);
    CHECK(listener.heard_count() == 1);
    CHECK(world::threads({.threads = 1}).event_count() == 0);
  }

  TEST_CASE("an actor of CAF's that throws ends in a virtual world, too, and its monitor is told") {
    deterministic_world stage;
    puppet monitor{stage.world};
    auto thrower = stage.spawn(
      []() -> caf::behavior { return {[](int) { throw std::runtime_error{"13 is bad luck"}; }}; });
    auto told = std::make_shared<bool>(false);
    caf::anon_send(monitor.as<caf::actor>(), script{[=](caf::event_based_actor* self) {
                     self->monitor(thrower);
                     self->set_down_handler([told](const caf::down_msg&) { *told = true; });
                   }});
    stage.settle();
    caf::anon_send(thrower, 13);
    stage.settle();
    CHECK(*told);
  }

  TEST_CASE("work is done at once in a virtual world, in no time") {
    auto world = world::virtual_time();
    auto done_by = std::thread::id{};
    world.submit([&] { done_by = std::this_thread::get_id(); });
    CHECK(done_by == std::this_thread::get_id());
    CHECK(world.now() == 0ns);
  }

  TEST_CASE("a call waits until a virtual world turns, and happens on its thread") {
    auto world = world::virtual_time();
    std::promise<void> called;
    auto done = called.get_future();
    auto called_on = std::thread::id{};
    std::thread{[&] {
      world.call([&] {
        called_on = std::this_thread::get_id();
        called.set_value();
      });
    }}.join();
    CHECK(called_on == std::thread::id{});
    REQUIRE(world.run_until(done));
    CHECK(called_on == std::this_thread::get_id());
  }

  TEST_CASE("a call from another thread reaches a virtual world that is turning") {
    deterministic_world stage;
    puppet listener{stage.world};
    puppet restless{stage.world};
    std::function<void(caf::event_based_actor*)> tick
      = [&](caf::event_based_actor* self) { self->delayed_send(self, 1s, script{tick}); };
    caf::anon_send(restless.as<caf::actor>(), script{tick});
    std::promise<void> called;
    auto done = called.get_future();
    std::thread caller{[&] { stage.world.call([&] { called.set_value(); }); }};
    CHECK(stage.world.run_until(done));
    caller.join();
  }

  TEST_CASE("calls of several threads all happen") {
    auto world = world::virtual_time();
    std::promise<void> all;
    auto done = all.get_future();
    int calls = 0; // only the world's thread counts
    std::vector<std::thread> callers;
    for (int i = 0; i < 4; ++i)
      callers.emplace_back([&] {
        for (int call = 0; call < 100; ++call)
          world.call([&] {
            if (++calls == 400) all.set_value();
          });
      });
    for (auto& caller : callers)
      caller.join();
    CHECK(world.run_until(done));
    CHECK(calls == 400);
  }

  TEST_CASE("a world knows its seed") {
    CHECK(world::virtual_time({.seed = 42}).seed() == 42);
    CHECK(world::threads({.seed = 43, .threads = 1}).seed() == 43);
  }

  TEST_CASE("time advances in a threads world") {
    auto world = world::threads({.threads = 1});
    auto before = world.now();
    CHECK(before >= 0ns);
    while (world.now() == before)
      std::this_thread::yield();
    CHECK(world.now() > before);
  }

  TEST_CASE("work is done on other threads in a threads world") {
    for (unsigned threads : {0U, 1U, 2U}) {
      auto world = world::threads({.threads = threads});
      std::promise<std::thread::id> done;
      world.submit([&] { done.set_value(std::this_thread::get_id()); });
      CHECK(done.get_future().get() != std::this_thread::get_id());
    }
  }

  TEST_CASE("as many pieces of work run at a time in a threads world as it was asked for") {
    auto world = world::threads({.threads = 2});
    std::promise<void> runs[2];
    std::promise<void> sees_the_other[2];
    for (size_t i : {0U, 1U})
      world.submit([&, i, other = runs[1 - i].get_future().share()] {
        runs[i].set_value();
        other.wait();
        sees_the_other[i].set_value();
      });
    for (auto& saw : sees_the_other) {
      auto done = saw.get_future();
      CHECK(world.run_until(done));
    }
  }

  TEST_CASE("work with files is done in its order, and a threads world ends when it is done") {
    std::vector<int> done;
    {
      auto world = world::threads({.threads = 2});
      for (int i = 0; i < 20; ++i)
        world.submit_io([&done, i] { done.push_back(i); });
    }
    CHECK(done.size() == 20);
    CHECK(std::ranges::is_sorted(done));
  }

  TEST_CASE("a call happens in a threads world") {
    auto world = world::threads({.threads = 1});
    std::promise<void> called;
    world.call([&] { called.set_value(); });
    auto done = called.get_future();
    CHECK(world.run_until(done));
  }

  TEST_CASE("a question from outside is answered in both worlds") {
    for (auto make : {+[] { return world::virtual_time(); }, +[] { return world::threads(); }}) {
      auto world = make();
      auto queue = spawn_queue(world);
      caf::anon_send(queue, make_put_tokens(3, 1));
      auto token = ask<msg<wire::Token>>(world, queue, make_take_token(0, 0));
      REQUIRE(token);
      CHECK(token->reader().getStep() == 3);
      end(queue);
    }
  }

  TEST_CASE("a question to an actor that is gone is answered as well, in both worlds") {
    for (auto make : {+[] { return world::virtual_time(); }, +[] { return world::threads(); }}) {
      auto world = make();
      auto queue = spawn_queue(world);
      end(queue);
      auto token = ask<msg<wire::Token>>(world, queue, make_take_token(0, 0));
      REQUIRE_FALSE(token);
      CHECK(token.error().code == errc::unavailable);
    }
  }

  TEST_CASE("an error answers a question from outside with its code and line") {
    auto world = world::virtual_time();
    auto queue = spawn_queue(world);
    caf::anon_send(queue, make_close_tokens());
    auto token = ask<msg<wire::Token>>(world, queue, make_take_token(0, 0));
    REQUIRE_FALSE(token);
    CHECK(token.error() == error{errc::cancelled, "the job is over"});
    end(queue);
  }

  TEST_CASE("a question that can have no answer says that the virtual world stalled") {
    auto world = world::virtual_time();
    auto queue = spawn_queue(world);
    auto token = ask<msg<wire::Token>>(world, queue, make_take_token(0, 0));
    REQUIRE_FALSE(token);
    CHECK(token.error().code == errc::stalled);
    caf::anon_send(queue, make_close_tokens());
    end(queue);
  }
}

} // namespace world_test
