// SPDX-License-Identifier: Apache-2.0
// Goal: shards are read and changed as one array. Method: a table of 10 rows in 3 shards, in the
// functions of a coordinator, against the same table in one piece.
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/coordinator/cluster_coordinator.hpp"
#include "strategies/jobs/checkpoint.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "strategies/variables/exponential_moving_average.hpp"
#include "strategies/variables/sharded_variable.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/refusal.hpp"

#include <algorithm>
#include <iterator>

namespace sharded_variable_test {

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int64_t row_count = 10;

// Row i is i, i + 0.5.
tensor counting(double from = 0) {
  numbers values;
  for (int64_t i = 0; i < row_count; ++i) {
    values.push_back(from + static_cast<double>(i));
    values.push_back(from + static_cast<double>(i) + 0.5);
  }
  return array({row_count, 2}, values);
}

tensor rows_to_find(const numbers& rows) {
  return array({static_cast<int64_t>(rows.size())}, rows, dtype::i64);
}

/// A table in shards, and a coordinator that runs functions that use it.
struct stage {
  /// @param restored A folder with a checkpoint; empty: none.
  explicit stage(int64_t shards = 3, const std::filesystem::path& restored = {})
    : step(restored.empty() ? std::nullopt : restore_checkpoint(strategy, restored)),
      table(
        sharded_variable::make(strategy, "table", counting(), fixed_shards_partitioner(shards))),
      coordinator(strategy) {}

  world made = world::virtual_time();
  parameter_server_strategy strategy{made};
  std::optional<uint64_t> step; ///< That was restored before the table was made.
  sharded_variable table;
  cluster_coordinator coordinator;
  int functions = 0;

  /// Has a worker call a function. @returns Its result.
  template <class Function>
  auto run(Function function) {
    auto one = coordinator.make_function(std::to_string(functions++), std::move(function));
    auto result = coordinator.schedule(one);
    coordinator.join();
    return coordinator.fetch(result);
  }

  numbers all() {
    return numbers_of(
      run([table = table](closure_context& context) { return table.read(context); }));
  }

  numbers averages(const exponential_moving_average& kept) {
    numbers all;
    for (const auto& shard : table.shards())
      std::ranges::copy(numbers_of(kept.average(strategy, shard).value()), std::back_inserter(all));
    return all;
  }

  numbers found(const numbers& rows) {
    return numbers_of(run([table = table, rows](closure_context& context) {
      return table.lookup(context, rows_to_find(rows));
    }));
  }

  error refusal(const numbers& rows) {
    return refusal_of([&] { static_cast<void>(found(rows)); });
  }
};

// A worker applies a gradient of ones.
void descend(stage& one, const optimizer& with) {
  one.run([table = one.table, with](closure_context& context) -> task<void> {
    auto applying = with.apply_gradients(context, table.split(array({10, 2}, numbers(20, 1))));
    co_await applying;
  });
}

} // namespace

TEST_SUITE("strategies/variables/sharded_variable") {
  TEST_CASE("shards follow each other, named by their number, the first of them larger") {
    stage one;
    auto shards = one.table.shards();
    REQUIRE(shards.size() == 3);
    CHECK(shards[0].name() == "table/part_0");
    CHECK(shards[2].name() == "table/part_2");
    CHECK(shards[0].extents() == shape{4, 2});
    CHECK(shards[1].extents() == shape{3, 2});
    CHECK(one.table.extents() == shape{10, 2});
    CHECK(one.all() == numbers_of(counting()));
  }

  TEST_CASE("a strategy's own partitioner cuts whatever is made in shards") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world,
                                       {.variable_partitioner = min_size_partitioner(40, 4)}};
    auto table = strategy.make_sharded_variable("table", counting()); // 80 bytes
    REQUIRE(table.shards().size() == 2);
    CHECK(table.shards()[1].name() == "table/part_1");
    CHECK(table.extents() == shape{10, 2});
    auto small = strategy.make_sharded_variable("small", array({3}, {1, 2, 3}));
    REQUIRE(small.shards().size() == 1);
    CHECK(small.shards()[0].name() == "small");
    CHECK(strategy.make_variable("whole", counting()).extents() == shape{10, 2});
    CHECK(strategy.variables().size() == 4);
  }

  TEST_CASE("shards of a strategy have the options that were asked for") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world,
                                       {.variable_partitioner = fixed_shards_partitioner(2)}};
    static_cast<void>(strategy.make_sharded_variable("table", counting(), {.trainable = false}));
    CHECK(strategy.variables().size() == 2);
    CHECK(strategy.trainable_variables().empty());
  }

  TEST_CASE("one text makes one piece under a strategy that does not cut") {
    auto world = world::virtual_time();
    parameter_server_strategy plain{world};
    CHECK(plain.make_sharded_variable("table", counting()).shards().size() == 1);
    mirrored_strategy mirrored{world, {.devices = cpu_devices(2)}};
    CHECK(mirrored.make_sharded_variable("table", counting()).shards().size() == 1);
  }

  TEST_CASE("a partitioner that makes no sense is refused, and so is a scalar") {
    auto world = world::virtual_time();
    auto refused = [&](partitioner how, const tensor& initial) {
      parameter_server_strategy strategy{world, {.variable_partitioner = std::move(how)}};
      return refusal_of(
        [&] { static_cast<void>(strategy.make_sharded_variable("table", initial)); });
    };
    auto columns = [](const shape&, dtype) { return std::vector<int64_t>{1, 2}; };
    CHECK(refused(columns, counting()).message
          == "the partitioner cuts 'table' along another axis than the first, which is not "
             "possible");
    CHECK(refused(fixed_shards_partitioner(2), zeros({})).message
          == "variable 'table' is a scalar, which has no rows to share out: make it by "
             "make_variable");
    auto many = [](const shape&, dtype) { return std::vector<int64_t>{11, 1}; };
    CHECK(refused(many, counting()).code == errc::invalid_argument);
  }

  TEST_CASE("a table that is not cut is a variable of its own name") {
    stage one;
    for (const auto& [name, cut] :
         {std::pair{"whole", fixed_shards_partitioner(1)}, {"uncut", partitioner{}}}) {
      auto whole = sharded_variable::make(one.strategy, name, counting(), cut);
      REQUIRE(whole.shards().size() == 1);
      CHECK(whole.shards()[0].name() == name);
    }
  }

  TEST_CASE("changes are cut by rows") {
    stage one;
    one.run([table = one.table](closure_context& context) {
      return table.assign(context, counting(100));
    });
    CHECK(one.all() == numbers_of(counting(100)));
    one.run([table = one.table](closure_context& context) {
      return table.assign_sub(context, counting());
    });
    CHECK(one.all() == numbers(20, 100));
    one.run([table = one.table](closure_context& context) {
      return table.assign_add(context, counting());
    });
    CHECK(one.all() == numbers_of(counting(100)));
    CHECK(refusal_of([&] {
            static_cast<void>(one.run([table = one.table](closure_context& context) {
              return table.assign(context, array({2, 2}, {1, 2, 3, 4}));
            }));
          }).code
          == errc::invalid_argument);
  }

  TEST_CASE("rows are found by their numbers in the whole, in any order and repeatedly") {
    stage one;
    CHECK(one.found({9, 0, 4, 3, 9}) == numbers{9, 9.5, 0, 0.5, 4, 4.5, 3, 3.5, 9, 9.5});
    CHECK(one.found({}).empty());
    CHECK(one.refusal({10}).code == errc::out_of_range);
    CHECK(one.refusal({-1}).code == errc::out_of_range);
  }

  TEST_CASE("a single row may be counted from the end") {
    stage one;
    auto row = [&](int64_t index) {
      return one.run(
        [table = one.table, index](closure_context& context) { return table.row(context, index); });
    };
    CHECK(numbers_of(row(-1)) == numbers{9, 9.5});
    CHECK(row(3).extents() == shape{2});
    CHECK(refusal_of([&] { static_cast<void>(row(10)); }).code == errc::out_of_range);
    auto refused = refusal_of([&] { static_cast<void>(row(-11)); }).message;
    CHECK(refused.find("row -11 of '") != std::string::npos);
  }

  TEST_CASE("slices are those of Python") {
    using list = std::vector<int64_t>;
    CHECK(slice_numbers(5, {}, {}, 1) == list{0, 1, 2, 3, 4});
    CHECK(slice_numbers(5, {}, {}, -1) == list{4, 3, 2, 1, 0});
    CHECK(slice_numbers(5, 1, -1, 1) == list{1, 2, 3});
    CHECK(slice_numbers(5, -100, 100, 2) == list{0, 2, 4});
    CHECK(slice_numbers(5, 100, -100, -2) == list{4, 2, 0});
    CHECK(slice_numbers(5, 3, 1, 1).empty());
    CHECK(slice_numbers(0, {}, {}, -1).empty());
    CHECK(slice_numbers(5, 1, {}, INT64_MAX) == list{1});
    CHECK(slice_numbers(5, 3, {}, INT64_MIN) == list{3});
    CHECK(refusal_of([] { static_cast<void>(slice_numbers(5, {}, {}, 0)); }).code
          == errc::invalid_argument);
    stage one;
    auto backwards = one.run(
      [table = one.table](closure_context& context) { return table.slice(context, {}, 2, -3); });
    CHECK(numbers_of(backwards) == numbers{9, 9.5, 6, 6.5, 3, 3.5});
  }

  TEST_CASE("gradients of the whole are applied to the shards, dense and by rows") {
    stage one;
    optimizer descent{rules::sgd{.learning_rate = 1}};
    auto apply = [&](const gradient& by) {
      one.run([table = one.table, descent, by](closure_context& context) -> task<void> {
        auto applying = descent.apply_gradients(context, table.split(by));
        co_await applying;
      });
    };
    apply(counting());
    CHECK(one.all() == numbers(20, 0));
    tensor rows{rows_to_find({9, 0, 5})};
    auto slices = indexed_slices{rows, array({3, 2}, {1, 2, 3, 4, 5, 6}), {10, 2}};
    CHECK(one.table.split(slices).size() == 3);
    apply(slices);
    CHECK(one.found({0, 5, 9, 1}) == numbers{-3, -4, -5, -6, -1, -2, 0, 0});
    apply(indexed_slices{array({1}, {9}, dtype::i32), array({1, 2}, {-1, -2}), {}});
    CHECK(one.found({9}) == numbers{0, 0});
  }

  TEST_CASE("a shard without rows in a gradient is updated with the others") {
    stage one;
    auto of_one_row = indexed_slices{rows_to_find({9}), array({1, 2}, {1, 2}), {10, 2}};
    auto parts = one.table.split(of_one_row);
    REQUIRE(parts.size() == 3);
    CHECK(std::get<indexed_slices>(parts[0].gradient).values.extents() == shape{0, 2});
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {.devices = cpu_devices(2)}};
    auto table = sharded_variable::make(strategy, "table", counting(), fixed_shards_partitioner(3));
    optimizer momentum{rules::momentum{.learning_rate = 1, .decay = 0.5}};
    auto step = [&](replica_context& context) -> task<void> {
      auto row = context.replica_id_in_sync_group() == 0 ? 0 : 9;
      indexed_slices own{rows_to_find({static_cast<double>(row)}), array({1, 2}, {1, 2}), {10, 2}};
      auto gradients = table.split(own);
      auto applying = momentum.apply_gradients(context, std::move(gradients));
      co_await applying;
    };
    strategy.run(step);
    strategy.run(step);
    CHECK(numbers_of(strategy.read(table.shards()[0]))
          == numbers{-2.5, -4.5, 1, 1.5, 2, 2.5, 3, 3.5});
    CHECK(numbers_of(strategy.read(table.shards()[1])) == numbers{4, 4.5, 5, 5.5, 6, 6.5});
  }

  TEST_CASE("a gradient of rows that are not found is not cut") {
    stage one;
    auto refused = [&](tensor rows, const numbers& values) {
      auto count = static_cast<int64_t>(values.size() / 2);
      indexed_slices of{std::move(rows), array({count, 2}, values), {10, 2}};
      return refusal_of([&] { static_cast<void>(one.table.split(of)); });
    };
    CHECK(refused(array({1}, {9}), {1, 2})
          == error{errc::type_mismatch,
                   "rows of 'table/part_0' are found by a list of i64, not f32 of shape [1]"});
    CHECK(refused(rows_to_find({9}), {1, 2, 3, 4})
          == error{errc::invalid_argument, "a gradient of 'table' has 1 row numbers, but 2 rows"});
    CHECK(refused(rows_to_find({10}), {1, 2}).code == errc::out_of_range);
    indexed_slices of_another{rows_to_find({9}), array({1, 2}, {1, 2}), {12, 2}};
    CHECK(refusal_of([&] { static_cast<void>(one.table.split(of_another)); })
          == error{errc::invalid_argument, "a gradient of 'table/part_0' and the shards behind it: "
                                           "shape [12, 2] is not [10, 2]"});
  }

  TEST_CASE("a table is saved as one array, and goes on in another number of shards") {
    for (auto [before, after] : {std::pair{4, 1}, {1, 4}, {4, 2}, {3, 3}}) {
      CAPTURE(before);
      CAPTURE(after);
      scratch_folder folder;
      exponential_moving_average averages{0.5};
      update_plan plan{.rule = rules::momentum{.learning_rate = 1, .decay = 0.5},
                       .average = averages.settings()};
      optimizer momentum{plan};
      stage saved{before};
      descend(saved, momentum);
      save_checkpoint(saved.strategy, folder.path(), 1, std::span{&saved.table, 1});
      stage resumed{after};
      CHECK(restore_checkpoint(resumed.strategy, folder.path(), std::span{&resumed.table, 1}) == 1);
      CHECK(resumed.strategy.extended().deferred().names().empty());
      CHECK(resumed.all() == numbers_of(counting(-1)));
      CHECK(resumed.averages(averages) == numbers_of(counting(-0.5)));
      optimizer same{plan};
      descend(resumed, same);
      CHECK(resumed.all() == numbers_of(counting(-2.5))); // the velocity was saved, too
      CHECK(resumed.averages(averages) == numbers_of(counting(-1.5)));
    }
  }

  TEST_CASE(
    "a table that is made after the restore begins with its rows, in any number of shards") {
    for (auto [before, after] : {std::pair{4, 1}, {1, 4}, {4, 2}, {3, 3}}) {
      CAPTURE(before);
      CAPTURE(after);
      scratch_folder folder;
      optimizer momentum{rules::momentum{.learning_rate = 1, .decay = 0.5}};
      stage saved{before};
      descend(saved, momentum);
      save_checkpoint(saved.strategy, folder.path(), 1, std::span{&saved.table, 1});
      stage resumed{after, folder.path()};
      CHECK(resumed.step == 1);
      CHECK(resumed.strategy.extended().deferred().names().empty());
      CHECK(resumed.all() == numbers_of(counting(-1)));
      optimizer same{rules::momentum{.learning_rate = 1, .decay = 0.5}};
      descend(resumed, same);
      CHECK(resumed.all() == numbers_of(counting(-2.5))); // the velocity was saved, too
    }
  }

  TEST_CASE("shards that were saved one by one are restored so, before or after they are made") {
    scratch_folder folder;
    stage saved;
    saved.run([table = saved.table](closure_context& context) {
      return table.assign(context, counting(100));
    });
    save_checkpoint(saved.strategy, folder.path(), 1);
    stage before{3, folder.path()};
    CHECK(before.all() == numbers_of(counting(100)));
    stage after;
    CHECK(restore_checkpoint(after.strategy, folder.path()) == 1);
    CHECK(after.all() == numbers_of(counting(100)));
  }

  TEST_CASE("a table that is made in another shape than was restored before is refused") {
    scratch_folder folder;
    stage saved;
    save_checkpoint(saved.strategy, folder.path(), 1, std::span{&saved.table, 1});
    parameter_server_strategy other{saved.made};
    CHECK(restore_checkpoint(other, folder.path()) == 1);
    auto refused = [&](int64_t shards) {
      return refusal_of([&] {
        static_cast<void>(
          sharded_variable::make(other, "table", zeros({9, 2}), fixed_shards_partitioner(shards)));
      });
    };
    for (auto shards : {1, 2})
      CHECK(refused(shards)
            == error{errc::invalid_argument,
                     "variable 'table' is made with shape [9, 2], but the checkpoint of step 1, "
                     "which was restored before, has it with [10, 2]; make it as it was saved, or "
                     "under another name"});
    CHECK(other.variables().empty());
  }

  TEST_CASE("a table of another shape is not restored") {
    scratch_folder folder;
    stage one;
    save_checkpoint(one.strategy, folder.path(), 1, std::span{&one.table, 1});
    parameter_server_strategy other{one.made};
    auto table = sharded_variable::make(other, "table", zeros({9, 2}), fixed_shards_partitioner(2));
    auto reason = refusal_of([&] {
      static_cast<void>(restore_checkpoint(other, folder.path(), std::span{&table, 1}));
    });
    CHECK(reason.code == errc::invalid_argument);
  }

  TEST_CASE("shards that do not belong together are refused") {
    stage one;
    auto make = [&](const char* name, shape extents, dtype type = dtype::f32) {
      return one.strategy.make_variable(name, zeros(std::move(extents), type));
    };
    auto first = make("a", {2, 3});
    auto line = [](std::vector<variable> shards) {
      return refusal_of([&] { sharded_variable{std::move(shards)}; }).message;
    };
    CHECK(line({}).starts_with("Expected a list of"));
    CHECK(line({first, make("b", {1, 3}, dtype::f64)}).find("must have the same dtype")
          != std::string::npos);
    CHECK(line({first, make("c", {2, 4})}).find("the same shapes except") != std::string::npos);
    CHECK(line({first, make("d", {5, 3})}).empty());
    CHECK(line({make("e", {})}).find("scalar") != std::string::npos);
  }

  TEST_CASE("shards of a table are one only all together, and in order") {
    stage one;
    auto plain = one.strategy.make_variable("plain", zeros({2, 2}));
    auto other
      = sharded_variable::make(one.strategy, "other", counting(), fixed_shards_partitioner(2));
    auto parts = one.table.shards();
    auto line = [](std::vector<variable> shards) {
      return refusal_of([&] { sharded_variable{std::move(shards)}; }).message;
    };
    CHECK(sharded_variable{{parts.begin(), parts.end()}}.name() == "table");
    CHECK(line({parts[0], parts[1]})
          == "'table' has more than these 2 shards; give all of them, in order");
    CHECK(line({plain, parts[1]})
          == "'table/part_1' cannot be shard 1 of 'plain': it is cut from a table; give all shards "
             "of that, in order, or variables of their own");
    for (const auto& shards : {std::vector{parts[1]},
                               {parts[0], parts[2], parts[1]},
                               {parts[0], other.shards()[1]},
                               {parts[0], plain}})
      CHECK(!line(shards).empty());
  }

  TEST_CASE("a partitioner that cuts elsewhere than rows, or too often, is refused") {
    stage one;
    auto refused = [&](std::vector<int64_t> partitions) {
      return refusal_of([&] {
               static_cast<void>(sharded_variable::make(
                 one.strategy, "x", counting(), [&](const shape&, dtype) { return partitions; }));
             }).code
             == errc::invalid_argument;
    };
    CHECK(refused({1, 2}));
    CHECK(refused({11, 1}));
    CHECK(refused({0, 1}));
    CHECK(refused({2}));
  }
}

} // namespace sharded_variable_test
