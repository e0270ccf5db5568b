// SPDX-License-Identifier: Apache-2.0
// Goal: whichever implementation adds, whatever the packs, the values are the same. Method: every
// implementation against numbers by hand, over numbers of devices, packs and kinds of values.
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/reduce/cross_device_choice.hpp"
#include "strategies/reduce/hierarchical_copy_all_reduce.hpp"
#include "strategies/reduce/packs.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/refusal.hpp"

namespace cross_device_ops_test {

using namespace troupe;
using namespace troupe::test;

namespace {

using batch = std::vector<std::pair<device_values, destinations>>;

std::vector<std::shared_ptr<const cross_device_ops>> all_operations() {
  std::vector<std::shared_ptr<const cross_device_ops>> all{
    std::make_shared<reduction_to_one_device>(),
    std::make_shared<reduction_to_one_device>("cpu:1")};
  for (auto packs : {0, 1, 3, 100}) {
    all.push_back(std::make_shared<all_reduce_ops>(packs));
    all.push_back(std::make_shared<hierarchical_copy_all_reduce>(packs));
  }
  return all;
}

destinations on(uint32_t count) {
  return destinations{cpu_devices(count)};
}

/// A value of `count` replicas: replica i has `elements` numbers from `first` + i on.
device_values spread(uint32_t count, int64_t elements, double first, dtype type = dtype::f32) {
  device_values result{{}, cpu_devices(count)};
  for (uint32_t i = 0; i < count; ++i) {
    numbers own;
    for (int64_t k = 0; k < elements; ++k)
      own.push_back(first + i + static_cast<double>(k));
    result.components.emplace_back(array({elements}, own, type));
  }
  return result;
}

numbers sum_of(uint32_t count, int64_t elements, double first) {
  numbers result;
  for (int64_t k = 0; k < elements; ++k)
    result.push_back(count * (first + static_cast<double>(k)) + count * (count - 1) / 2.0);
  return result;
}

numbers dense(const gradient& value) {
  return numbers_of(std::get<tensor>(value));
}

/// A program's own operations, which lose every value.
class losing_ops final : public cross_device_ops {
public:
  [[nodiscard]] std::string_view name() const override { return "losing"; }

protected:
  [[nodiscard]] std::vector<gradient>
  batch_all_reduce(reduce_op /*op*/, std::span<const device_values* const> /*values*/,
                   const communication_options& /*options*/) const override {
    return {};
  }
};

} // namespace

TEST_SUITE("strategies/reduce/cross_device_ops") {
  TEST_CASE("every implementation comes to the same sum and mean") {
    for (const auto& ops : all_operations())
      for (auto count : {2U, 4U, 6U}) {
        CAPTURE(ops->name());
        auto value = spread(count, 5, 1);
        CHECK(dense(ops->reduce(reduce_op::sum, value, on(count))) == sum_of(count, 5, 1));
        auto mean = dense(ops->reduce(reduce_op::mean, value, on(count)));
        for (size_t i = 0; i < 5; ++i)
          CHECK(mean[i] == doctest::Approx(sum_of(count, 5, 1)[i] / count));
      }
  }

  TEST_CASE("a batch is its values one by one, in their order, whatever the packs") {
    for (const auto& ops : all_operations())
      for (int64_t bytes : {0, 1, 12, 1000}) {
        CAPTURE(ops->name());
        CAPTURE(bytes);
        batch values;
        const int64_t sizes[] = {3, 0, 1, 7, 2};
        for (auto size : sizes)
          values.emplace_back(spread(2, size, static_cast<double>(size)), on(2));
        auto results = ops->batch_reduce(reduce_op::sum, values, {.bytes_per_pack = bytes});
        REQUIRE(results.size() == 5);
        for (size_t i = 0; i < 5; ++i)
          CHECK(dense(results[i]) == sum_of(2, sizes[i], static_cast<double>(sizes[i])));
      }
  }

  TEST_CASE("a batch may be mixed: dense and sparse, of several dtypes, shapes and destinations") {
    for (const auto& ops : all_operations()) {
      CAPTURE(ops->name());
      device_values rows{{rows_of({0}, {1}, 2), rows_of({0, 1}, {2, 3}, 2)}, cpu_devices(2)};
      device_values square{{array({2, 2}, {1, 2, 3, 4}), array({2, 2}, {1, 1, 1, 1})},
                           cpu_devices(2)};
      batch values{{spread(2, 2, 1), on(2)},
                   {rows, on(2)},
                   {spread(2, 2, 1, dtype::f64), on(2)},
                   {square, on(2)},
                   {spread(2, 1, 7), on(1)},
                   {spread(4, 1, 0), on(4)}};
      auto results = ops->batch_reduce(reduce_op::sum, values);
      CHECK(dense(results[0]) == sum_of(2, 2, 1));
      CHECK(numbers_of(std::get<indexed_slices>(results[1]).values) == numbers{1, 2, 3});
      CHECK(std::get<tensor>(results[2]).type() == dtype::f64);
      CHECK(std::get<tensor>(results[3]).extents() == shape{2, 2});
      CHECK(dense(results[3]) == numbers{2, 3, 4, 5});
      CHECK(dense(results[4]) == sum_of(2, 1, 7));
      CHECK(dense(results[5]) == sum_of(4, 1, 0));
      CHECK(ops->batch_reduce(reduce_op::sum, batch{}).empty());
    }
  }

  TEST_CASE("a single component is its own sum and mean") {
    for (const auto& ops : all_operations())
      if (ops->name() != "hierarchical_copy_all_reduce")
        for (auto op : {reduce_op::sum, reduce_op::mean})
          CHECK(dense(ops->reduce(op, spread(1, 3, 5), on(1))) == numbers{5, 6, 7});
  }

  TEST_CASE("integers are added, and their mean is cut") {
    for (const auto& ops : all_operations()) {
      auto value = spread(2, 2, 3, dtype::i32);
      CHECK(dense(ops->reduce(reduce_op::sum, value, on(2))) == numbers{7, 9});
      CHECK(dense(ops->reduce(reduce_op::mean, value, on(2))) == numbers{3, 4});
    }
  }

  TEST_CASE("two levels need an even number of devices") {
    hierarchical_copy_all_reduce ops;
    CHECK(refusal_of([&] { static_cast<void>(ops.reduce(reduce_op::sum, spread(3, 1, 1), on(3))); })
          == error{errc::invalid_argument,
                   "hierarchical_copy_all_reduce needs an even number of devices, not 3; choose "
                   "all_reduce"});
    CHECK(dense(ops.reduce(reduce_op::sum, spread(3, 1, 1), on(1))) == sum_of(3, 1, 1));
  }

  TEST_CASE("values that do not fit together are refused by every implementation") {
    for (const auto& ops : all_operations()) {
      CAPTURE(ops->name());
      auto refusal = [&](std::vector<gradient> components) {
        auto devices = cpu_devices(static_cast<uint32_t>(components.size()));
        auto to = on(2);
        device_values value{std::move(components), devices};
        return refusal_of([&] { static_cast<void>(ops->reduce(reduce_op::sum, value, to)); });
      };
      CHECK(refusal({}) == error{errc::invalid_argument, "there is no value to reduce"});
      CHECK(refusal({zeros({1}), zeros({2})}).code == errc::invalid_argument);
      CHECK(refusal({zeros({1}), zeros({1}, dtype::f64)}).code == errc::type_mismatch);
      CHECK(refusal({zeros({2, 1}), rows_of({0}, {1}, 2)})
            == error{errc::type_mismatch,
                     "replica 1 has a sparse value, replica 0 a dense one; make all of one kind"});
      CHECK(refusal({rows_of({0}, {1}, 3), miscounted_rows(1), miscounted_rows(0)})
            == error{errc::invalid_argument,
                     "replica 1 has rows with numbers of shape [1] and values of shape [2, 1]; "
                     "numbers have shape [rows], and values as many rows"});
    }
  }

  TEST_CASE("rows are of the array that the first component says, whatever others say") {
    auto silent = rows_of({1}, {2}, 3);
    silent.dense_extents = {};
    for (const auto& ops : all_operations()) {
      CAPTURE(ops->name());
      device_values value{{rows_of({0}, {1}, 2), silent}, cpu_devices(2)};
      auto sum = std::get<indexed_slices>(ops->reduce(reduce_op::sum, value, on(2)));
      CHECK(sum.dense_extents == shape{2, 1});
      CHECK(numbers_of(sum.indices) == numbers{0, 1});
    }
  }

  TEST_CASE("operations of a program's own that do not reduce each value are refused") {
    const auto refused = refusal_of(
      [] { static_cast<void>(losing_ops{}.reduce(reduce_op::sum, spread(2, 3, 0), on(2))); });
    CHECK(refused.code == errc::user_code);
    CHECK(refused.message
          == "the cross-device operations 'losing' reduced 1 values to 0; return one for each");
  }

  TEST_CASE("a number of packs must not be negative") {
    error expected{errc::invalid_argument,
                   "num_packs is -1; it must not be negative, 0 means no packing"};
    CHECK(refusal_of([] { all_reduce_ops{-1}; }) == expected);
    CHECK(refusal_of([] { hierarchical_copy_all_reduce{-1}; }) == expected);
  }

  TEST_CASE("a pack is full once it is larger than asked for, not when it is as large") {
    auto packs = [](std::vector<size_t> bytes, int64_t most) { return pack_by_bytes(bytes, most); };
    CHECK(packs({4, 4, 4, 4}, 8) == std::vector<size_t>{3, 1});
    CHECK(packs({4, 4, 4, 4}, 7) == std::vector<size_t>{2, 2});
    CHECK(packs({100, 1, 1}, 8) == std::vector<size_t>{1, 2});
    CHECK(packs({4, 4, 4}, 0) == std::vector<size_t>{3});
    CHECK(packs({}, 8).empty());
  }

  TEST_CASE("operations are made by name, in any case") {
    for (const auto* name :
         {"reduction_to_one_device", "all_reduce", "hierarchical_copy_all_reduce"})
      CHECK(make_cross_device_ops(name)->name() == name);
    CHECK(make_cross_device_ops("ALL_REDUCE")->name() == "all_reduce");
    CHECK(refusal_of([] { static_cast<void>(make_cross_device_ops("mpi")); })
          == error{errc::not_found,
                   "there are no cross-device operations 'mpi'; there are reduction_to_one_device, "
                   "all_reduce, hierarchical_copy_all_reduce and nccl_all_reduce"});
    CHECK(choose_cross_device_ops(cpu_devices(4))->name() == "reduction_to_one_device");
  }

  TEST_CASE("a strategy reduces by the operations that it was made with") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{
      world,
      {.devices = cpu_devices(3),
       .cross_device_operations = std::make_shared<hierarchical_copy_all_reduce>()}};
    CHECK(strategy.cross_device_operations().name() == "hierarchical_copy_all_reduce");
    auto value = distributed_value<tensor>::per_replica({scalar(1), scalar(2), scalar(3)});
    auto weights = strategy.make_variable("w", scalar(0));
    CHECK(refusal_of([&] {
            static_cast<void>(strategy.extended().reduce_to(reduce_op::sum, value, weights));
          }).code
          == errc::invalid_argument);
  }

  TEST_CASE("options of one call win over those of the strategy, but for defaults") {
    communication_options ours{.bytes_per_pack = 5, .timeout_seconds = 2};
    auto merged = ours.merge({.implementation = communication_implementation::ring});
    CHECK(merged.bytes_per_pack == 5);
    CHECK(merged.timeout_seconds == 2);
    CHECK(merged.implementation == communication_implementation::ring);
    merged = ours.merge({.bytes_per_pack = 7, .timeout_seconds = 0});
    CHECK(merged.bytes_per_pack == 7);
    CHECK(merged.timeout_seconds == 0);
  }

  TEST_CASE("options and implementations that there are not are refused") {
    CHECK(refusal_of([] { communication_options{.bytes_per_pack = -1}.validate(); })
          == error{errc::invalid_argument, "bytes_per_pack must be non-negative, not -1"});
    CHECK(refusal_of([] { communication_options{.timeout_seconds = -0.5}.validate(); })
          == error{errc::invalid_argument, "timeout_seconds must be non-negative, not -0.5"});
    CHECK(to_communication_implementation("Ring") == communication_implementation::ring);
    CHECK(to_communication_implementation("tree") == communication_implementation::tree);
    CHECK(to_communication_implementation("AUTO") == communication_implementation::automatic);
    CHECK(refusal_of([] { static_cast<void>(to_communication_implementation("mpi")); })
          == error{errc::invalid_argument, "there is no communication implementation 'mpi'; there "
                                           "are AUTO, RING, NCCL, HALVING_DOUBLING and TREE"});
  }
}

} // namespace cross_device_ops_test
