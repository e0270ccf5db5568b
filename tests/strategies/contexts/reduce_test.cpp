// SPDX-License-Identifier: Apache-2.0
// Goal: values of replicas become one value, as sum or mean, as a whole or along axes, in and
// outside of replicas. Method: numbers by hand, under all strategies.
#include "tests/small_arrays.hpp"
#include "tests/strategies/every_strategy.hpp"
#include "tests/strategies/refusal.hpp"

namespace reduce_test {

using namespace troupe;
using namespace troupe::test;

namespace {

template <class T>
distributed_value<T> each(std::vector<T> values) {
  return distributed_value<T>::per_replica(std::move(values));
}

/// A mirrored strategy on two devices.
struct two_replicas {
  troupe::world world = world::virtual_time();
  mirrored_strategy strategy{world, {cpu_devices(2)}};

  template <class... Axis>
  numbers reduce(reduce_op op, const tensor& first, const tensor& second, Axis... axis) {
    return numbers_of(strategy.reduce(op, each<tensor>({first, second}), axis...));
  }

  template <class... Axis>
  error refusal(reduce_op op, const tensor& first, const tensor& second, Axis... axis) {
    return refusal_of([&] { static_cast<void>(reduce(op, first, second, axis...)); });
  }
};

struct outputs {
  double loss = 0;
  tensor logits;

  static auto members(auto& self) { return std::tie(self.loss, self.logits); }
};

constexpr auto sum = reduce_op::sum;
constexpr auto mean = reduce_op::mean;

const error sum_of_one{errc::invalid_argument,
                       "A non-DistributedValues value cannot be reduced with the given reduce op "
                       "ReduceOp.SUM: it is one value for all 2 replicas, and would be counted 2 "
                       "times; reduce its MEAN, or give each replica its own"};

} // namespace

TEST_SUITE("strategies/contexts/reduce") {
  TEST_CASE("the results of replicas are summed or averaged element by element") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto values = strategy.run([](replica_context& context) {
        auto id = static_cast<double>(context.replica_id_in_sync_group());
        return array({2}, {id, 2 * id + 1});
      });
      auto ids = n * (n - 1) / 2.0;
      CHECK(numbers_of(strategy.reduce(sum, values)) == numbers{ids, 2 * ids + n});
      CHECK(numbers_of(strategy.reduce(mean, values)) == numbers{ids / n, 2 * ids / n + 1});
    });
  }

  TEST_CASE("a value is reduced along an axis, and a mean divides by all elements there are") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto values = strategy.run([](replica_context& context) {
        auto rows = static_cast<int64_t>(context.replica_id_in_sync_group()) + 1;
        return array({rows}, numbers(static_cast<size_t>(rows), 1.0 * rows));
      });
      double total = 0, count = 0;
      for (uint32_t i = 1; i <= n; ++i)
        total += i * i, count += i;
      CHECK(numbers_of(strategy.reduce(sum, values, 0)) == numbers{total});
      CHECK(numbers_of(strategy.reduce(mean, values, 0))[0] == doctest::Approx(total / count));
    });
  }

  TEST_CASE_FIXTURE(two_replicas, "partial and empty batches count with their own sizes") {
    CHECK(reduce(mean, array({3}, {1, 2, 3}), array({1}, {10}), 0) == numbers{4});
    CHECK(reduce(mean, array({3}, {1, 2, 3}), array({0}, {}), 0) == numbers{2});
    CHECK(reduce(sum, array({3}, {1, 2, 3}), array({0}, {}), 0) == numbers{6});
    CHECK(reduce(sum, array({0}, {}), array({0}, {}), 0) == numbers{0});
    CHECK(std::isnan(reduce(mean, array({0}, {}), array({0}, {}), 0)[0]));
    CHECK(reduce(mean, array({2, 2}, {1, 2, 3, 4}), array({0, 2}, {}), 0) == numbers{2, 3});
  }

  TEST_CASE_FIXTURE(two_replicas, "axes may be negative, several, all or none") {
    auto first = array({2, 3}, {1, 2, 3, 4, 5, 6}), second = array({2, 3}, {1, 1, 1, 1, 1, 1});
    CHECK(reduce(sum, first, second, 0) == numbers{7, 9, 11});
    CHECK(reduce(sum, first, second, 1) == numbers{9, 18});
    CHECK(reduce(sum, first, second, -1) == numbers{9, 18});
    CHECK(reduce(sum, first, second, std::vector<int64_t>{0, 1}) == numbers{27});
    CHECK(reduce(mean, first, second, std::vector<int64_t>{0, -1}) == numbers{2.25});
    CHECK(reduce(sum, first, second, std::vector<int64_t>{}) == numbers{2, 3, 4, 5, 6, 7});
    CHECK(reduce(sum, first.transpose(), second.transpose(), 0) == numbers{9, 18});
  }

  TEST_CASE_FIXTURE(two_replicas, "an axis that a value has not, or one named twice, is refused") {
    auto value = array({1, 1}, {1});
    for (auto again : {int64_t{0}, int64_t{-2}})
      CHECK(refusal(sum, value, value.clone(), std::vector<int64_t>{0, again})
            == error{errc::invalid_argument, "dimension 0 is among the axes of a reduction twice"});
    CHECK(refusal(sum, value, value.clone(), 2)
          == error{errc::invalid_argument, "`axis` = 2 out of range for `value` with rank 2"});
    CHECK(refusal(mean, value, value.clone(), -3)
          == error{errc::invalid_argument, "`axis` = -3 out of range for `value` with rank 2"});
    CHECK(refusal(sum, scalar(1), scalar(2), 0)
          == error{errc::invalid_argument, "`axis` = 0 out of range for `value` with rank 0"});
    CHECK(refusal_of([&] {
            static_cast<void>(strategy.reduce(sum, each<double>({1, 2}), 0));
          })
          == error{errc::invalid_argument, "`axis` = 0 out of range for `value` with rank 0"});
  }

  TEST_CASE_FIXTURE(two_replicas, "shapes and dtypes that differ are refused, by replica") {
    CHECK(refusal(sum, array({2}, {1, 2}), array({1}, {1}))
          == error{errc::invalid_argument,
                   "replica 1 has a value of shape [1], replica 0 one of shape [2]; shapes have to "
                   "agree, or name the axis to reduce"});
    CHECK(refusal(sum, scalar(1), scalar(1, dtype::f64))
          == error{errc::type_mismatch, "replica 1 has a value of f64, replica 0 one of f32"});
    CHECK(refusal(sum, array({1}, {1}), array({2}, {1, 2}, dtype::f64), 0)
          == error{errc::type_mismatch, "replica 1 has a value of f64, replica 0 one of f32"});
    CHECK(refusal(sum, array({1, 2}, {1, 2}), array({1, 3}, {1, 2, 3}), 0).code
          == errc::invalid_argument);
  }

  TEST_CASE_FIXTURE(two_replicas, "integers are summed exactly, means along axes are not cut") {
    auto big = array({1}, {0}, dtype::i64);
    big.mutable_values<int64_t>()[0] = (int64_t{1} << 53) + 1;
    auto one = array({1}, {1}, dtype::i64);
    for (const auto& total : {strategy.reduce(sum, each<tensor>({big, one})),
                              strategy.reduce(sum, each<tensor>({big, one}), 0)}) {
      CHECK(total.type() == dtype::i64);
      CHECK(total.values<int64_t>()[0] == (int64_t{1} << 53) + 2);
    }
    auto greatest = array({1}, {0}, dtype::i64);
    greatest.mutable_values<int64_t>()[0] = INT64_MAX;
    CHECK(strategy.reduce(sum, each<tensor>({greatest, one}), 0).values<int64_t>()[0] == INT64_MIN);
    auto two = array({2}, {1, 0}, dtype::i64);
    two.mutable_values<int64_t>()[1] = INT64_MAX;
    CHECK(
      strategy.reduce(sum, each<tensor>({two, array({1}, {0}, dtype::i64)}), 0).values<int64_t>()[0]
      == INT64_MIN); // within a replica, too
    auto third = strategy.reduce(
      mean, each<tensor>({array({2}, {1, 1}, dtype::i32), array({1}, {0}, dtype::i32)}), 0);
    CHECK(third.type() == dtype::f64);
    CHECK(numbers_of(third)[0] == doctest::Approx(2.0 / 3));
    CHECK(reduce(mean, scalar(3, dtype::i32), scalar(4, dtype::i32)) == numbers{3});
    CHECK(reduce(sum, array({2}, {1, 2}, dtype::i32), array({1}, {4}, dtype::i32), 0)
          == numbers{7});
  }

  TEST_CASE_FIXTURE(two_replicas, "numbers are reduced; means of integers are refused") {
    CHECK(strategy.reduce(sum, each<double>({1.5, 2})) == 3.5);
    CHECK(strategy.reduce(mean, each<double>({1, 2})) == 1.5);
    CHECK(strategy.reduce(sum, each<int64_t>({(int64_t{1} << 53) + 1, 1}))
          == (int64_t{1} << 53) + 2);
    CHECK(refusal_of([&] {
            static_cast<void>(strategy.reduce(mean, each<int>({1, 2})));
          })
          == error{errc::invalid_argument,
                   "the mean of integers is cut; have replicas return a double, or a tensor"});
  }

  TEST_CASE_FIXTURE(two_replicas, "16-bit numbers are added as floats") {
    auto half = [](double value) {
      auto narrow_one = zeros({1}, dtype::bf16);
      narrow_one.mutable_values<bfloat16>()[0] = to_bfloat16(static_cast<float>(value));
      return narrow_one;
    };
    auto total = strategy.reduce(sum, each<tensor>({half(1), half(2)}));
    CHECK(total.type() == dtype::bf16);
    CHECK(to_float(total.values<bfloat16>()[0]) == 3);
    CHECK(to_float(strategy.reduce(mean, each<tensor>({half(1), half(2)}), 0).values<bfloat16>()[0])
          == 1.5F);
  }

  // ---- what is the same for all ----

  TEST_CASE_FIXTURE(two_replicas, "one value for all is its own mean, and has no sum but 0") {
    auto one = array({2}, {3, 4});
    CHECK(numbers_of(strategy.reduce(mean, one)) == numbers{3, 4});
    CHECK(refusal_of([&] { static_cast<void>(strategy.reduce(sum, one)); }) == sum_of_one);
    CHECK(refusal_of([&] { static_cast<void>(strategy.reduce(sum, 2.0)); }) == sum_of_one);
    CHECK(strategy.reduce(mean, 2) == 2);
    CHECK(strategy.reduce(sum, 0.0) == 0);
    CHECK(numbers_of(strategy.reduce(sum, scalar(0))) == numbers{0});
    CHECK(numbers_of(strategy.reduce(mean, one, 0)) == numbers{3.5});
  }

  TEST_CASE_FIXTURE(two_replicas, "a mirrored value is one value for all") {
    auto one = distributed_value<tensor>::mirrored(scalar(3), 2);
    CHECK(numbers_of(strategy.reduce(mean, one)) == numbers{3});
    CHECK(refusal_of([&] { static_cast<void>(strategy.reduce(sum, one)); }) == sum_of_one);
    auto shared = scalar(3);
    auto returned = strategy.run([shared](replica_context&) { return shared; });
    CHECK(returned.is_mirrored());
    CHECK(refusal_of([&] { static_cast<void>(strategy.reduce(sum, returned)); }) == sum_of_one);
  }

  TEST_CASE("with one replica, one value for all is what it has, as sum and as mean") {
    auto world = world::virtual_time();
    one_device_strategy strategy{world};
    for (auto op : {sum, mean}) {
      CHECK(numbers_of(strategy.reduce(op, array({2}, {3, 4}))) == numbers{3, 4});
      CHECK(strategy.reduce(op, 2.5) == 2.5);
    }
    CHECK(numbers_of(strategy.reduce(sum, array({2}, {3, 4}), 0)) == numbers{7});
  }

  TEST_CASE("each replica reads a value of its own, however the variable is held") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto weights = strategy.make_variable("w", scalar(2));
      auto step = [weights](replica_context& context) -> task<tensor> {
        auto reading = context.read(weights);
        auto value = co_await reading;
        co_return value;
      };
      CHECK(numbers_of(strategy.reduce(sum, strategy.run(step))) == numbers{2.0 * n});
      CHECK(numbers_of(strategy.reduce(sum, weights)) == numbers{2.0 * n});
      CHECK(numbers_of(strategy.reduce(mean, weights)) == numbers{2});
    });
  }

  // ---- nests ----

  TEST_CASE_FIXTURE(two_replicas, "nests are reduced leaf by leaf") {
    auto nest = strategy.run([](replica_context& context) {
      auto id = 1.0 + context.replica_id_in_sync_group();
      return std::tuple{std::pair{id, scalar(id)}, std::vector{id, 2 * id},
                        std::map<std::string, std::optional<double>>{{"a", id}, {"b", {}}},
                        std::array{id}, outputs{id, scalar(10 * id)}};
    });
    auto [pair, list, map, fixed, parts] = strategy.reduce(sum, nest);
    CHECK(pair.first == 3);
    CHECK(numbers_of(pair.second) == numbers{3});
    CHECK(list == numbers{3, 6});
    CHECK(map.at("a") == 3);
    CHECK(!map.at("b").has_value());
    CHECK(fixed[0] == 3);
    CHECK(parts.loss == 3);
    CHECK(numbers_of(parts.logits) == numbers{30});
  }

  TEST_CASE_FIXTURE(two_replicas, "rows are laid behind each other, and a mean scales them") {
    auto rows = each<indexed_slices>({rows_of({0, 1}, {1, 2}, 3), rows_of({1}, {4}, 3)});
    auto total = strategy.reduce(sum, rows);
    CHECK(numbers_of(total.indices) == numbers{0, 1, 1});
    CHECK(numbers_of(total.values) == numbers{1, 2, 4});
    CHECK(total.dense_extents == shape{3, 1});
    CHECK(numbers_of(strategy.reduce(mean, rows).values) == numbers{0.5, 1, 2});
  }

  TEST_CASE("the names of reductions are known in any case") {
    CHECK(to_reduce_op("SUM") == sum);
    CHECK(to_reduce_op("mean") == mean);
    CHECK(to_string(mean) == "MEAN");
    CHECK(refusal_of([] { static_cast<void>(to_reduce_op("max")); })
          == error{errc::invalid_argument, "there is no reduction 'max'; there are SUM and MEAN"});
  }

  TEST_CASE_FIXTURE(two_replicas, "a number that is no reduction is refused") {
    CHECK(
      refusal(static_cast<reduce_op>(9), scalar(1), scalar(2))
      == error{errc::invalid_argument, "there is no reduction number 9; there are SUM and MEAN"});
  }

  TEST_CASE("sum and mean are the aggregations that are reductions") {
    CHECK(to_reduce_op(variable_aggregation::sum) == sum);
    CHECK(to_reduce_op(variable_aggregation::mean) == mean);
    for (auto mode : {variable_aggregation::none, variable_aggregation::only_first_replica})
      CHECK(refusal_of([mode] { static_cast<void>(to_reduce_op(mode)); })
            == error{errc::invalid_argument, "Could not convert from `tf.VariableAggregation` "
                                               + std::string{to_string(mode)}
                                               + " to a reduction; SUM and MEAN are reductions"});
  }

  // ---- gather ----

  TEST_CASE("values are gathered in the order of replicas") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto values = strategy.run([](replica_context& context) {
        auto id = context.replica_id_in_sync_group();
        return array({1, static_cast<int64_t>(id) + 1}, numbers(id + 1, 1.0 * id));
      });
      numbers expected;
      for (uint32_t i = 0; i < n; ++i)
        expected.insert(expected.end(), i + 1, 1.0 * i);
      auto gathered = strategy.gather(values, 1);
      CHECK(numbers_of(gathered) == expected);
      CHECK(gathered.extents() == shape{1, static_cast<int64_t>(expected.size())});
      CHECK(numbers_of(strategy.gather(values, -1)) == expected);
    });
  }

  TEST_CASE_FIXTURE(two_replicas, "rows between others are gathered block by block") {
    auto values = each<tensor>({array({2, 1}, {1, 2}), array({2, 2}, {3, 4, 5, 6})});
    auto gathered = strategy.gather(values, 1);
    CHECK(gathered.extents() == shape{2, 3});
    CHECK(numbers_of(gathered) == numbers{1, 3, 4, 2, 5, 6});
  }

  TEST_CASE_FIXTURE(two_replicas, "one value for all is gathered once for each replica") {
    CHECK(numbers_of(strategy.gather(array({2}, {1, 2}), 0)) == numbers{1, 2, 1, 2});
    auto world_of_one = world::virtual_time();
    one_device_strategy alone{world_of_one};
    CHECK(numbers_of(alone.gather(array({2}, {1, 2}), 0)) == numbers{1, 2});
  }

  TEST_CASE_FIXTURE(two_replicas, "values that cannot be gathered are refused") {
    auto refusal = [&](const tensor& first, const tensor& second, int64_t axis) {
      return refusal_of([&] {
        static_cast<void>(strategy.gather(each<tensor>({first, second}), axis));
      });
    };
    CHECK(
      refusal(scalar(1), scalar(2), 0)
      == error{errc::invalid_argument, "scalars cannot be gathered; give each a dimension first"});
    CHECK(refusal(array({1}, {1}), array({1}, {1}), 1)
          == error{errc::invalid_argument, "`axis` = 1 out of range for `value` with rank 1"});
    CHECK(refusal(array({1, 2}, {1, 2}), array({1, 1}, {1}), 0)
          == error{errc::invalid_argument,
                   "replica 1 has a value of shape [1, 1], replica 0 one of shape [1, 2]; they may "
                   "differ along axis 0 only"});
    CHECK(refusal(array({1}, {1}), array({1, 1}, {1}), 0).code == errc::invalid_argument);
    CHECK(refusal(array({1}, {1}), array({1}, {1}, dtype::f64), 0).code == errc::type_mismatch);
    auto rows = each<indexed_slices>({rows_of({0}, {1}, 3), rows_of({1}, {4}, 3)});
    CHECK(refusal_of([&] { strategy.gather(rows, 0); })
          == error{errc::unimplemented,
                   "gather does not take indexed_slices; gather indices and values"});
  }

  // ---- in replicas ----

  TEST_CASE("all_reduce gives every replica the same, and counts equal values, too") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto shared = scalar(1);
      auto results = strategy.run([shared](replica_context& context) -> task<numbers> {
        auto adding = context.all_reduce(reduce_op::sum, shared);
        auto total = co_await adding;
        auto averaging
          = context.all_reduce(reduce_op::mean, 1.0 * context.replica_id_in_sync_group());
        auto average = co_await averaging;
        co_return numbers{numbers_of(total)[0], average};
      });
      for (uint32_t i = 0; i < n; ++i)
        CHECK(std::vector{results[0][i], results[1][i]} == numbers{1.0 * n, (n - 1) / 2.0});
    });
  }

  TEST_CASE("a result that replicas share is not written to") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {.devices = cpu_devices(2)}};
    strategy.run([](replica_context& context) -> task<void> {
      auto adding = context.all_reduce(reduce_op::sum, std::pair{scalar(1), rows_of({0}, {1}, 2)});
      auto [total, rows] = co_await adding;
      auto gathering = context.all_gather(array({1}, {1}), 0);
      auto all = co_await gathering;
      for (auto each : {total, rows.indices, rows.values, all})
        CHECK(refusal_of([&] { static_cast<void>(each.mutable_data()); }).code
              == errc::failed_precondition);
    });
  }

  TEST_CASE("all_reduce takes nests of arrays, numbers and rows") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto results = strategy.run([](replica_context& context) -> task<numbers> {
        std::map<std::string, std::vector<tensor>> arrays{{"a", {scalar(1), scalar(2)}}};
        std::optional<double> none;
        auto nest = std::tuple{arrays, std::pair{1, none}, rows_of({0}, {1}, 2),
                               gradient{scalar(5)}, std::array{1.0}};
        auto reducing = context.all_reduce(reduce_op::sum, nest);
        auto [map, pair, rows, either, fixed] = co_await reducing;
        co_return numbers{numbers_of(map.at("a")[1])[0],
                          1.0 * pair.first,
                          1.0 * pair.second.has_value(),
                          1.0 * static_cast<double>(rows.indices.element_count()),
                          numbers_of(std::get<tensor>(either))[0],
                          fixed[0]};
      });
      auto own = strategy.experimental_local_results(results);
      CHECK(own.back() == numbers{2.0 * n, 1.0 * n, 0, 1.0 * n, 5.0 * n, 1.0 * n});
    });
  }

  TEST_CASE_FIXTURE(two_replicas,
                    "all_reduce of what does not fit together fails in all replicas") {
    auto refused = strategy.run([](replica_context& context) -> task<error> {
      auto extent = static_cast<int64_t>(context.replica_id_in_sync_group()) + 1;
      auto reducing = refusal_in(context.all_reduce(reduce_op::sum, zeros({extent})));
      auto reason = co_await reducing;
      co_return reason;
    });
    CHECK(refused[0].code == errc::invalid_argument);
    CHECK(refused[1] == refused[0]);
    auto mixed = strategy.run([](replica_context& context) -> task<error> {
      gradient mine = context.replica_id_in_sync_group() == 0 ? gradient{zeros({2, 1})}
                                                              : gradient{rows_of({0}, {1}, 2)};
      auto reducing = refusal_in(context.all_reduce(reduce_op::sum, mine));
      auto reason = co_await reducing;
      co_return reason;
    });
    CHECK(mixed[0]
          == error{errc::type_mismatch,
                   "replica 1 has a sparse value, replica 0 a dense one; make all of one kind"});
  }

  TEST_CASE("all_gather lays values of any length behind each other, for all") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto results = strategy.run([](replica_context& context) -> task<tensor> {
        auto id = context.replica_id_in_sync_group();
        auto gathering
          = context.all_gather(array({static_cast<int64_t>(id)}, numbers(id, 1.0 * id)), 0);
        auto result = co_await gathering;
        co_return result;
      });
      numbers expected;
      for (uint32_t i = 0; i < n; ++i)
        expected.insert(expected.end(), i, 1.0 * i);
      CHECK(numbers_of(results[n - 1]) == expected);
    });
  }

  TEST_CASE("all_gather of scalars is refused in every replica") {
    for_every_strategy([](strategy& strategy) {
      auto refused = strategy.run([](replica_context& context) -> task<error> {
        auto gathering = refusal_in(context.all_gather(scalar(1), 0));
        auto reason = co_await gathering;
        co_return reason;
      });
      for (const auto& reason : strategy.experimental_local_results(refused))
        CHECK(reason.code == errc::invalid_argument);
    });
  }

  TEST_CASE("options that are none are refused by every call that takes some") {
    for_every_strategy([](strategy& strategy) {
      const communication_options none{.bytes_per_pack = -1};
      auto refused = strategy.run([none](replica_context& context) -> task<std::vector<error>> {
        auto reducing = refusal_in(context.all_reduce(sum, scalar(1), none));
        auto first = co_await reducing;
        auto gathering = refusal_in(context.all_gather(array({1}, {1}), 0, none));
        auto second = co_await gathering;
        co_return std::vector{first, second};
      });
      const error expected{errc::invalid_argument, "bytes_per_pack must be non-negative, not -1"};
      for (const auto& call : refused)
        CHECK(call[0] == expected);
      auto values = strategy.experimental_distribute_values_from_function(
        [](value_context) { return scalar(1); });
      CHECK(refusal_of(
              [&] { static_cast<void>(strategy.extended().reduce_to(sum, values, "cpu:0", none)); })
            == expected);
    });
  }

  TEST_CASE("the gradient of all_reduce is an all_reduce, too") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto results = strategy.run([](replica_context& context) -> task<numbers> {
        auto up = scalar(1.0 + context.replica_id_in_sync_group());
        auto of_sum = context.all_reduce_gradient(reduce_op::sum, up);
        auto by_sum = co_await of_sum;
        auto of_mean = context.all_reduce_gradient(reduce_op::mean, up);
        auto by_mean = co_await of_mean;
        co_return numbers{numbers_of(by_sum)[0], numbers_of(by_mean)[0]};
      });
      auto own = strategy.experimental_local_results(results).back();
      CHECK(own == numbers{n * (n + 1) / 2.0, (n + 1) / 2.0});
    });
  }

  TEST_CASE("the gradient of all_gather is the own part of the sum") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto parts = strategy.run([](replica_context& context) -> task<tensor> {
        auto count = context.num_replicas_in_sync();
        auto mine = static_cast<int64_t>(context.replica_id_in_sync_group()) + 1;
        int64_t all = count * (count + 1) / 2;
        tensor up = zeros({2, all});
        auto values = up.mutable_values<float>();
        for (size_t i = 0; i < values.size(); ++i)
          values[i] = static_cast<float>(i);
        auto slicing = context.all_gather_gradient(up, 1, mine);
        auto part = co_await slicing;
        co_return part;
      });
      int64_t all = n * (n + 1) / 2;
      auto last = parts[n - 1];
      CHECK(last.extents() == shape{2, n});
      CHECK(numbers_of(last).back() == 1.0 * n * static_cast<double>(2 * all - 1));
      CHECK(numbers_of(last).front() == 1.0 * n * static_cast<double>(all - n));
    });
  }

  TEST_CASE("a gradient that cannot be that of an all_gather is refused") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      for (auto [axis, extent] : {std::pair{0, 2}, {1, 1}, {-2, 1}, {0, -1}}) {
        auto refused = strategy.run(
          [](replica_context& context, int along, int own) -> task<error> {
            auto up = zeros({static_cast<int64_t>(context.num_replicas_in_sync())});
            auto slicing = refusal_in(context.all_gather_gradient(up, along, own));
            auto reason = co_await slicing;
            co_return reason;
          },
          axis, extent);
        CHECK(refused[n - 1].code == errc::invalid_argument);
      }
    });
  }

  TEST_CASE("a value without components is refused") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    distributed_value<tensor> none;
    CHECK(refusal_of([&] { static_cast<void>(strategy.reduce(sum, none)); })
          == error{errc::invalid_argument, "there is no value to reduce"});
    CHECK(refusal_of([&] { static_cast<void>(strategy.reduce(sum, none, 0)); }).code
          == errc::invalid_argument);
    CHECK(refusal_of([&] { static_cast<void>(strategy.gather(none, 0)); })
          == error{errc::invalid_argument, "there is no value to gather"});
  }
}

} // namespace reduce_test
