// SPDX-License-Identifier: Apache-2.0
// Goal: a variable that is synchronised on write changes in every context as its aggregation says.
// Method: the table of contexts and aggregations, under all strategies, numbers by hand.
#include "messages/mapped.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/every_strategy.hpp"
#include "tests/strategies/refusal.hpp"

#include <fmt/format.h>

namespace variable_write_test {

using namespace troupe;
using namespace troupe::test;

namespace {

using aggregation = variable_aggregation;

constexpr aggregation all_aggregations[]
  = {aggregation::none, aggregation::sum, aggregation::mean, aggregation::only_first_replica};

using change_call = task<tensor> (variable_access::*)(variable, variable_operand);

/// Awaits a change. @returns The error, if it is refused.
task<error> made_by(replica_context& context, change_call call, variable target,
                    variable_operand operand) {
  error reason;
  try {
    auto changing = (context.*call)(target, operand);
    static_cast<void>(co_await changing);
  } catch (const failure& failed) {
    reason = failed.reason();
  }
  co_return reason;
}

/// One call of every replica, each with its operand; the refusals, by replica.
std::vector<error> every_replica(strategy& of, change_call call, const variable& target,
                                 std::function<variable_operand(uint32_t)> operand) {
  auto refused = of.run([=](replica_context& context) -> task<error> {
    auto making = made_by(context, call, target, operand(context.replica_id_in_sync_group()));
    auto reason = co_await making;
    co_return reason;
  });
  return of.experimental_local_results(refused);
}

void change_all(strategy& of, change_call call, const variable& target,
                const std::function<variable_operand(uint32_t)>& operand) {
  for (const auto& reason : every_replica(of, call, target, operand))
    REQUIRE(reason == error{});
}

/// The copies of a variable, as replicas read them: all elements of replica 0, then of replica 1.
numbers copies_of(strategy& of, const variable& source) {
  auto read = of.run([source](replica_context& context) -> task<tensor> {
    auto reading = context.read(source);
    auto value = co_await reading;
    co_return value;
  });
  numbers result;
  for (const auto& copy : of.experimental_local_results(read))
    for (auto number : numbers_of(copy))
      result.push_back(number);
  return result;
}

/// A mirrored strategy on two devices, and a variable for each aggregation.
struct two_replicas {
  troupe::world world = world::virtual_time();
  mirrored_strategy strategy{world, {cpu_devices(2)}};

  variable make(aggregation mode, const tensor& initial = scalar(1)) {
    return strategy.make_variable(fmt::format("v{}", strategy.variables().size()), initial,
                                  {.aggregation = mode});
  }

  variable make_rows(aggregation mode, dtype type = dtype::f32) {
    return make(mode, array({3, 1}, {1, 2, 3}, type));
  }

  numbers copies(const variable& source) { return copies_of(strategy, source); }
};

auto own_number(double first, double step = 1) {
  return [=](uint32_t replica) -> variable_operand { return first + step * replica; };
}

auto own_tensor(double first, double step = 1) {
  return [=](uint32_t replica) -> variable_operand { return scalar(first + step * replica); };
}

auto same(variable_operand operand) {
  return [operand](uint32_t) { return operand; };
}

constexpr auto assign = static_cast<change_call>(&variable_access::assign);
constexpr auto assign_add = static_cast<change_call>(&variable_access::assign_add);
constexpr auto assign_sub = static_cast<change_call>(&variable_access::assign_sub);

struct scatter {
  change_call call;
  std::string name;
};

const scatter combined[] = {{&variable_access::scatter_add, "scatter_add"},
                            {&variable_access::scatter_sub, "scatter_sub"},
                            {&variable_access::scatter_mul, "scatter_mul"},
                            {&variable_access::scatter_div, "scatter_div"}};
const scatter single[] = {{&variable_access::scatter_min, "scatter_min"},
                          {&variable_access::scatter_max, "scatter_max"},
                          {&variable_access::scatter_update, "scatter_update"}};

} // namespace

TEST_SUITE("strategies/contexts/variable_write") {
  // ---- making ----

  TEST_CASE("variables are synchronised on write, not aggregated, and trainable, unless told") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", scalar(1));
      CHECK(weights.synchronization() == variable_synchronization::on_write);
      CHECK(weights.aggregation() == aggregation::none);
      CHECK(weights.trainable());
      auto frozen = strategy.make_variable("f", scalar(1), {.trainable = false});
      CHECK(!frozen.trainable());
      CHECK(strategy.trainable_variables() == std::vector{weights});
      CHECK(strategy.extended().variable_created_in_scope(weights));
    });
  }

  TEST_CASE("options that mean nothing are refused, by name") {
    for_every_strategy([](strategy& strategy) {
      auto refusal = [&](const variable_options& options, dtype type = dtype::f32) {
        return refusal_of([&] { strategy.make_variable("v", scalar(0, type), options); });
      };
      CHECK(refusal({.synchronization = variable_synchronization::none})
            == error{errc::invalid_argument,
                     "`NONE` variable synchronization mode is not supported with "
                       + strategy.layout().name
                       + " strategy: variable 'v'; choose ON_WRITE or ON_READ"});
      CHECK(refusal({.synchronization = static_cast<variable_synchronization>(9)})
            == error{errc::invalid_argument,
                     "Invalid variable synchronization mode: 9 for variable: v"});
      CHECK(
        refusal({.aggregation = static_cast<aggregation>(9)})
        == error{errc::invalid_argument, "Invalid variable aggregation mode: 9 for variable: v"});
      CHECK(refusal({.aggregation = aggregation::mean}, dtype::i32)
            == error{errc::invalid_argument,
                     "variable 'v' is i32; aggregation MEAN is for floating variables only"});
      CHECK(strategy.variables().empty());
    });
  }

  TEST_CASE("the names of modes are those of tf.distribute") {
    CHECK(to_string(variable_synchronization::automatic) == "AUTO");
    CHECK(to_string(variable_synchronization::on_read) == "ON_READ");
    CHECK(to_string(aggregation::only_first_replica) == "ONLY_FIRST_REPLICA");
  }

  TEST_CASE("all copies begin with the same value") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", array({2}, {3, 4}));
      numbers expected;
      for (uint32_t i = 0; i < strategy.num_replicas_in_sync(); ++i)
        expected.insert(expected.end(), {3, 4});
      CHECK(copies_of(strategy, weights) == expected);
    });
  }

  TEST_CASE("replicas make a variable together, and begin with the value of replica 0") {
    for_every_strategy([](strategy& strategy) {
      auto made = strategy.run([](replica_context& context) -> task<variable> {
        auto id = context.replica_id_in_sync_group();
        auto name = fmt::format("dense_{}/bias", id % 10);
        auto making = context.make_variable(name, scalar(7.0 + id), {.trainable = false});
        auto mine = co_await making;
        co_return mine;
      });
      CHECK(made.name() == "dense_0/bias");
      CHECK(!made.trainable());
      CHECK(strategy.variables().size() == 1);
      for (auto value : copies_of(strategy, made))
        CHECK(value == 7);
    });
  }

  TEST_CASE_FIXTURE(two_replicas, "replicas that make variables of other names are refused") {
    auto refused = strategy.run([](replica_context& context) -> task<error> {
      auto name = context.replica_id_in_sync_group() == 0 ? "foo" : "bar";
      auto making = refusal_in(context.make_variable(name, scalar(1)));
      auto reason = co_await making;
      co_return reason;
    });
    CHECK(refused[1]
          == error{errc::invalid_argument,
                   "Tried to create variable 'foo' with mismatching name on device cpu:1: replica "
                   "1 makes 'bar'; all have to make the same one"});
    CHECK(strategy.variables().empty());
  }

  // ---- outside of replicas ----

  TEST_CASE("in the cross-replica context and outside, all copies change, once") {
    for_every_strategy([](strategy& strategy) {
      for (auto mode : all_aggregations) {
        auto weights = strategy.make_variable(fmt::format("w{}", to_string(mode)), scalar(1),
                                              {.aggregation = mode});
        CHECK(numbers_of(strategy.assign(weights, 5)) == numbers{5});
        CHECK(numbers_of(strategy.assign_add(weights, scalar(3))) == numbers{8});
        auto scope = strategy.scope();
        CHECK(numbers_of(strategy.assign_sub(weights, 1.5)) == numbers{6.5});
        CHECK(numbers_of(strategy.read(weights)) == numbers{6.5});
        scope.exit();
        for (auto copy : copies_of(strategy, weights))
          CHECK(copy == 6.5);
      }
    });
  }

  TEST_CASE_FIXTURE(two_replicas, "a mirrored value and a variable may be assigned to all") {
    auto target = make(aggregation::none), source = make(aggregation::none, scalar(9));
    strategy.assign(target, distributed_value<tensor>::mirrored(scalar(4), 2));
    CHECK(copies(target) == numbers{4, 4});
    strategy.assign_add(target, source);
    CHECK(copies(target) == numbers{13, 13});
    strategy.assign_add(target, target);
    CHECK(copies(target) == numbers{26, 26});
  }

  TEST_CASE_FIXTURE(two_replicas, "a value for each replica is refused where all need the same") {
    auto target = make(aggregation::sum);
    auto each = distributed_value<tensor>::per_replica({scalar(1), scalar(2)});
    CHECK(refusal_of([&] { strategy.assign(target, each); })
          == error{errc::type_mismatch,
                   "Expected value to be mirrored across replicas: variable 'v0' would get another "
                   "value for each; reduce it first"});
    CHECK(copies(target) == numbers{1, 1});
  }

  TEST_CASE_FIXTURE(two_replicas, "a scatter into all copies does not look at the aggregation") {
    for (auto mode : all_aggregations) {
      auto target = make_rows(mode);
      strategy.cross_replica([target](cross_replica_context& all) -> task<void> {
        auto adding = all.scatter_add(target, rows_of({1, 1}, {10, 100}, 3));
        static_cast<void>(co_await adding);
        auto assigning = all.scatter_update(target, rows_of({0}, {7}, 3));
        static_cast<void>(co_await assigning);
        auto bounding = all.scatter_min(target, rows_of({2}, {0}, 3));
        static_cast<void>(co_await bounding);
      });
      CHECK(copies(target) == numbers{7, 112, 0, 7, 112, 0});
    }
  }

  TEST_CASE_FIXTURE(two_replicas, "in an update, one copy changes") {
    for (auto mode : all_aggregations) {
      auto target = make(mode);
      auto change = [](update_context& context, variable own, double by) -> task<tensor> {
        auto adding = context.assign_add(own, by);
        auto value = co_await adding;
        co_return value;
      };
      auto by = distributed_value<double>::per_replica({10, 20});
      auto results = strategy.extended().update(target, change, by);
      CHECK(numbers_of(results[0]) == numbers{11});
      CHECK(numbers_of(results[1]) == numbers{21});
      CHECK(copies(target) == numbers{11, 21});
      CHECK(numbers_of(strategy.read(target)) == numbers{11}); // that copies agree is not checked
    }
  }

  // ---- in replicas ----

  TEST_CASE_FIXTURE(two_replicas, "without aggregation, a replica changes its own copy only") {
    auto target = make(aggregation::none);
    change_all(strategy, assign_add, target, own_number(10));
    CHECK(copies(target) == numbers{11, 12});
    change_all(strategy, assign, target, same(3));
    CHECK(copies(target) == numbers{3, 3});
  }

  TEST_CASE("changes of replicas are summed") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto target = strategy.make_variable("v", scalar(1), {.aggregation = aggregation::sum});
      auto total = n + n * (n - 1) / 2.0;
      change_all(strategy, assign_add, target, own_tensor(1));
      CHECK(numbers_of(strategy.read(target)) == numbers{1 + total});
      change_all(strategy, assign_sub, target, own_number(1));
      CHECK(numbers_of(strategy.read(target)) == numbers{1});
      change_all(strategy, assign, target, own_tensor(1));
      for (auto copy : copies_of(strategy, target))
        CHECK(copy == total);
    });
  }

  TEST_CASE("changes of replicas are averaged") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto target = strategy.make_variable("v", scalar(1), {.aggregation = aggregation::mean});
      change_all(strategy, assign, target, own_tensor(2));
      for (auto copy : copies_of(strategy, target))
        CHECK(copy == 2 + (n - 1) / 2.0);
      change_all(strategy, assign, target, same(5));
      for (auto copy : copies_of(strategy, target))
        CHECK(copy == 5);
    });
  }

  TEST_CASE("the change of the first replica is made once for all copies") {
    for_every_strategy([](strategy& strategy) {
      auto target
        = strategy.make_variable("v", scalar(1), {.aggregation = aggregation::only_first_replica});
      change_all(strategy, assign_add, target, same(1));
      change_all(strategy, assign_add, target, own_tensor(10));
      for (auto copy : copies_of(strategy, target))
        CHECK(copy == 12);
    });
  }

  TEST_CASE("a change in a replica answers with the new value") {
    for_every_strategy([](strategy& strategy) {
      auto target
        = strategy.make_variable("v", scalar(1), {.aggregation = aggregation::only_first_replica});
      auto values = strategy.run([target](replica_context& context) -> task<tensor> {
        auto adding = context.assign_add(target, 4);
        auto value = co_await adding;
        co_return value;
      });
      for (const auto& value : strategy.experimental_local_results(values))
        CHECK(numbers_of(value) == numbers{5});
    });
  }

  TEST_CASE_FIXTURE(two_replicas, "a change of copies that differ answers each with its own") {
    auto set = [](update_context& context, variable own, double to) -> task<tensor> {
      auto assigning = context.assign(own, to);
      auto value = co_await assigning;
      co_return value;
    };
    for (auto mode : {aggregation::sum, aggregation::mean, aggregation::only_first_replica}) {
      auto target = make(mode);
      strategy.extended().update(target, set, distributed_value<double>::per_replica({0, 10}));
      auto answers = [&](change_call call) {
        auto changed = strategy.run([=](replica_context& context) -> task<tensor> {
          auto changing = (context.*call)(target, scalar(4));
          auto value = co_await changing;
          co_return value;
        });
        return mapped(strategy.experimental_local_results(changed),
                      [](const auto& answer) { return numbers_of(answer)[0]; });
      };
      auto delta = mode == aggregation::sum ? 8.0 : 4.0;
      CHECK(answers(assign_add) == numbers{delta, 10 + delta});
      CHECK(copies(target) == numbers{delta, 10 + delta});
      CHECK(answers(assign) == numbers{delta, delta});
    }
  }

  TEST_CASE_FIXTURE(two_replicas,
                    "an answer is a replica's own value, also where copies are equal") {
    auto first = make(aggregation::sum), second = make(aggregation::sum);
    auto changed = strategy.run([=](replica_context& context) -> task<tensor> {
      auto adding = context.assign_add(first, scalar(1));
      auto answer = co_await adding;
      auto following = context.assign_add(second, answer);
      co_return co_await following;
    });
    CHECK(copies(first) == numbers{3, 3});
    CHECK(copies(second) == numbers{7, 7});
    CHECK(numbers_of(strategy.reduce(reduce_op::sum, changed)) == numbers{14});
  }

  TEST_CASE_FIXTURE(two_replicas, "one and the same value from all is no sum, unless it is 0") {
    auto target = make(aggregation::sum);
    error expected{errc::invalid_argument,
                   "A non-DistributedValues value cannot be reduced with the given reduce op "
                   "ReduceOp.SUM: all 2 replicas call assign_add of variable 'v0' with one and the "
                   "same value; give each a tensor of its own, or choose another aggregation"};
    CHECK(every_replica(strategy, assign_add, target, same(3)) == std::vector{expected, expected});
    auto shared = scalar(3);
    CHECK(every_replica(strategy, assign_add, target, same(shared))[1] == expected);
    CHECK(copies(target) == numbers{1, 1});
    change_all(strategy, assign_add, target, same(0));
    change_all(strategy, assign_add, target, same(scalar(0)));
    CHECK(copies(target) == numbers{1, 1});
    change_all(strategy, assign_add, target, [](uint32_t) { return scalar(3); });
    CHECK(copies(target) == numbers{7, 7});
  }

  TEST_CASE("with one replica, a literal may be summed") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world};
    auto target = strategy.make_variable("v", scalar(1), {.aggregation = aggregation::sum});
    change_all(strategy, assign_add, target, same(3));
    CHECK(numbers_of(strategy.read(target)) == numbers{4});
  }

  TEST_CASE_FIXTURE(two_replicas, "a variable as operand counts once for each replica") {
    auto source = make(aggregation::none, scalar(2));
    auto mean = make(aggregation::mean), sum = make(aggregation::sum);
    change_all(strategy, assign, mean, same(source));
    change_all(strategy, assign, sum, same(source));
    CHECK(copies(mean) == numbers{2, 2});
    CHECK(copies(sum) == numbers{4, 4});
  }

  TEST_CASE_FIXTURE(two_replicas, "each replica takes its own part of a distributed operand") {
    auto target = make(aggregation::sum);
    auto one = distributed_value<tensor>::mirrored(scalar(3), 2);
    change_all(strategy, assign, target, same(one));
    CHECK(copies(target) == numbers{6, 6});
    auto each = distributed_value<tensor>::per_replica({scalar(1), scalar(10)});
    change_all(strategy, assign, target, same(each));
    CHECK(copies(target) == numbers{11, 11});
    auto too_many = distributed_value<tensor>::per_replica({scalar(1)});
    CHECK(every_replica(strategy, assign, make(aggregation::none), same(too_many))[1].code
          == errc::invalid_argument);
  }

  TEST_CASE_FIXTURE(two_replicas, "replicas that change different variables are not mixed up") {
    auto a = make(aggregation::mean), b = make(aggregation::mean);
    auto refused = refusal_of([&] {
      strategy.run([a, b](replica_context& context) -> task<void> {
        auto target = context.replica_id_in_sync_group() == 0 ? a : b;
        auto adding = context.assign_add(target, 1);
        static_cast<void>(co_await adding);
      });
    });
    CHECK(refused.code == errc::invalid_argument);
    CHECK(refused.message
          == "replica 1 brings variable 'v1', replica 0 'v0'; all have to bring the same one");
    CHECK(copies(a) == numbers{1, 1});
    CHECK(copies(b) == numbers{1, 1});
  }

  TEST_CASE_FIXTURE(two_replicas, "a replica that adds while another assigns is refused") {
    auto target = make(aggregation::mean);
    auto refused = refusal_of([&] {
      strategy.run([target](replica_context& context) -> task<void> {
        auto changing = context.replica_id_in_sync_group() == 0 ? context.assign_add(target, 1)
                                                                : context.assign(target, 1);
        static_cast<void>(co_await changing);
      });
    });
    CHECK(refused
          == error{errc::failed_precondition,
                   "replica 1 calls assign of variable 'v0', replica 0 assign_add; all replicas "
                   "have to make the same change"});
  }

  TEST_CASE("variables that all replicas share need an aggregation to be changed by one") {
    auto world = world::virtual_time();
    central_storage_strategy strategy{world, {.compute_devices = cpu_devices(2)}};
    auto shared = strategy.make_variable("v", scalar(1));
    CHECK(every_replica(strategy, assign_add, shared, own_number(1))[1]
          == error{errc::invalid_argument,
                   "You must specify an aggregation method to update variable 'v' in Replica "
                   "Context: all replicas share it; make it with one"});
    strategy.assign_add(shared, 1);
    CHECK(numbers_of(strategy.read(shared)) == numbers{2});
    CHECK(shared.copies() == 1);
  }

  TEST_CASE("a shared variable of a single replica is a plain one") {
    auto world = world::virtual_time();
    central_storage_strategy strategy{world};
    auto plain = strategy.make_variable("v", array({1, 1}, {5}), {.aggregation = aggregation::sum});
    change_all(strategy, assign_add, plain, same(1));
    change_all(strategy, &variable_access::scatter_min, plain, same(rows_of({0}, {2}, 1)));
    CHECK(numbers_of(strategy.read(plain)) == numbers{2});
  }

  // ---- scatters in replicas ----

  TEST_CASE_FIXTURE(two_replicas, "rows of all replicas are applied one after the other") {
    auto own_rows = [](uint32_t replica) -> variable_operand {
      return replica == 0 ? rows_of({0, 1}, {2, 3}, 3) : rows_of({1}, {4}, 3);
    };
    const numbers of_sum[] = {{3, 9, 3}, {-1, -5, 3}, {2, 24, 3}, {0.5, 2.0 / 12, 3}};
    const numbers of_mean[] = {{2, 5.5, 3}, {0, -1.5, 3}, {1, 6, 3}, {1, 2 / 3.0, 3}};
    const numbers of_first[] = {{3, 5, 3}, {-1, -1, 3}, {2, 6, 3}, {0.5, 2.0 / 3, 3}};
    auto check = [&](aggregation mode, const scatter& scatter, const numbers& expected) {
      CAPTURE(scatter.name);
      auto target = make_rows(mode);
      change_all(strategy, scatter.call, target, own_rows);
      auto seen = copies(target);
      for (size_t i = 0; i < 6; ++i)
        CHECK(seen[i] == doctest::Approx(expected[i % 3]));
    };
    for (size_t i = 0; i < 4; ++i) {
      check(aggregation::sum, combined[i], of_sum[i]);
      check(aggregation::mean, combined[i], of_mean[i]);
      check(aggregation::only_first_replica, combined[i], of_first[i]);
    }
  }

  TEST_CASE_FIXTURE(two_replicas, "without aggregation, rows change the own copy only") {
    auto target = make_rows(aggregation::none);
    change_all(strategy, &variable_access::scatter_add, target,
               [](uint32_t replica) -> variable_operand { return rows_of({replica}, {10}, 3); });
    CHECK(copies(target) == numbers{11, 2, 3, 1, 12, 3});
    change_all(strategy, &variable_access::scatter_max, target, same(rows_of({2}, {9}, 3)));
    CHECK(copies(target) == numbers{11, 2, 9, 1, 12, 9});
  }

  TEST_CASE_FIXTURE(two_replicas, "rows may have i32 numbers, and not say of what array they are") {
    indexed_slices terse{array({2}, {0, 2}, dtype::i32), array({2, 1}, {10, 20}), {}};
    auto target = make_rows(aggregation::sum);
    change_all(strategy, &variable_access::scatter_add, target,
               [=](uint32_t) -> variable_operand { return terse; });
    CHECK(copies(target) == numbers{21, 2, 43, 21, 2, 43});
  }

  TEST_CASE_FIXTURE(two_replicas, "rows are bounded and replaced by one replica only") {
    auto own_rows
      = [](uint32_t replica) -> variable_operand { return rows_of({1}, {1.5 + replica}, 3); };
    for (auto mode : {aggregation::sum, aggregation::mean})
      for (const auto& [call, name] : single) {
        auto target = make_rows(mode);
        CHECK(every_replica(strategy, call, target, own_rows)[1]
              == error{errc::unimplemented,
                       name + " of variable '" + target.name()
                         + "' in a replica context needs aggregation NONE or ONLY_FIRST_REPLICA, "
                           "not "
                         + std::string{to_string(mode)}});
      }
    auto first = make_rows(aggregation::only_first_replica);
    change_all(strategy, &variable_access::scatter_min, first, own_rows);
    CHECK(copies(first) == numbers{1, 1.5, 3, 1, 1.5, 3});
    change_all(strategy, &variable_access::scatter_update, first, same(rows_of({0}, {7}, 3)));
    CHECK(copies(first) == numbers{7, 1.5, 3, 7, 1.5, 3});
  }

  TEST_CASE_FIXTURE(two_replicas, "rows that do not have one number each are refused, by replica") {
    auto target = make_rows(aggregation::sum);
    auto refused = every_replica(
      strategy, &variable_access::scatter_add, target,
      [](uint32_t replica) -> variable_operand { return miscounted_rows(replica); });
    CHECK(refused[0]
          == error{errc::invalid_argument,
                   "replica 0 has rows with numbers of shape [2] and values of shape [1, 1]; "
                   "numbers have shape [rows], and values as many rows"});
    CHECK(refused[1] == refused[0]);
    CHECK(copies(target) == numbers{1, 2, 3, 1, 2, 3});
  }

  TEST_CASE_FIXTURE(two_replicas, "rows of integers are cut when divided, and not divided by 0") {
    auto target = make_rows(aggregation::sum, dtype::i32);
    auto by = [](double divisor) {
      return [divisor](uint32_t replica) -> variable_operand {
        return rows_of({2}, {divisor + replica}, 3, dtype::i32);
      };
    };
    change_all(strategy, &variable_access::scatter_div, target, by(1));
    CHECK(copies(target) == numbers{1, 2, 1, 1, 2, 1});
    CHECK(every_replica(strategy, &variable_access::scatter_div, target, by(-1))[0]
          == error{errc::invalid_argument,
                   "variable 'v0': an integer variable cannot be divided by 0"});
  }

  // ---- operands that do not fit ----

  TEST_CASE("operands that do not fit are refused in every context") {
    for_every_strategy([](strategy& strategy) {
      auto target = strategy.make_variable("v", array({2, 1}, {1, 2}),
                                           {.aggregation = aggregation::only_first_replica});
      const std::pair<variable_operand, error> arrays[] = {
        {zeros(shape{std::vector<int64_t>(33, 1)}),
         {errc::limit_exceeded,
          "an array of 33 dimensions goes into no message; at most 32 are possible"}},
        {zeros({3}),
         {errc::invalid_argument, "variable 'v': the variable has shape [2, 1], the operand [3]"}},
        {zeros({2, 1}, dtype::f64),
         {errc::type_mismatch, "variable 'v': the variable is f32, the operand f64"}},
        {rows_of({0}, {1}, 2),
         {errc::type_mismatch,
          "assign_add of variable 'v' was given rows; scatter them by scatter_add"}}};
      for (const auto& [operand, expected] : arrays) {
        CHECK(refusal_of([&, operand = operand] { strategy.assign_add(target, operand); })
              == expected);
        CHECK(every_replica(strategy, assign_add, target, same(operand))[0] == expected);
      }
      CHECK(every_replica(strategy, &variable_access::scatter_add, target, same(1))[0]
            == error{errc::type_mismatch, "scatter_add of variable 'v' takes indexed_slices; "
                                          "assign_add takes arrays and numbers"});
      CHECK(every_replica(strategy, &variable_access::scatter_add, target,
                          same(rows_of({2}, {1}, 2)))[0]
            == error{errc::out_of_range, "variable 'v': a scatter into row 2; the variable has 2"});
      CHECK(numbers_of(strategy.read(target)) == numbers{1, 2});
    });
  }

  TEST_CASE_FIXTURE(two_replicas, "integers take the numbers that they have") {
    auto target = make(aggregation::none, scalar(1, dtype::i32));
    strategy.assign(target, -2.9);
    CHECK(copies(target) == numbers{-2, -2});
    strategy.assign(target, 2147483647);
    CHECK(copies(target)[0] == 2147483647);
    for (auto number : {2147483648.0, -2147483649.0, 1e300, double(INFINITY), double(NAN)})
      CHECK(refusal_of([&] { strategy.assign(target, number); }).code == errc::invalid_argument);
    CHECK(refusal_of([&] { strategy.assign(target, 1e10); })
          == error{errc::invalid_argument, "variable 'v0' is i32, which cannot be 10000000000"});
    constexpr int64_t odd = 9007199254740993; // 2^53 + 1
    CHECK(refusal_of([&] { static_cast<void>(variable_operand{odd}); })
          == error{errc::invalid_argument,
                   "a variable cannot be changed by the number 9007199254740993, which would "
                   "become 9007199254740992; give a tensor of i64"});
    CHECK(refusal_of([&] { static_cast<void>(variable_operand{INT64_MAX}); }).code
          == errc::invalid_argument);
    CHECK(std::get<double>(variable_operand{odd - 1}) == 0x1p53);
  }

  TEST_CASE_FIXTURE(two_replicas, "variables of another strategy are refused in every context") {
    mirrored_strategy other{world, {cpu_devices(2)}};
    auto theirs = other.make_variable("theirs", scalar(1));
    error expected{errc::invalid_argument,
                   "assign was called for variable 'theirs', which another strategy made; use a "
                   "variable of this one"};
    CHECK(refusal_of([&] { strategy.assign(theirs, 1); }) == expected);
    CHECK(every_replica(strategy, assign, theirs, same(1))[1] == expected);
    auto ours = make(aggregation::none);
    auto in_update = [theirs](update_context& context, const variable&) -> task<error> {
      auto changing = refusal_in(context.assign(theirs, 1));
      auto reason = co_await changing;
      co_return reason;
    };
    CHECK(strategy.extended().update(ours, in_update)[1] == expected);
  }

  TEST_CASE("changes that replicas make to different variables at a time are not lost") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto count = strategy.make_variable("c", scalar(0, dtype::i64),
                                          {.aggregation = aggregation::only_first_replica});
      auto total = strategy.make_variable("t", scalar(0), {.aggregation = aggregation::sum});
      strategy.run([count, total](replica_context& context) -> task<void> {
        for (int step = 0; step < 10; ++step) {
          auto counting = context.assign_add(count, 1);
          static_cast<void>(co_await counting);
          auto adding = context.assign_add(total, scalar(1));
          static_cast<void>(co_await adding);
        }
      });
      CHECK(numbers_of(strategy.read(count)) == numbers{10});
      CHECK(numbers_of(strategy.read(total)) == numbers{10.0 * n});
    });
  }
}

} // namespace variable_write_test
