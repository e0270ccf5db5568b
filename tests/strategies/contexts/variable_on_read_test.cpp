// SPDX-License-Identifier: Apache-2.0
// Goal: a variable that is synchronised on read is each replica's own until it is read as a whole.
// Method: every operation in every context, for every aggregation, numbers by hand.
#include "actors/world/ask.hpp"
#include "messages/training_message.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/every_strategy.hpp"
#include "tests/strategies/refusal.hpp"

#include <fmt/format.h>

namespace variable_on_read_test {

using namespace troupe;
using namespace troupe::test;

namespace {

using aggregation = variable_aggregation;

constexpr aggregation all_aggregations[]
  = {aggregation::none, aggregation::sum, aggregation::mean, aggregation::only_first_replica};
constexpr aggregation readable[]
  = {aggregation::sum, aggregation::mean, aggregation::only_first_replica};

/// A mirrored strategy on two devices, and variables that it synchronises on read.
struct two_replicas {
  troupe::world world = world::virtual_time();
  mirrored_strategy strategy{world, {cpu_devices(2)}};

  variable make(aggregation mode, const tensor& initial = scalar(1)) {
    return strategy.make_variable(
      fmt::format("v{}", strategy.variables().size()), initial,
      {.synchronization = variable_synchronization::on_read, .aggregation = mode});
  }

  /// The copies, as replicas read them.
  numbers copies(const variable& source) {
    auto read = strategy.run([source](replica_context& context) -> task<double> {
      auto reading = context.read(source);
      auto value = co_await reading;
      co_return numbers_of(value)[0];
    });
    return read.local_results();
  }

  /// Replica i assigns `first` + i.
  void assign_each(const variable& target, double first) {
    strategy.run([target, first](replica_context& context) -> task<void> {
      auto assigning = context.assign(target, first + context.replica_id_in_sync_group());
      static_cast<void>(co_await assigning);
    });
  }

  numbers whole(const variable& source) { return numbers_of(strategy.read(source)); }
};

error no_aggregation(const std::string& name, const std::string& call) {
  return {errc::invalid_argument, "variable '" + name
                                    + "' is synchronised on read and has no aggregation; " + call
                                    + " it inside a replica"};
}

} // namespace

TEST_SUITE("strategies/contexts/variable_on_read") {
  TEST_CASE_FIXTURE(two_replicas, "it is not trainable, unless told") {
    auto metric = make(aggregation::sum);
    CHECK(!metric.trainable());
    CHECK(metric.synchronization() == variable_synchronization::on_read);
    auto told = strategy.make_variable(
      "t", scalar(1), {.synchronization = variable_synchronization::on_read, .trainable = true});
    CHECK(told.trainable());
    CHECK(strategy.trainable_variables() == std::vector{told});
  }

  TEST_CASE(
    "where replicas share variables, or are alone, it is one that is synchronised on write") {
    auto world = world::virtual_time();
    central_storage_strategy central{world, {.compute_devices = cpu_devices(3)}};
    one_device_strategy alone{world};
    for (strategy* of : {static_cast<strategy*>(&central), static_cast<strategy*>(&alone)}) {
      auto made
        = of->make_variable("v", scalar(4), {.synchronization = variable_synchronization::on_read});
      CHECK(made.synchronization() == variable_synchronization::on_write);
      CHECK(!made.trainable());
      CHECK(numbers_of(of->read(made)) == numbers{4});
    }
  }

  // ---- in replicas ----

  TEST_CASE("a replica reads and writes its own copy, whatever the aggregation") {
    for (uint32_t n : {1U, 2U, 5U})
      for (auto mode : all_aggregations) {
        auto world = world::virtual_time();
        mirrored_strategy strategy{world, {cpu_devices(n)}};
        auto own = strategy.make_variable(
          "v", scalar(1),
          {.synchronization = variable_synchronization::on_read, .aggregation = mode});
        auto results = strategy.run([own](replica_context& context) -> task<numbers> {
          auto id = context.replica_id_in_sync_group();
          auto assigning = context.assign(own, 10.0 * id);
          auto assigned = co_await assigning;
          auto adding = context.assign_add(own, 3);
          auto added = co_await adding;
          auto subtracting = context.assign_sub(own, scalar(1));
          static_cast<void>(co_await subtracting);
          auto reading = context.read(own);
          auto value = co_await reading;
          co_return numbers{numbers_of(assigned)[0], numbers_of(added)[0], numbers_of(value)[0]};
        });
        auto all = strategy.experimental_local_results(results);
        for (uint32_t i = 0; i < n; ++i)
          CHECK(all[i] == numbers{10.0 * i, 10.0 * i + 3, 10.0 * i + 2});
      }
  }

  TEST_CASE_FIXTURE(two_replicas, "replicas need not make the same calls") {
    auto own = make(aggregation::sum);
    strategy.run([own](replica_context& context) -> task<void> {
      for (uint32_t i = 0; i < context.replica_id_in_sync_group(); ++i) {
        auto adding = context.assign_add(own, 1);
        static_cast<void>(co_await adding);
      }
    });
    CHECK(copies(own) == numbers{1, 2});
  }

  // ---- as a whole ----

  TEST_CASE_FIXTURE(two_replicas, "as a whole it reads as its copies come to") {
    const double expected[] = {7, 3.5, 3};
    for (size_t i = 0; i < 3; ++i) {
      auto own = make(readable[i]);
      assign_each(own, 3);
      CHECK(whole(own) == numbers{expected[i]});
      auto scope = strategy.scope();
      CHECK(whole(own) == numbers{expected[i]});
      auto in_merge = strategy.cross_replica([own](cross_replica_context& all) -> task<double> {
        auto reading = all.read(own);
        auto value = co_await reading;
        co_return numbers_of(value)[0];
      });
      CHECK(in_merge == expected[i]);
      CHECK(strategy.extended().read_var(own).extents() == shape{});
    }
  }

  TEST_CASE_FIXTURE(two_replicas, "the initial value is not divided") {
    CHECK(whole(make(aggregation::sum)) == numbers{2});
    CHECK(whole(make(aggregation::mean)) == numbers{1});
  }

  TEST_CASE_FIXTURE(two_replicas, "an assignment to the whole shares out a sum") {
    const double expected[] = {4, 8, 8};
    for (size_t i = 0; i < 3; ++i) {
      auto own = make(readable[i]);
      assign_each(own, 3);
      strategy.assign(own, 8);
      CHECK(copies(own) == numbers{expected[i], expected[i]});
      CHECK(whole(own) == numbers{8});
    }
    auto integer = make(aggregation::sum, scalar(0, dtype::i32));
    strategy.assign(integer, 7);
    CHECK(copies(integer) == numbers{3, 3});
  }

  TEST_CASE_FIXTURE(two_replicas, "an assignment to the whole takes one value only") {
    auto own = make(aggregation::mean);
    auto each = distributed_value<tensor>::per_replica({scalar(1), scalar(2)});
    CHECK(refusal_of([&] { strategy.assign(own, each); }).code == errc::type_mismatch);
  }

  TEST_CASE_FIXTURE(two_replicas, "adding to the whole adds to each copy, but is no sum's") {
    for (auto mode : {aggregation::mean, aggregation::only_first_replica}) {
      auto own = make(mode);
      assign_each(own, 3);
      strategy.assign_add(own, 10);
      strategy.assign_sub(own, 1);
      CHECK(copies(own) == numbers{12, 13});
    }
    auto sum = make(aggregation::sum);
    auto refusal = [&](const std::string& call) {
      return error{errc::invalid_argument,
                   "SyncOnReadVariable does not support `" + call
                     + "` in cross-replica context when aggregation is set to SUM: variable '"
                     + sum.name() + "'; assign the new sum"};
    };
    CHECK(refusal_of([&] { strategy.assign_add(sum, 1); }) == refusal("assign_add"));
    CHECK(refusal_of([&] { strategy.assign_sub(sum, 1); }) == refusal("assign_sub"));
    CHECK(copies(sum) == numbers{1, 1});
  }

  TEST_CASE_FIXTURE(two_replicas, "without aggregation there is no whole to read or change") {
    auto own = make(aggregation::none);
    assign_each(own, 3);
    CHECK(refusal_of([&] { static_cast<void>(strategy.read(own)); })
          == error{errc::invalid_argument,
                   "Could not convert from `tf.VariableAggregation` NONE to a reduction: variable "
                   "'v0' is synchronised on read and has no aggregation; read it inside a replica, "
                   "or make it with one"});
    CHECK(refusal_of([&] { strategy.assign(own, 1); }) == no_aggregation("v0", "assign"));
    CHECK(refusal_of([&] { strategy.assign_add(own, 1); }) == no_aggregation("v0", "assign_add"));
    CHECK(copies(own) == numbers{3, 4});
  }

  // ---- in an update ----

  TEST_CASE_FIXTURE(two_replicas, "in an update, every operation is of one copy") {
    for (auto mode : all_aggregations) {
      auto own = make(mode);
      assign_each(own, 3);
      auto change = [](update_context& context, variable target, double by) -> task<double> {
        auto reading = context.read(target);
        auto before = co_await reading;
        auto adding = context.assign_add(target, by);
        auto added = co_await adding;
        auto subtracting = context.assign_sub(target, 1);
        static_cast<void>(co_await subtracting);
        co_return numbers_of(before)[0] + 100 * numbers_of(added)[0];
      };
      auto seen = strategy.extended().update(own, change, 5.0);
      CHECK(seen.local_results() == numbers{803, 904});
      CHECK(copies(own) == numbers{7, 8});
    }
  }

  TEST_CASE_FIXTURE(two_replicas, "a sum that every copy is assigned 5 reads 5 for each") {
    auto own = make(aggregation::sum);
    auto assign = [](update_context& context, variable target, double value) -> task<void> {
      auto assigning = context.assign(target, value);
      static_cast<void>(co_await assigning);
    };
    strategy.extended().update(own, assign, 5.0);
    CHECK(copies(own) == numbers{5, 5});
    CHECK(whole(own) == numbers{10});
  }

  // ---- scatters ----

  TEST_CASE_FIXTURE(two_replicas, "scatters are refused in every context") {
    for (auto mode : all_aggregations) {
      auto own = make(mode, array({2, 1}, {1, 2}));
      error expected{errc::unimplemented, "variable '" + own.name()
                                            + "' is synchronised on read, which does not go "
                                              "together with scatter_add"};
      auto in_replica = strategy.run([own](replica_context& context) -> task<error> {
        auto scattering = refusal_in(context.scatter_add(own, rows_of({0}, {1}, 2)));
        auto reason = co_await scattering;
        co_return reason;
      });
      CHECK(in_replica[1] == expected);
      auto as_a_whole = strategy.cross_replica([own](cross_replica_context& all) -> task<error> {
        auto scattering = refusal_in(all.scatter_add(own, rows_of({0}, {1}, 2)));
        auto reason = co_await scattering;
        co_return reason;
      });
      CHECK(as_a_whole == expected);
      auto in_update = [](update_context& context, variable target) -> task<error> {
        auto scattering = refusal_in(context.scatter_add(target, rows_of({0}, {1}, 2)));
        auto reason = co_await scattering;
        co_return reason;
      };
      CHECK(strategy.extended().update(own, in_update)[0] == expected);
    }
  }

  // ---- checkpoints ----

  TEST_CASE_FIXTURE(two_replicas, "a checkpoint holds the whole, and gives each copy its share") {
    const std::pair<double, numbers> expected[] = {{7, {3.5, 3.5}}, {3.5, {3.5, 3.5}}, {3, {3, 3}}};
    for (size_t i = 0; i < 3; ++i) {
      auto own = make(readable[i]);
      assign_each(own, 3);
      auto saved = ask<msg<wire::VariableState>>(world, own.owner(), make_read_state()).value();
      auto state = read_state(saved.reader(), saved.owner());
      CHECK(numbers_of(state.value) == numbers{expected[i].first});
      assign_each(own, 100);
      REQUIRE(ask<msg<wire::OptimizerInUse>>(world, own.owner(), make_restore_state(state)));
      CHECK(copies(own) == expected[i].second);
      CHECK(whole(own) == numbers{expected[i].first});
    }
  }

  TEST_CASE(
    "a sum restores as a whole the value that a plain variable saved, and the other way round") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    auto plain = strategy.make_variable("p", scalar(8));
    auto sum = strategy.make_variable(
      "s", scalar(0),
      {.synchronization = variable_synchronization::on_read, .aggregation = aggregation::sum});
    auto carry = [&](const variable& from, const variable& to) {
      auto saved = ask<msg<wire::VariableState>>(world, from.owner(), make_read_state()).value();
      auto state = read_state(saved.reader(), saved.owner());
      REQUIRE(ask<msg<wire::OptimizerInUse>>(world, to.owner(), make_restore_state(state)));
    };
    carry(plain, sum);
    CHECK(numbers_of(strategy.read(sum)) == numbers{8});
    strategy.assign(sum, 6);
    carry(sum, plain);
    CHECK(numbers_of(strategy.read(plain)) == numbers{6});
  }
}

} // namespace variable_on_read_test
