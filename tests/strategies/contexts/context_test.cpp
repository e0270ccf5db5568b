// SPDX-License-Identifier: Apache-2.0
// Goal: every caller knows in which context it is, and a call in the wrong one is refused by a line
// that names the call, the context it was made in and the way out. Method: every call in every
// context, under all strategies.
#include "tests/small_arrays.hpp"
#include "tests/strategies/every_strategy.hpp"
#include "tests/strategies/refusal.hpp"

#include <fmt/format.h>
#include <set>
#include <thread>

namespace context_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// The answers of a context to the questions that code may ask anywhere.
struct surroundings {
  bool has_one = false;
  bool crosses = false;
  bool knows_replica = false;
  std::optional<uint32_t> copy;
  strategy* current = nullptr;

  bool operator==(const surroundings&) const = default;
};

surroundings look() {
  surroundings seen{has_strategy(), in_cross_replica_context(), get_replica_context() != nullptr,
                    get_update_replica_id(), nullptr};
  if (refusal_of([] { static_cast<void>(get_strategy()); }).code == errc::none)
    seen.current = &get_strategy();
  return seen;
}

using named_call = std::pair<std::string, std::function<void()>>;

/// The calls that concern all replicas, each by its name.
std::vector<named_call> calls_for_all(strategy& of, const variable& some) {
  auto value = [&of] {
    std::vector<tensor> each;
    for (uint32_t i = 0; i < of.num_replicas_in_sync(); ++i)
      each.push_back(array({1}, {1}));
    return distributed_value<tensor>::per_replica(std::move(each));
  };
  return {
    {"run", [&of] { of.run([](replica_context&) {}); }},
    {"cross_replica", [&of] { of.cross_replica([](cross_replica_context&) {}); }},
    {"assign", [&of, some] { of.assign(some, 1); }},
    {"assign_add", [&of, some] { of.assign_add(some, 1); }},
    {"assign_sub", [&of, some] { of.assign_sub(some, 1); }},
    {"reduce", [&of, value] { static_cast<void>(of.reduce(reduce_op::sum, value())); }},
    {"gather", [&of, value] { static_cast<void>(of.gather(value(), 0)); }},
    {"reduce_to",
     [&of, value, some] {
       static_cast<void>(of.extended().reduce_to(reduce_op::sum, value(), some));
     }},
    {"batch_reduce_to",
     [&of, value, some] {
       static_cast<void>(
         of.extended().batch_reduce_to(reduce_op::sum, {{as_gradients(value()), some}}));
     }},
    {"broadcast_to",
     [&of, some] { static_cast<void>(of.extended().broadcast_to(scalar(1), some)); }},
    {"update",
     [&of, some] { of.extended().update(some, [](update_context&, const variable&) {}); }},
    {"update_non_slot",
     [&of] { of.extended().update_non_slot({"cpu:0"}, [](update_context&) {}); }},
    {"make_variable",
     [&of] { of.make_variable(fmt::format("v{}", of.variables().size()), scalar(0)); }},
    {"experimental_distribute_values_from_function",
     [&of] {
       static_cast<void>(
         of.experimental_distribute_values_from_function([](value_context) { return 1; }));
     }},
  };
}

const std::set<std::string> calls_that_do_not_wait{"reduce", "gather", "make_variable",
                                                   "experimental_distribute_values_from_function"};

bool has(const error& refused, const std::string& part) {
  return refused.message.find(part) != std::string::npos;
}

/// Two strategies in one world.
struct two_strategies {
  troupe::world world = world::virtual_time();
  mirrored_strategy ours{world, {cpu_devices(2)}};
  mirrored_strategy theirs{world, {cpu_devices(2)}};
};

} // namespace

TEST_SUITE("strategies/contexts/context") {
  TEST_CASE("outside everything there is no strategy but the default one, if there is one") {
    CHECK(look() == surroundings{});
    CHECK(refusal_of([] { static_cast<void>(get_strategy()); })
          == error{errc::failed_precondition,
                   "get_strategy was called outside every scope, and there is no default strategy; "
                   "enter a scope, or make a default_strategy"});
    auto world = world::virtual_time();
    default_strategy standing_by{world};
    CHECK(look() == surroundings{.current = &standing_by});
  }

  TEST_CASE("there is but one default strategy, until it is gone") {
    auto world = world::virtual_time();
    {
      default_strategy first{world};
      CHECK(refusal_of([&] { default_strategy{world}; }).code == errc::failed_precondition);
      CHECK(default_strategy::instance() == &first);
    }
    CHECK(default_strategy::instance() == nullptr);
    default_strategy second{world};
    CHECK(default_strategy::instance() == &second);
  }

  TEST_CASE("in a scope, a strategy is the current one, and code is cross-replica") {
    for_every_strategy([](strategy& strategy) {
      auto is_chosen = &strategy != default_strategy::instance();
      {
        auto scope = strategy.scope();
        CHECK(&*scope == &strategy);
        CHECK(look() == surroundings{is_chosen, true, false, {}, &strategy});
      }
      CHECK(!has_strategy());
    });
  }

  TEST_CASE("in a run, code knows its replica and is not cross-replica") {
    for_every_strategy([](strategy& strategy) {
      auto is_chosen = &strategy != default_strategy::instance();
      auto seen = strategy.run([](replica_context& context) {
        auto here = look();
        here.knows_replica = get_replica_context() == &context;
        return here;
      });
      for (const auto& each : strategy.experimental_local_results(seen))
        CHECK(each == surroundings{is_chosen, false, true, {}, &strategy});
    });
  }

  TEST_CASE("a replica is in its context still after it has waited, on whatever thread") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", zeros({3}));
      auto is_there = strategy.run([weights](replica_context& context) -> task<bool> {
        auto computing = context.compute([](std::stop_token) { return 1; });
        static_cast<void>(co_await computing);
        auto reading = context.read(weights);
        static_cast<void>(co_await reading);
        auto meeting = context.all_reduce(reduce_op::sum, 1.0);
        static_cast<void>(co_await meeting);
        co_return get_replica_context() == &context;
      });
      for (auto each : strategy.experimental_local_results(is_there))
        CHECK(each);
    });
  }

  TEST_CASE("in a merge function, code is cross-replica and has no replica") {
    for_every_strategy([](strategy& strategy) {
      auto is_chosen = &strategy != default_strategy::instance();
      auto seen = strategy.run([](replica_context& context) -> task<surroundings> {
        auto merging = context.merge_call([](cross_replica_context&) { return look(); });
        auto result = co_await merging;
        co_return result;
      });
      for (const auto& each : strategy.experimental_local_results(seen))
        CHECK(each == surroundings{is_chosen, true, false, {}, &strategy});
    });
  }

  TEST_CASE("in an update, code is cross-replica and knows its copy") {
    for_every_strategy([](strategy& strategy) {
      auto is_chosen = &strategy != default_strategy::instance();
      auto weights = strategy.make_variable("w", zeros({3}));
      auto look_there = [](update_context& context, const variable&) {
        auto seen = look();
        CHECK(seen.copy == context.replica_id());
        return seen;
      };
      auto seen = strategy.extended().update(weights, look_there);
      REQUIRE(seen.size() == weights.copies());
      for (uint32_t i = 0; i < seen.size(); ++i)
        CHECK(seen[i] == surroundings{is_chosen, true, false, i, &strategy});
    });
  }

  TEST_CASE("work that is computed has a strategy, but no replica") {
    for_every_strategy([](strategy& strategy) {
      auto is_chosen = &strategy != default_strategy::instance();
      auto seen = strategy.run([](replica_context& context) -> task<surroundings> {
        auto computing = context.compute([](std::stop_token) { return look(); });
        auto result = co_await computing;
        co_return result;
      });
      for (const auto& each : strategy.experimental_local_results(seen))
        CHECK(each == surroundings{is_chosen, false, false, {}, &strategy});
    });
  }

  TEST_CASE("a new thread begins outside everything") {
    two_strategies both;
    auto scope = both.ours.scope();
    surroundings elsewhere{.has_one = true};
    std::thread{[&] { elsewhere = look(); }}.join();
    CHECK(elsewhere == surroundings{});
    CHECK(has_strategy());
  }

  // ---- scopes ----

  TEST_CASE("the scope of the same strategy may be entered again") {
    two_strategies both;
    auto outer = both.ours.scope();
    {
      auto inner = both.ours.scope();
      CHECK(&get_strategy() == &both.ours);
    }
    CHECK(&get_strategy() == &both.ours);
    outer.exit();
    CHECK(!has_strategy());
    outer.exit(); // once more changes nothing
    CHECK(!has_strategy());
  }

  TEST_CASE("a scope inside that of another strategy is refused") {
    two_strategies both;
    auto scope = both.ours.scope();
    CHECK(refusal_of([&] { auto mixed = both.theirs.scope(); })
          == error{errc::wrong_context,
                   "Mixing different tf.distribute.Strategy objects: scope was called inside the "
                   "scope of another strategy; leave that one first"});
    CHECK(&get_strategy() == &both.ours);
  }

  TEST_CASE("the default strategy's scope inside another is refused") {
    two_strategies both;
    default_strategy standing_by{both.world};
    auto scope = both.ours.scope();
    auto refused = refusal_of([&] { auto nested = standing_by.scope(); });
    CHECK(refused.code == errc::wrong_context);
    CHECK(has(refused, "Must not nest tf.distribute.Strategy scopes"));
  }

  TEST_CASE("a scope inside a replica is refused, its own strategy's too") {
    for_every_strategy([](strategy& strategy) {
      auto refused = strategy.run([&strategy](replica_context&) {
        return refusal_of([&] { auto scope = strategy.scope(); });
      });
      CHECK(refused[0]
            == error{errc::wrong_context,
                     "scope was called in the replica context of replica 0, but needs the "
                     "cross-replica context; enter the scope around `run`"});
    });
  }

  TEST_CASE("a scope in a merge function is the one that is there already") {
    for_every_strategy([](strategy& strategy) {
      auto seen = strategy.run([](replica_context& context) -> task<bool> {
        auto enter = [](cross_replica_context& all) {
          auto scope = all.strategy().scope();
          return &get_strategy() == &all.strategy() && in_cross_replica_context();
        };
        auto merging = context.merge_call(enter);
        auto result = co_await merging;
        co_return result&& get_replica_context() == &context;
      });
      CHECK(seen[0]);
    });
  }

  TEST_CASE("scopes that are left in the wrong order are refused") {
    two_strategies both;
    auto outer = both.ours.scope();
    auto inner = both.ours.scope();
    CHECK(refusal_of([&] { outer.exit(); })
          == error{errc::wrong_context,
                   "scope nesting error: a scope was left while another, entered later, was not; "
                   "leave them in the order of their nesting"});
    inner.exit();
    outer.exit();
    CHECK(!has_strategy());
  }

  TEST_CASE("a guard that outlives the scope around it leaves nothing, and no other's scope") {
    two_strategies both;
    auto weights = both.ours.make_variable("weights", zeros({1}));
    auto beside = [&] {
      auto scope = both.ours.scope();
      return both.ours.extended().colocate_vars_with(weights);
    };
    auto outer = both.ours.scope();
    {
      auto guard = beside();
      CHECK(has_strategy());
    }
    CHECK(has_strategy());
    outer.exit();
    CHECK(context_stack::current().top().number == 0);
  }

  TEST_CASE("a scope inside an update has its copy") {
    two_strategies both;
    auto weights = both.ours.make_variable("weights", zeros({1}));
    std::vector<std::optional<uint32_t>> seen;
    both.ours.extended().update(weights, [&](update_context&, const variable&) {
      auto scope = both.ours.scope();
      seen.push_back(get_update_replica_id());
    });
    REQUIRE(seen.size() == weights.copies());
    for (uint32_t i = 0; i < seen.size(); ++i)
      CHECK(seen[i] == i);
  }

  TEST_CASE("a scope that is left by force takes those inside it along") {
    two_strategies both;
    auto outer = std::make_unique<strategy_scope>(both.ours);
    auto inner = std::make_unique<strategy_scope>(both.ours);
    outer.reset();
    CHECK(!has_strategy());
    inner.reset();
    CHECK(!has_strategy());
  }

  // ---- experimental_set_strategy ----

  TEST_CASE("a strategy that is set stays until it is replaced or unset") {
    two_strategies both;
    experimental_set_strategy(&both.ours);
    CHECK(look() == surroundings{true, true, false, {}, &both.ours});
    experimental_set_strategy(&both.theirs);
    CHECK(&get_strategy() == &both.theirs);
    {
      auto scope = both.theirs.scope();
      CHECK(refusal_of([&] { auto other = both.ours.scope(); }).code == errc::wrong_context);
    }
    CHECK(&get_strategy() == &both.theirs);
    experimental_set_strategy(nullptr);
    CHECK(!has_strategy());
  }

  TEST_CASE("no strategy is set inside a scope or a run") {
    two_strategies both;
    {
      auto scope = both.ours.scope();
      auto refused = refusal_of([&] { experimental_set_strategy(&both.ours); });
      CHECK(refused
            == error{errc::wrong_context,
                     "experimental_set_strategy was called in the cross-replica context. Must not "
                     "be called inside a `strategy.scope()`; leave it first"});
    }
    auto refused = both.ours.run(
      [&](replica_context&) { return refusal_of([&] { experimental_set_strategy(nullptr); }); });
    CHECK(refused[1].code == errc::wrong_context);
    CHECK(has(refused[1], "the replica context of replica 1"));
  }

  TEST_CASE("a strategy that was set and is gone is the current one no more") {
    auto world = world::virtual_time();
    {
      one_device_strategy short_lived{world};
      experimental_set_strategy(&short_lived);
    }
    CHECK(!has_strategy());
  }

  // ---- what is legal where ----

  TEST_CASE("outside everything, and in the own scope, every call for all replicas works") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", zeros({1}));
      for (const auto& [name, call] : calls_for_all(strategy, weights)) {
        CAPTURE(name);
        CHECK(refusal_of(call) == error{});
        auto scope = strategy.scope();
        CHECK(refusal_of(call) == error{});
      }
    });
  }

  TEST_CASE("in a replica, calls for all replicas are refused") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", zeros({1}));
      for (const auto& [name, call] : calls_for_all(strategy, weights)) {
        CAPTURE(name);
        auto refused = strategy.run([call = call](replica_context&) { return refusal_of(call); });
        auto instead = name == "gather" ? "all_gather" : "merge_call";
        CHECK(refused[0]
              == error{errc::wrong_context,
                       name
                         + " was called in the replica context of replica 0. Method requires "
                           "being in cross-replica context, use get_replica_context()."
                         + instead + "()"});
      }
    });
  }

  TEST_CASE("in computed work, calls for all replicas are refused") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", zeros({1}));
      for (const auto& [name, call] : calls_for_all(strategy, weights)) {
        CAPTURE(name);
        auto refused = strategy.run([call = call](replica_context& context) -> task<error> {
          auto computing = context.compute([call](std::stop_token) { return refusal_of(call); });
          auto result = co_await computing;
          co_return result;
        });
        CHECK(refused[0].code == errc::wrong_context);
        CHECK(has(refused[0], name + " was called in the work of `compute`"));
      }
    });
  }

  TEST_CASE("in a merge function and in an update, only calls that wait are refused") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", zeros({1}));
      for (const auto& [name, call] : calls_for_all(strategy, weights)) {
        CAPTURE(name);
        auto in_merge = strategy.cross_replica(
          [call = call](cross_replica_context&) { return refusal_of(call); });
        auto in_update = strategy.extended().update(
          weights, [call = call](update_context&, const variable&) { return refusal_of(call); });
        if (calls_that_do_not_wait.contains(name)) {
          CHECK(in_merge == error{});
          CHECK(in_update[0] == error{});
          continue;
        }
        auto awaited = name == "run" ? "call_for_each_replica" : name;
        CHECK(in_merge
              == error{errc::wrong_context,
                       name
                         + " of the strategy was called in the cross-replica context, inside a "
                           "coroutine, but it blocks; await "
                         + awaited + " of the cross_replica_context"});
        CHECK(in_update[0].code == errc::wrong_context);
        CHECK(
          has(in_update[0], name + " of the strategy was called in the update context of copy 0"));
      }
    });
  }

  TEST_CASE("in another strategy's scope, run and merge function, every call is refused") {
    two_strategies both;
    auto weights = both.ours.make_variable("w", zeros({1}));
    for (const auto& [name, call] : calls_for_all(both.ours, weights)) {
      CAPTURE(name);
      auto check = [&name = name](const error& refused, const std::string& where) {
        CHECK(refused.code == errc::wrong_context);
        CHECK(has(refused, name + " was called in " + where + " of another strategy. Mixing "
                             + "different tf.distribute.Strategy objects"));
      };
      {
        auto scope = both.theirs.scope();
        check(refusal_of(call), "the cross-replica context");
      }
      auto in_run = both.theirs.run([call = call](replica_context&) { return refusal_of(call); });
      check(in_run[1], "the replica context of replica 1");
      auto in_merge = both.theirs.cross_replica(
        [call = call](cross_replica_context&) { return refusal_of(call); });
      check(in_merge, "the cross-replica context");
    }
  }

  TEST_CASE("a read of the strategy is refused where it would hold up an actor") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", zeros({1}));
      auto read = [&strategy, weights] { static_cast<void>(strategy.read(weights)); };
      auto refused = strategy.run([read](replica_context&) { return refusal_of(read); });
      CHECK(refused[0]
            == error{errc::wrong_context,
                     "read of the strategy was called in the replica context of replica 0, but it "
                     "blocks; await read of the context that your function was given"});
      auto computed = strategy.run([read](replica_context& context) -> task<error> {
        auto computing = context.compute([read](std::stop_token) { return refusal_of(read); });
        auto result = co_await computing;
        co_return result;
      });
      CHECK(computed[0].code == errc::wrong_context);
    });
  }

  TEST_CASE("a replica's calls in its own merge function are refused") {
    for_every_strategy([](strategy& strategy) {
      auto refused = strategy.run([](replica_context& context) -> task<error> {
        auto meet_again = [&context](cross_replica_context&) -> task<error> {
          auto inner = refusal_in(context.all_reduce(reduce_op::sum, 1.0));
          auto result = co_await inner;
          co_return result;
        };
        auto merging = context.merge_call(meet_again);
        auto result = co_await merging;
        co_return result;
      });
      CHECK(refused[0]
            == error{errc::wrong_context,
                     "merge_call was called in the cross-replica context, but needs the replica "
                     "context of replica 0; call it in the function that `run` runs"});
    });
  }

  TEST_CASE("a replica's calls in another replica are refused") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    replica_context* of_replica_0 = nullptr;
    auto refused = strategy.run([&](replica_context& context) -> task<error> {
      if (context.replica_id_in_sync_group() == 0) of_replica_0 = &context;
      auto meeting = context.all_reduce(reduce_op::sum, 1.0);
      static_cast<void>(co_await meeting);
      error reason;
      if (context.replica_id_in_sync_group() == 1) {
        auto calling = refusal_in(of_replica_0->all_reduce(reduce_op::sum, 1.0));
        reason = co_await calling;
      }
      auto again = context.all_reduce(reduce_op::sum, 1.0);
      static_cast<void>(co_await again);
      co_return reason;
    });
    CHECK(refused[1]
          == error{errc::wrong_context,
                   "merge_call was called for replica 0 in the replica context of replica 1. "
                   "Mismatching ReplicaContext; use the context that your function was given"});
  }

  TEST_CASE("contexts are left when what they are for throws") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", zeros({1}));
      auto seen = strategy.run([weights](replica_context& context) -> task<bool> {
        auto fail_inside = [weights](cross_replica_context& all) -> task<double> {
          auto fail = [](update_context&, const variable&) -> double {
            throw failure{{errc::user_code, "no"}};
          };
          auto updating = all.update(weights, fail);
          static_cast<void>(co_await updating);
          co_return 0;
        };
        auto merging = refusal_in(context.merge_call(fail_inside));
        auto reason = co_await merging;
        co_return reason == error{errc::user_code, "no"} && get_replica_context() == &context;
      });
      for (auto each : strategy.experimental_local_results(seen))
        CHECK(each);
      CHECK(!has_strategy());
    });
  }
}

} // namespace context_test
