// SPDX-License-Identifier: Apache-2.0
// Goal: variables are what they were made from, and what cannot be made is refused in words.
// Method: a strategy in either world, no training.
#include "messages/errors/failure.hpp"
#include "strategies/contexts/strategy.hpp"
#include "strategies/optimizers/sync_replicas_optimizer.hpp"
#include "strategies/variables/exponential_moving_average.hpp"
#include "tests/doctest.hpp"

#include <algorithm>

namespace strategy_test {

using namespace troupe;

namespace {

/// The error that `action` throws; fails the test if it throws nothing, or something else.
template <class Action>
error failure_of(const Action& action) {
  try {
    action();
  } catch (const failure& failed) {
    CHECK(failed.what() == failed.reason().message);
    return failed.reason();
  }
  FAIL("nothing was thrown");
  return {};
}

struct strategy_fixture {
  troupe::world world = world::virtual_time();
  parameter_server_strategy strategy{world, {.replicas = 2}};
};

} // namespace

TEST_SUITE("strategies/contexts/strategy") {
  TEST_CASE_FIXTURE(strategy_fixture, "a variable has the name, dtype and shape it was made with") {
    auto weights = strategy.make_variable("w", zeros({2, 3}));
    CHECK(weights.name() == "w");
    CHECK(weights.type() == dtype::f32);
    CHECK(weights.extents() == shape{2, 3});
    CHECK(weights.form().name == "w");
    CHECK(weights.index() == 0);
    auto bias = strategy.make_variable("bias", zeros({}, dtype::f64));
    CHECK(bias.type() == dtype::f64);
    CHECK(bias.extents() == shape{});
    CHECK(bias.index() == 1);
  }

  TEST_CASE_FIXTURE(strategy_fixture, "a variable that was moved from is still the same one") {
    auto weights = strategy.make_variable("w", zeros({2, 3}));
    auto moved = std::move(weights);
    CHECK(weights == moved); // NOLINT(bugprone-use-after-move)
    CHECK(strategy.read(weights).extents() == shape{2, 3});
  }

  TEST_CASE("a distributed value that was moved from, or is empty, has no parts") {
    auto parts = distributed_value<int>::per_replica({1, 2});
    auto moved = std::move(parts);
    CHECK(moved.primary() == 1);
    CHECK(failure_of([&] { static_cast<void>(parts[0]); }).code == errc::invalid_argument);
    CHECK(failure_of([] { static_cast<void>(distributed_value<int>{}.primary()); }).code
          == errc::invalid_argument);
  }

  TEST_CASE_FIXTURE(strategy_fixture, "variables are listed in the order of their making") {
    CHECK(strategy.variables().empty());
    auto first = strategy.make_variable("b", zeros({1}));
    auto second = strategy.make_variable("a", zeros({1}));
    REQUIRE(strategy.variables().size() == 2);
    CHECK(strategy.variables()[0] == first);
    CHECK(strategy.variables()[1] == second);
    CHECK(first != second);
  }

  TEST_CASE_FIXTURE(strategy_fixture, "a name that is taken, or none at all, is refused") {
    static_cast<void>(strategy.make_variable("w", zeros({1})));
    CHECK(failure_of([&] { strategy.make_variable("w", zeros({2})); })
          == error{errc::invalid_argument,
                   "there is a variable 'w' already; give this one another name"});
    CHECK(failure_of([&] { strategy.make_variable("", zeros({1})); })
          == error{errc::invalid_argument, "a variable needs a name"});
    CHECK(strategy.variables().size() == 1);
  }

  TEST_CASE_FIXTURE(strategy_fixture, "a dtype that no variable can have is refused") {
    for (auto type : {dtype::f16, dtype::bf16})
      CHECK(failure_of([&] { strategy.make_variable("w", zeros({1}, type)); })
            == error{errc::type_mismatch, "variable 'w' is " + std::string{to_string(type)}
                                            + "; variables are f32, f64, i32 or i64"});
  }

  TEST_CASE_FIXTURE(strategy_fixture, "names of any characters are names") {
    for (const auto* name : {"a b", "dense/kernel:0", "gewicht ä"})
      CHECK(strategy.make_variable(name, zeros({1})).name() == name);
  }

  TEST_CASE_FIXTURE(strategy_fixture, "a name that is not UTF-8 is refused") {
    // Cut off, a byte alone, too long a form, a surrogate, beyond the last code point.
    for (const auto* name : {"w\xc3", "w\xff", "\x80w", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                             "\xf4\x90\x80\x80"})
      CHECK(failure_of([&] { strategy.make_variable(name, zeros({1})); }).code
            == errc::invalid_argument);
    CHECK(failure_of([&] { strategy.make_variable("gewicht \xe4", zeros({1})); }).message
          == "the variable name 'gewicht ?' is not UTF-8, and no checkpoint could hold it; write "
             "it in UTF-8");
    for (const auto* name :
         {"\xc2\xa0", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf"})
      CHECK(strategy.make_variable(name, zeros({1})).name() == name);
  }

  TEST_CASE_FIXTURE(strategy_fixture,
                    "the name under which checkpoints keep their metadata is refused") {
    CHECK(failure_of([&] { strategy.make_variable("__metadata__", zeros({1})); })
          == error{errc::invalid_argument,
                   "no variable can be named '__metadata__': checkpoints keep something else by "
                   "this name; choose another"});
  }

  TEST_CASE_FIXTURE(strategy_fixture, "a name with control characters is refused") {
    for (const auto& name : {std::string{"a\nb"}, std::string{"a\0b", 3},
                             std::string{"a\x7f"
                                         "b"}})
      CHECK(failure_of([&] { strategy.make_variable(name, zeros({1})); })
            == error{errc::invalid_argument,
                     "the variable name 'a?b' has control characters, shown as '?'; leave them "
                     "out"});
    CHECK(strategy.variables().empty());
  }

  TEST_CASE("a variable is read as it was made, in both worlds") {
    for (auto make : {+[] { return world::virtual_time(); }, +[] { return world::threads(); }}) {
      auto world = make();
      parameter_server_strategy strategy{world};
      auto initial = make_tensor({2, 2}, {1, 2, 3, 4});
      auto weights = strategy.make_variable("w", initial);
      auto value = strategy.read(weights);
      CHECK(value.extents() == shape{2, 2});
      CHECK(std::ranges::equal(value.values<float>(), initial.values<float>()));
      CHECK(value.read_only());
      CHECK(value.data() != initial.data());
      CHECK(strategy.read(weights).data() == value.data());
    }
  }

  TEST_CASE_FIXTURE(strategy_fixture, "a transposed initial value is taken as it reads") {
    auto weights = strategy.make_variable("w", make_tensor({2, 3}, {1, 2, 3, 4, 5, 6}).transpose());
    auto value = strategy.read(weights);
    CHECK(value.extents() == shape{3, 2});
    const float expected[] = {1, 4, 2, 5, 3, 6};
    CHECK(std::ranges::equal(value.values<float>(), expected));
  }

  TEST_CASE_FIXTURE(strategy_fixture, "a variable may be empty") {
    auto empty = strategy.make_variable("w", zeros({0, 3}));
    CHECK(strategy.read(empty).element_count() == 0);
  }

  TEST_CASE("a value that was read outlives strategy and world") {
    tensor value;
    {
      auto world = world::virtual_time();
      parameter_server_strategy strategy{world};
      value = strategy.read(strategy.make_variable("w", make_tensor({1}, {7})));
    }
    CHECK(value.values<float>()[0] == 7);
  }

  TEST_CASE("a variable of a strategy that is gone cannot be read") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world};
    auto orphan = [&] {
      parameter_server_strategy short_lived{world};
      return short_lived.make_variable("w", zeros({1}));
    }();
    CHECK(failure_of([&] { static_cast<void>(strategy.read(orphan)); })
          == error{errc::unavailable, "the actor that was asked has ended (was its strategy, or "
                                      "what else holds it, destroyed?)"});
  }

  TEST_CASE_FIXTURE(strategy_fixture, "a variable of another world cannot be read") {
    auto other_world = world::virtual_time();
    parameter_server_strategy other{other_world};
    auto theirs = other.make_variable("theirs", zeros({1}));
    auto refused = [](const std::string& call) {
      return error{errc::invalid_argument,
                   call
                     + " was called for variable 'theirs', which a strategy of another world "
                       "made; use a variable of this one"};
    };
    CHECK(failure_of([&] { static_cast<void>(strategy.read(theirs)); }) == refused("read"));
    CHECK(failure_of([&] { static_cast<void>(strategy.reduce(reduce_op::sum, theirs)); })
          == refused("reduce"));
    CHECK(failure_of(
            [&] { static_cast<void>(exponential_moving_average{0.5}.average(strategy, theirs)); })
          == refused("average"));
    sync_replicas_optimizer optimizer{rules::sgd{}, {}};
    CHECK(failure_of([&] { static_cast<void>(optimizer.get_slot(strategy, theirs, "m")); })
          == refused("get_slot"));
  }

  TEST_CASE_FIXTURE(strategy_fixture, "a strategy knows its replicas and its world") {
    CHECK(strategy.num_replicas_in_sync() == 2);
    CHECK(&strategy.world() == &world);
    CHECK(parameter_server_strategy{world}.num_replicas_in_sync() == 1);
  }

  TEST_CASE_FIXTURE(strategy_fixture, "a strategy without replicas is refused") {
    CHECK(failure_of([&] {
            parameter_server_strategy{world, {.replicas = 0}};
          })
          == error{errc::invalid_argument, "a parameter_server strategy needs at least 1 replica"});
  }

  TEST_CASE_FIXTURE(strategy_fixture, "two strategies may use the same name in one world") {
    parameter_server_strategy other{world};
    auto ours = strategy.make_variable("w", make_tensor({1}, {1}));
    auto theirs = other.make_variable("w", make_tensor({1}, {2}));
    CHECK(strategy.read(ours).values<float>()[0] == 1);
    CHECK(other.read(theirs).values<float>()[0] == 2);
  }
}

} // namespace strategy_test
