// SPDX-License-Identifier: Apache-2.0
// Goal: every actor of a job can be seen by name. Method: a few actors in a virtual world, which
// are looked at between its moments.
#include "actors/observing/observatory.hpp"
#include "actors/training/token_queue.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/deterministic_world.hpp"

#include <capnp/schema.h>

#include <algorithm>
#include <vector>

namespace observatory_test {

using namespace troupe;
using namespace troupe::test;

namespace {

std::optional<actor_sight> find(const world& world, const std::string& name) {
  auto all = world.observatory().look();
  auto found = std::ranges::find(all, name, &actor_sight::name);
  if (found == all.end()) return std::nullopt;
  return *found;
}

std::string kind_of(const actor_sight& sight) {
  return sight.last && sight.last->kind != nullptr ? sight.last->kind->name : "none";
}

} // namespace

TEST_SUITE("actors/observing/observatory") {
  TEST_CASE("an actor is seen with its mailbox, its last message and its end") {
    deterministic_world stage;
    auto queue = stage.spawn(token_queue, token_queue_config{sync_policy::latest_token, 0, {}});
    stage.world.introduce(queue.id(), "token queue");
    stage.pass(std::chrono::seconds{3});
    puppet chief{stage.world};
    caf::anon_send(queue, make_put_tokens(7, 2));
    REQUIRE(find(stage.world, "token queue"));
    CHECK(find(stage.world, "token queue")->mailbox_depth == 1);
    stage.settle();
    auto seen = find(stage.world, "token queue");
    REQUIRE(seen);
    CHECK(seen->mailbox_depth == 0);
    CHECK(seen->handled == 1);
    CHECK(seen->doing == actor_doing::waiting);
    CHECK(kind_of(*seen) == "PutTokens");
    CHECK(seen->last->step == 7);
    CHECK(seen->last->when == std::chrono::seconds{3});
    CHECK(seen->last->sender == 0);
    auto asked = chief.ask<msg<wire::QueueStatus>>(queue, make_read_queue_status());
    stage.settle();
    CHECK(asked.has_come());
    CHECK(kind_of(*find(stage.world, "token queue")) == "ReadQueueStatus");
    CHECK(find(stage.world, "token queue")->last->sender == chief.as<caf::actor>().id());
    caf::anon_send_exit(queue, caf::exit_reason::user_shutdown);
    stage.settle();
    CHECK(find(stage.world, "token queue")->doing == actor_doing::ended);
    CHECK(find(stage.world, "token queue")->errors == 0);
    CHECK(kind_of(*find(stage.world, "token queue")) == "exit");
  }

  TEST_CASE("an actor that was not introduced goes by its role") {
    deterministic_world stage;
    auto queue = stage.spawn(token_queue, token_queue_config{});
    caf::anon_send(queue, make_put_tokens(1, 1));
    stage.settle();
    auto name = "token_queue " + std::to_string(queue.id());
    CHECK(find(stage.world, name));
    CHECK(stage.world.observatory().name_of(queue.id()) == name);
    CHECK(stage.world.observatory().name_of(0) == "nobody");
    CHECK(stage.world.observatory().name_of(987654) == "actor 987654");
    caf::anon_send_exit(queue, caf::exit_reason::user_shutdown);
  }

  TEST_CASE("an actor that died of an error is seen to have one") {
    deterministic_world stage;
    auto queue = stage.spawn(token_queue, token_queue_config{});
    stage.world.introduce(queue.id(), "doomed");
    caf::anon_send_exit(queue, caf::exit_reason::kill);
    stage.settle();
    CHECK(find(stage.world, "doomed")->errors == 1);
  }

  TEST_CASE("the counts of a name go on when another actor takes it") {
    deterministic_world stage;
    for (uint64_t round = 1; round <= 3; ++round) {
      auto queue = stage.spawn(token_queue, token_queue_config{});
      stage.world.introduce(queue.id(), "token queue");
      caf::anon_send(queue, make_put_tokens(1, 1));
      stage.settle();
      uint64_t living = 0;
      for (const auto& sight : stage.world.observatory().look())
        if (sight.doing != actor_doing::ended) living += sight.handled;
      CHECK(living == 2 * round - 1); // messages, and the ends of those before
      caf::anon_send_exit(queue, caf::exit_reason::user_shutdown);
      stage.settle();
    }
  }

  TEST_CASE("the last of the actors that ended are remembered, in bounded memory") {
    deterministic_world stage;
    for (int i = 0; i < 300; ++i) {
      auto queue = stage.spawn(token_queue, token_queue_config{});
      stage.world.introduce(queue.id(), "queue " + std::to_string(i));
      caf::anon_send_exit(queue, caf::exit_reason::user_shutdown);
      stage.settle();
    }
    auto all = stage.world.observatory().look();
    CHECK(all.size() <= observatory::ended_kept_max + 2);
    CHECK(find(stage.world, "queue 299"));
    CHECK(!find(stage.world, "queue 0"));
  }

  TEST_CASE("a name that a signal handler reads stays whole when its observation gets another") {
    observatory observed{[] { return job_time{0}; }};
    const std::string first_name(100, 'a'), second_name(200, 'b');
    auto* actor = observed.watch(1);
    observed.introduce(1, first_name);
    const auto* seen = observed.first();
    const auto* begun = seen->name();
    observed.introduce(1, second_name);
    CHECK(begun == first_name);
    begun = seen->name();
    observed.retire(actor);
    uint64_t number = 1;
    while (seen->actor() == 1 && number < 300)
      observed.retire(observed.watch(++number));
    observed.introduce(number, "c");
    CHECK(std::string_view{seen->name()} == "c");
    CHECK(begun == second_name);
  }

  TEST_CASE("an actor that ended gives its observation to another, though its handle is held") {
    deterministic_world stage;
    std::vector<token_queue_actor> held;
    for (int i = 0; i < 300; ++i) {
      held.push_back(stage.spawn(token_queue, token_queue_config{}));
      caf::anon_send_exit(held.back(), caf::exit_reason::user_shutdown);
      stage.settle();
    }
    CHECK(stage.world.observatory().look().size() <= observatory::ended_kept_max + 2);
    auto newest = stage.spawn(token_queue, token_queue_config{});
    stage.world.introduce(newest.id(), "newest");
    for (const auto& ended : held)
      caf::anon_send(ended, make_put_tokens(1, 1));
    stage.settle();
    CHECK(find(stage.world, "newest")->received == 0);
    caf::anon_send_exit(newest, caf::exit_reason::user_shutdown);
  }

  TEST_CASE("every message of the envelope is known, with a name of its own") {
    auto bodies = capnp::Schema::from<wire::Envelope>().getUnionFields();
    auto ours = std::ranges::count_if(message_kinds(), [](const auto& kind) {
      return kind.type != nullptr && std::isupper(kind.name[0]) != 0;
    });
    CHECK(ours == static_cast<ptrdiff_t>(bodies.size()));
    for (const auto& kind : message_kinds()) {
      CHECK(find_message_kind(kind.number, kind.type) == &kind);
      CHECK(std::ranges::count(message_kinds(), std::string_view{kind.name},
                               [](const auto& other) { return std::string_view{other.name}; })
            == 1);
    }
    CHECK(find_message_kind(0, &typeid(int)) == nullptr);
    CHECK(find_message_kind(0, nullptr) == nullptr);
  }

  TEST_CASE("a gradient is about the step that it was computed for") {
    const auto* kind = find_message_kind(0, &typeid(msg<wire::Token>));
    REQUIRE(kind != nullptr);
    auto token = make_token(12);
    CHECK(kind->step(&token) == 12);
    const auto* status = find_message_kind(0, &typeid(msg<wire::ReadQueueStatus>));
    auto question = make_read_queue_status();
    CHECK(status->step(&question) == no_step);
  }
}

} // namespace observatory_test
