// SPDX-License-Identifier: Apache-2.0
// Goal: what authors of optimizers ask of a strategy comes out alike under all of them. Method: the
// calls one by one, outside and in merge functions, numbers by hand.
#include "tests/small_arrays.hpp"
#include "tests/strategies/every_strategy.hpp"
#include "tests/strategies/refusal.hpp"

#include <map>
#include <string>
#include <vector>

namespace extended_test {

using namespace troupe;
using namespace troupe::test;

namespace {

distributed_value<tensor> values_of_all(strategy& of) {
  return of.experimental_distribute_values_from_function(
    [](value_context context) { return scalar(1.0 + context.replica_id_in_sync_group); });
}

double sum_of_all(const strategy& of) {
  auto n = of.num_replicas_in_sync();
  return n * (n + 1) / 2.0;
}

/// Two strategies in one world.
struct two_strategies {
  troupe::world world = world::virtual_time();
  mirrored_strategy ours{world, {cpu_devices(2)}};
  central_storage_strategy theirs{world, {.compute_devices = cpu_devices(3)}};
};

} // namespace

TEST_SUITE("strategies/contexts/extended") {
  TEST_CASE("reduce_to gives the reduced value to all destinations") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto weights = strategy.make_variable("w", scalar(0));
      auto& extended = strategy.extended();
      auto values = values_of_all(strategy);
      auto total = extended.reduce_to(reduce_op::sum, values, weights);
      CHECK(total.is_mirrored());
      CHECK(total.size() == weights.copies());
      CHECK(numbers_of(total.primary()) == numbers{sum_of_all(strategy)});
      auto mean = extended.reduce_to(reduce_op::mean, values, "cpu:0");
      CHECK(mean.size() == 1);
      CHECK(numbers_of(mean.primary()) == numbers{sum_of_all(strategy) / n});
    });
  }

  TEST_CASE("reduce_to of a mirrored value is itself under MEAN, refused under SUM, but for 0") {
    two_strategies both;
    auto& extended = both.ours.extended();
    auto three = distributed_value<tensor>::mirrored(scalar(3), 2);
    CHECK(numbers_of(extended.reduce_to(reduce_op::mean, three, "cpu:0").primary()) == numbers{3});
    CHECK(refusal_of([&] {
            static_cast<void>(extended.reduce_to(reduce_op::sum, three, "cpu:0"));
          }).code
          == errc::invalid_argument);
    auto zero = distributed_value<tensor>::mirrored(scalar(0), 2);
    CHECK(numbers_of(extended.reduce_to(reduce_op::sum, zero, "cpu:0").primary()) == numbers{0});
  }

  TEST_CASE("a value reduced to one device has no sum, and is one for all replicas") {
    two_strategies both;
    auto& extended = both.ours.extended();
    auto values = as_gradients(values_of_all(both.ours));
    auto mean = extended.reduce_to(reduce_op::mean, values, "cpu:0");
    CHECK(mean.size() == 1);
    const error refused{errc::invalid_argument,
                        "A non-DistributedValues value cannot be reduced with the given reduce op "
                        "ReduceOp.SUM: it is one value for all 2 replicas, and would be counted 2 "
                        "times; reduce its MEAN, or give each replica its own"};
    auto again = [&](reduce_op op) {
      return numbers_of(std::get<tensor>(extended.reduce_to(op, mean, "cpu:1").primary()));
    };
    CHECK(again(reduce_op::mean) == numbers{1.5});
    CHECK(refusal_of([&] { again(reduce_op::sum); }) == refused);
    CHECK(refusal_of([&] {
            static_cast<void>(extended.batch_reduce_to(reduce_op::sum, {{mean, "cpu:0"}}));
          })
          == refused);
    CHECK(refusal_of([&] { static_cast<void>(both.ours.reduce(reduce_op::sum, mean)); })
          == refused);
    auto rows = distributed_value<indexed_slices>::mirrored(rows_of({0}, {1}, 2), 1);
    CHECK(refusal_of([&] { static_cast<void>(both.ours.reduce(reduce_op::sum, rows)); })
          == refused);
  }

  TEST_CASE("where all replicas share variables, what is sent to one has no sum either") {
    two_strategies both;
    auto weights = both.theirs.make_variable("w", scalar(0));
    auto sent = both.theirs.extended().broadcast_to(scalar(4), weights);
    CHECK(sent.size() == 1);
    CHECK(refusal_of([&] {
            static_cast<void>(both.theirs.extended().reduce_to(reduce_op::sum, sent, "cpu:0"));
          }).code
          == errc::invalid_argument);
  }

  TEST_CASE("one value for all has a component on each device, and is gathered for each replica") {
    two_strategies both;
    for (size_t devices : {1, 2, 3}) {
      CAPTURE(devices);
      auto one = distributed_value<tensor>::mirrored(array({1}, {7}), devices);
      CHECK(both.ours.experimental_local_results(one).size() == devices);
      CHECK(numbers_of(both.ours.gather(one, 0)) == numbers{7, 7});
      auto nest = both.ours.experimental_local_results(std::pair{one, 2.0});
      REQUIRE(nest.size() == 2); // for each replica
      CHECK(numbers_of(nest[1].first) == numbers{7});
    }
  }

  TEST_CASE("reduce_to of rows lays them behind each other") {
    two_strategies both;
    auto rows = distributed_value<gradient>::per_replica(
      {rows_of({0}, {1}, 2), rows_of({0, 1}, {2, 3}, 2)});
    auto total = both.ours.extended().reduce_to(reduce_op::sum, rows, "cpu:0");
    CHECK(numbers_of(std::get<indexed_slices>(total.primary()).indices) == numbers{0, 0, 1});
  }

  TEST_CASE("batch_reduce_to is reduce_to for each, in the order given") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", scalar(0));
      auto& extended = strategy.extended();
      auto values = as_gradients(values_of_all(strategy));
      auto zero = distributed_value<gradient>::mirrored(scalar(0), strategy.num_replicas_in_sync());
      auto results = extended.batch_reduce_to(
        reduce_op::sum, {{values, weights}, {zero, "cpu:0"}, {values, "cpu:0"}});
      REQUIRE(results.size() == 3);
      CHECK(numbers_of(std::get<tensor>(results[0].primary())) == numbers{sum_of_all(strategy)});
      CHECK(results[0].size() == weights.copies());
      CHECK(numbers_of(std::get<tensor>(results[1].primary())) == numbers{0});
      CHECK(numbers_of(std::get<tensor>(results[2].primary())) == numbers{sum_of_all(strategy)});
      CHECK(extended.batch_reduce_to(reduce_op::sum, {}).empty());
    });
  }

  TEST_CASE("batch_reduce_to refuses what one of its values is refused for") {
    two_strategies both;
    auto odd = distributed_value<gradient>::per_replica({scalar(1), zeros({2})});
    CHECK(
      refusal_of([&] {
        static_cast<void>(both.ours.extended().batch_reduce_to(reduce_op::sum, {{odd, "cpu:0"}}));
      }).code
      == errc::invalid_argument);
    CHECK(refusal_of([&] {
            static_cast<void>(both.ours.extended().batch_reduce_to(
              reduce_op::sum, {{as_gradients(values_of_all(both.ours)), "cpu:0"}},
              {.bytes_per_pack = -1}));
          }).code
          == errc::invalid_argument);
  }

  TEST_CASE("broadcast_to gives one value to all destinations") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", scalar(0));
      auto sent = strategy.extended().broadcast_to(scalar(4), weights);
      CHECK(sent.is_mirrored());
      CHECK(sent.size() == weights.copies());
      CHECK(numbers_of(sent.primary()) == numbers{4});
    });
  }

  TEST_CASE("destinations are devices, each once, and not none") {
    CHECK(destinations{std::vector<std::string>{"cpu:1", "cpu:0", "cpu:1"}}.devices()
          == std::vector<std::string>{"cpu:1", "cpu:0"});
    CHECK(destinations{std::vector<std::string>{"/device:CPU:1", "CPU:0", "cpu:1"}}.devices()
          == std::vector<std::string>{"cpu:1", "cpu:0"});
    CHECK(destinations{"CPU:2"}.devices() == std::vector<std::string>{"cpu:2"});
    CHECK(refusal_of([] { destinations{"tpu:0"}; })
          == error{errc::invalid_argument, "there is no device 'tpu:0'; processors are cpu:0, "
                                           "cpu:1 and so on, GPUs gpu:0, gpu:1"});
    CHECK(refusal_of([] { destinations{std::vector<std::string>{}}; })
          == error{errc::invalid_argument, "destinations can not be empty"});
  }

  TEST_CASE("the same calls are awaited in a merge function") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", scalar(0));
      auto results = strategy.run([weights](replica_context& context) -> task<numbers> {
        auto meet = [weights](cross_replica_context& all,
                              distributed_value<tensor> values) -> task<numbers> {
          auto reducing = all.reduce_to(reduce_op::sum, values, weights);
          auto total = co_await reducing;
          auto sending = all.broadcast_to(scalar(4), weights);
          auto sent = co_await sending;
          std::vector<std::pair<distributed_value<gradient>, destinations>> batch;
          if (!values.is_mirrored()) batch.emplace_back(as_gradients(values), weights);
          auto reducing_batch = all.batch_reduce_to(reduce_op::mean, batch);
          auto means = co_await reducing_batch;
          auto add = [](update_context& update, variable own, const tensor& by) -> task<tensor> {
            auto adding = update.assign_add(own, by);
            auto value = co_await adding;
            co_return value;
          };
          auto updating = all.update(weights, add, total);
          auto updated = co_await updating;
          co_return numbers{numbers_of(total.primary())[0], numbers_of(sent.primary())[0],
                            numbers_of(updated.primary())[0]};
        };
        auto merging = context.merge_call(meet, scalar(1.0 + context.replica_id_in_sync_group()));
        auto seen = co_await merging;
        co_return seen;
      });
      auto total = sum_of_all(strategy);
      CHECK(strategy.experimental_local_results(results)[0] == numbers{total, 4, total});
      CHECK(numbers_of(strategy.read(weights)) == numbers{total});
    });
  }

  // ---- update ----

  TEST_CASE("an update runs once for each copy, one after the other, and gives all results") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", scalar(1));
      std::vector<uint32_t> order;
      auto by = strategy.extended().broadcast_to(scalar(4), weights);
      auto add = [&order](update_context& context, variable own, const tensor& more,
                          double twice) -> task<double> {
        order.push_back(context.replica_id());
        auto adding = context.assign_add(own, more);
        auto value = co_await adding;
        co_return twice* numbers_of(value)[0];
      };
      auto results = strategy.extended().update(weights, add, by, 2.0);
      CHECK(strategy.experimental_local_results(results).front() == 10);
      CHECK(results.size() == weights.copies());
      for (uint32_t i = 0; i < order.size(); ++i)
        CHECK(order[i] == i);
      CHECK(order.size() == weights.copies());
    });
  }

  TEST_CASE("an update of a variable of another strategy is refused") {
    two_strategies both;
    auto theirs = both.theirs.make_variable("theirs", scalar(1));
    CHECK(refusal_of(
            [&] { both.ours.extended().update(theirs, [](update_context&, const variable&) {}); })
          == error{errc::invalid_argument,
                   "update was called for variable 'theirs', which another strategy made; use a "
                   "variable of this one"});
  }

  TEST_CASE("a variable of another world is refused by every read") {
    two_strategies here;
    auto elsewhere = world::virtual_time();
    mirrored_strategy other{elsewhere, {cpu_devices(2)}};
    auto theirs = other.make_variable("theirs", scalar(1));
    auto by = [](const std::string& call) {
      return error{errc::invalid_argument,
                   call
                     + " was called for variable 'theirs', which a strategy of another world made; "
                       "use a variable of this one"};
    };
    auto& ours = here.ours;
    CHECK(refusal_of([&] { static_cast<void>(ours.read(theirs)); }) == by("read"));
    CHECK(refusal_of([&] { static_cast<void>(ours.experimental_local_results(theirs)); })
          == by("experimental_local_results"));
    auto in_replica = ours.run([theirs](replica_context& context) -> task<error> {
      auto reading = refusal_in(context.read(theirs));
      auto reason = co_await reading;
      auto reading_all = refusal_in(context.read(std::vector<variable>{theirs}));
      CHECK(co_await reading_all == reason);
      co_return reason;
    });
    CHECK(in_replica[1] == by("read"));
    auto in_merge = ours.cross_replica([theirs](cross_replica_context& context) -> task<error> {
      auto reading = refusal_in(context.read(theirs));
      auto reason = co_await reading;
      co_return reason;
    });
    CHECK(in_merge == by("read"));
    auto own = ours.make_variable("own", scalar(1));
    auto in_update = [theirs](update_context& context, variable target) -> task<error> {
      auto changing = refusal_in(context.assign(target, theirs));
      auto reason = co_await changing;
      co_return reason;
    };
    CHECK(ours.extended().update(own, in_update)[1] == by("read"));
    CHECK(refusal_of([&] { ours.assign(own, theirs); }) == by("read"));
  }

  TEST_CASE("replicas may update their own copies together") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto weights = strategy.make_variable("w", scalar(1));
      if (weights.copies() < n) return;
      auto results = strategy.run([weights](replica_context& context) -> task<double> {
        auto add = [](update_context& update, variable own, const tensor& by) -> task<double> {
          auto adding = update.assign_add(own, by);
          auto value = co_await adding;
          co_return numbers_of(value)[0];
        };
        auto mine = scalar(1.0 + context.replica_id_in_sync_group());
        auto updating = context.update(weights, add, mine);
        auto value = co_await updating;
        co_return value;
      });
      for (uint32_t i = 0; i < n; ++i)
        CHECK(results.local_results()[i] == 2.0 + i);
    });
  }

  TEST_CASE("replicas that update different variables are not mixed up") {
    two_strategies both;
    auto a = both.ours.make_variable("a", scalar(1));
    auto b = both.ours.make_variable("b", scalar(1));
    auto refused = refusal_of([&] {
      both.ours.run([a, b](replica_context& context) -> task<void> {
        auto nothing = [](update_context&, const variable&) {};
        auto updating = context.update(context.replica_id_in_sync_group() == 0 ? a : b, nothing);
        co_await updating;
      });
    });
    CHECK(refused
          == error{errc::invalid_argument, "replica 1 brings variable 'b', replica 0 'a'; all have "
                                           "to bring the same one"});
  }

  TEST_CASE("an update of a variable that all replicas share refuses a value for each") {
    two_strategies both;
    auto weights = both.theirs.make_variable("w", scalar(1));
    const error refused{errc::invalid_argument,
                        "a value of 3 replicas was given to an update that all of them share, "
                        "which needs one value for all; reduce it first"};
    auto values = values_of_all(both.theirs);
    auto ignore = [](update_context&, const variable&, const auto&) {};
    auto& extended = both.theirs.extended();
    CHECK(refusal_of([&] { extended.update(weights, ignore, values); }) == refused);
    auto nested = std::map<std::string, std::vector<distributed_value<tensor>>>{{"a", {values}}};
    CHECK(refusal_of([&] { extended.update(weights, ignore, nested); }) == refused);
    auto captured = [values](update_context& context, variable own) -> task<void> {
      auto adding = context.assign_add(own, values);
      co_await adding;
    };
    CHECK(refusal_of([&] { extended.update(weights, captured); }) == refused);
    auto devices = extended.non_slot_devices(both.theirs.variables());
    CHECK(refusal_of([&] {
            extended.update_non_slot(
              devices, [](update_context&, const tensor&) {}, values);
          })
          == refused);
    auto together = [weights](replica_context& context) -> task<error> {
      auto nothing = [](update_context&, const variable&, const tensor&) {};
      auto mine = scalar(1.0 + context.replica_id_in_sync_group());
      auto updating = refusal_in(context.update(weights, nothing, mine));
      auto refusal = co_await updating;
      co_return refusal;
    };
    CHECK(both.theirs.run(together)[2] == refused);
  }

  TEST_CASE("an update of a variable that all replicas share takes what is one for all") {
    two_strategies both;
    auto weights = both.theirs.make_variable("w", scalar(1));
    auto one = scalar(4);
    auto results = both.theirs.run([weights, one](replica_context& context) -> task<double> {
      auto add = [](update_context& update, variable own, const tensor& by) -> task<double> {
        auto adding = update.assign_add(own, by);
        auto value = co_await adding;
        co_return numbers_of(value)[0];
      };
      auto updating = context.update(weights, add, one);
      auto value = co_await updating;
      co_return value;
    });
    CHECK(results[2] == 5);
  }

  TEST_CASE("the same number from all replicas is one for all, another from one is not") {
    two_strategies both;
    auto weights = both.theirs.make_variable("w", scalar(1));
    auto added = [&](double by_last) {
      both.theirs.run([weights, by_last](replica_context& context) -> task<void> {
        auto add = [](update_context& update, variable own, double by) -> task<void> {
          auto adding = update.assign_add(own, by);
          co_await adding;
        };
        auto by = context.replica_id_in_sync_group() == 2 ? by_last : 4.0;
        auto updating = context.update(weights, add, by);
        co_await updating;
      });
      return numbers_of(both.theirs.read(weights));
    };
    CHECK(added(4) == numbers{5});
    CHECK(refusal_of([&] { static_cast<void>(added(3)); }).code == errc::invalid_argument);
  }

  TEST_CASE("update_non_slot runs once for each device, without a variable") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", scalar(1));
      auto devices = strategy.extended().non_slot_devices(strategy.variables());
      auto ids = strategy.extended().update_non_slot(
        devices, [](update_context& context, int offset) { return context.replica_id() + offset; },
        10);
      CHECK(ids.size() == devices.size());
      for (uint32_t i = 0; i < devices.size(); ++i)
        CHECK(ids[i] == 10 + i);
    });
  }

  TEST_CASE("update_non_slot of no devices is refused") {
    two_strategies both;
    CHECK(refusal_of([&] { both.ours.extended().update_non_slot({}, [](update_context&) {}); })
          == error{errc::invalid_argument, "destinations can not be empty"});
  }

  // ---- where things are ----

  TEST_CASE("state of several variables lies on all devices, or beside the first by name") {
    two_strategies both;
    auto ours = both.ours.make_variable("b", scalar(1));
    CHECK(both.ours.extended().non_slot_devices(both.ours.variables()) == cpu_devices(2));
    both.theirs.make_variable("b", scalar(1));
    both.theirs.make_variable("a", scalar(1));
    CHECK(both.theirs.extended().non_slot_devices(both.theirs.variables())
          == std::vector<std::string>{"cpu:0"});
    CHECK(refusal_of([&] { static_cast<void>(both.theirs.extended().non_slot_devices({})); })
          == error{errc::invalid_argument,
                   "non_slot_devices of no variables; give those that the state belongs to"});
  }

  TEST_CASE("the local results of a variable are the copies of this process's replicas") {
    auto world = world::virtual_time();
    mirrored_strategy mirrored{world, {cpu_devices(2)}};
    auto counts = mirrored.make_variable("v", scalar(0),
                                         {.synchronization = variable_synchronization::on_read,
                                          .aggregation = variable_aggregation::sum});
    mirrored.run([counts](replica_context& context) -> task<void> {
      auto adding = context.assign_add(counts, 5 + context.replica_id_in_sync_group());
      co_await adding;
    });
    auto copies = mirrored.experimental_local_results(counts);
    REQUIRE(copies.size() == 2);
    CHECK(copies[0].values<float>()[0] == 5);
    CHECK(copies[1].values<float>()[0] == 6);
    central_storage_strategy central{world, {cpu_devices(2)}};
    auto shared = central.make_variable("v", scalar(3));
    REQUIRE(central.experimental_local_results(shared).size() == 1);
    CHECK(central.experimental_local_results(shared)[0].values<float>()[0] == 3);
  }

  TEST_CASE("a subclass of cross_device_ops broadcasts in its own way") {
    class halving final : public cross_device_ops {
    public:
      [[nodiscard]] std::string_view name() const override { return "halving"; }

      [[nodiscard]] tensor broadcast(const tensor& value, const destinations& to) const override {
        return scalar(value.values<float>()[0] / static_cast<float>(to.devices().size()));
      }

    protected:
      [[nodiscard]] std::vector<gradient>
      batch_all_reduce(reduce_op /*op*/, std::span<const device_values* const> values,
                       const communication_options& /*options*/) const override {
        return std::vector<gradient>(values.size());
      }
    };

    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2), std::make_shared<halving>()}};
    auto beside = strategy.make_variable("v", scalar(1));
    auto sent = strategy.extended().broadcast_to(scalar(4), beside);
    CHECK(sent.primary().values<float>()[0] == 2);
  }

  TEST_CASE("variables are made beside another of the same strategy, in its scope") {
    for_every_strategy([](strategy& strategy) {
      auto first = strategy.make_variable("first", scalar(1));
      auto scope = strategy.scope();
      auto beside = strategy.extended().colocate_vars_with(first);
      auto second = strategy.make_variable("second", scalar(1));
      CHECK(second.devices() == first.devices());
    });
  }

  TEST_CASE("variables may be made beside another in a replica, too") {
    for_every_strategy([](strategy& strategy) {
      auto first = strategy.make_variable("first", scalar(1));
      auto are_beside = strategy.run([first](replica_context& context) -> task<bool> {
        auto beside = context.strategy().extended().colocate_vars_with(first);
        auto making = context.make_variable("second", scalar(1));
        auto second = co_await making;
        co_return second.devices() == first.devices();
      });
      for (auto is_beside : strategy.experimental_local_results(are_beside))
        CHECK(is_beside);
    });
  }

  TEST_CASE("making variables beside another is refused outside the scope, and beside strangers") {
    two_strategies both;
    auto ours = both.ours.make_variable("ours", scalar(1));
    auto theirs = both.theirs.make_variable("theirs", scalar(1));
    CHECK(refusal_of([&] { auto beside = both.ours.extended().colocate_vars_with(ours); })
          == error{errc::wrong_context,
                   "colocate_vars_with was called in the default context. Need to be inside \"with "
                   "strategy.scope()\"; enter the scope first"});
    auto scope = both.ours.scope();
    CHECK(refusal_of([&] { auto beside = both.ours.extended().colocate_vars_with(theirs); })
          == error{errc::invalid_argument,
                   "colocate_vars_with was called for variable 'theirs', which another strategy "
                   "made; use a variable of this one"});
    CHECK(refusal_of([&] { auto beside = both.theirs.extended().colocate_vars_with(theirs); }).code
          == errc::wrong_context);
  }

  TEST_CASE("a strategy knows the variables that it made") {
    two_strategies both;
    auto ours = both.ours.make_variable("v", scalar(1));
    CHECK(both.ours.extended().variable_created_in_scope(ours));
    CHECK(!both.theirs.extended().variable_created_in_scope(ours));
    CHECK(both.ours.extended().value_container(ours) == ours);
    CHECK(numbers_of(both.ours.extended().read_var(ours)) == numbers{1});
  }

  TEST_CASE("call_for_each_replica is run") {
    for_every_strategy([](strategy& strategy) {
      auto ids = strategy.extended().call_for_each_replica(
        [](replica_context& context, int offset) {
          return context.replica_id_in_sync_group() + offset;
        },
        5);
      CHECK(ids[0] == 5);
    });
  }
}

} // namespace extended_test
