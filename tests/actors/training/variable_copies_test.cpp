// SPDX-License-Identifier: Apache-2.0
// Goal: copies are one array as long as no reader can see a difference, and every rule of reading,
// writing and saving them holds. Method: one table of rules, numbers by hand.
#include "actors/gpu/cpu_device.hpp"
#include "actors/training/variable_copies.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"
#include "tests/kernels/updates/own_rules.hpp"
#include "tests/small_arrays.hpp"

#include <cmath>

namespace variable_copies_test {

using namespace troupe;
using namespace troupe::test;

namespace {

variable_copies copies_of(copy_rule rule, uint32_t count = 3, const tensor& initial = scalar(6)) {
  return {{"w", count, rule}, initial};
}

numbers read(const variable_copies& copies, int32_t component = whole_variable) {
  return numbers_of(copies.read(component).value());
}

numbers all_of(const variable_copies& copies, int32_t count = 3) {
  numbers values;
  for (int32_t i = 0; i < count; ++i)
    values.push_back(read(copies, i)[0]);
  return values;
}

void change_one(variable_copies& copies, int32_t component, change how, const gradient& operand) {
  REQUIRE(copies.apply(component, how, operand).has_value());
}

error refusal(variable_copies& copies, int32_t component, change how, const gradient& operand) {
  auto result = copies.apply(component, how, operand);
  return result ? error{} : result.error();
}

} // namespace

TEST_SUITE("actors/training/variable_copies") {
  TEST_CASE("copies begin as one array") {
    auto copies = copies_of(copy_rule::alike);
    CHECK(copies.are_together());
    CHECK(all_of(copies) == numbers{6, 6, 6});
    CHECK(copies.read(0)->data() == copies.read(2)->data());
  }

  TEST_CASE("a change of one copy is seen in that copy only") {
    auto copies = copies_of(copy_rule::alike);
    change_one(copies, 1, change::add, scalar(1));
    CHECK(!copies.are_together());
    CHECK(all_of(copies) == numbers{6, 7, 6});
    CHECK(read(copies) == numbers{6});
  }

  TEST_CASE("copies that have become equal again are one array again") {
    auto copies = copies_of(copy_rule::alike);
    for (int32_t i = 0; i < 3; ++i) {
      change_one(copies, i, change::add, scalar(1));
      CHECK(copies.are_together() == (i == 2));
    }
    CHECK(all_of(copies) == numbers{7, 7, 7});
  }

  TEST_CASE("a change that changes nothing leaves copies together") {
    auto copies = copies_of(copy_rule::alike);
    change_one(copies, 1, change::add, scalar(0));
    CHECK(copies.are_together());
  }

  TEST_CASE("an assignment to all brings copies together, a change of all changes each") {
    auto copies = copies_of(copy_rule::alike);
    change_one(copies, 1, change::add, scalar(1));
    change_one(copies, whole_variable, change::add, scalar(10));
    CHECK(all_of(copies) == numbers{16, 17, 16});
    change_one(copies, whole_variable, change::assign, scalar(2));
    CHECK(copies.are_together());
    CHECK(all_of(copies) == numbers{2, 2, 2});
  }

  TEST_CASE("copies with slots come together when the slots are equal, too") {
    auto copies = copies_of(copy_rule::alike, 2, scalar(4));
    update_plan plan{.rule = rules::momentum{.learning_rate = 1, .decay = 0.5}};
    REQUIRE(copies.prepare(plan));
    std::vector<gradient> gradients{scalar(1)};
    change_one(copies, 0, change::add, scalar(1));
    REQUIRE(copies.update(plan, {gradients}));
    CHECK(all_of(copies, 2) == numbers{4, 3});
    CHECK(!copies.are_together());
    change_one(copies, whole_variable, change::assign, scalar(2));
    CHECK(copies.are_together());
    REQUIRE(copies.update(plan, {gradients}));
    CHECK(all_of(copies, 2) == numbers{0.5, 0.5});
  }

  TEST_CASE("copies whose slots differ stay apart though their values are equal") {
    auto copies = copies_of(copy_rule::alike, 2, scalar(4));
    update_plan plan{.rule = rules::momentum{.learning_rate = 1, .weight_decay = 0.5}};
    REQUIRE(copies.prepare(plan));
    change_one(copies, 0, change::add, scalar(2));
    std::vector<gradient> gradients{scalar(1)};
    REQUIRE(copies.update(plan, {gradients}));
    change_one(copies, whole_variable, change::assign, scalar(2));
    CHECK(all_of(copies, 2) == numbers{2, 2});
    CHECK(!copies.are_together());
  }

  TEST_CASE("empty copies are always together") {
    auto copies = copies_of(copy_rule::alike, 2, array({0}, {}));
    change_one(copies, 1, change::assign, array({0}, {}));
    CHECK(copies.are_together());
  }

  TEST_CASE("the reader of a copy keeps what it read") {
    auto copies = copies_of(copy_rule::alike);
    auto before = copies.read(1).value();
    change_one(copies, 1, change::assign, scalar(0));
    CHECK(numbers_of(before) == numbers{6});
  }

  TEST_CASE("copies that are kept apart are read as their rule says") {
    const std::pair<copy_rule, double> rules[]
      = {{copy_rule::sum, 21}, {copy_rule::mean, 7}, {copy_rule::first_replica, 6}};
    for (auto [rule, expected] : rules) {
      auto copies = copies_of(rule);
      change_one(copies, 2, change::add, scalar(3));
      CHECK(read(copies) == numbers{expected});
      CHECK(all_of(copies) == numbers{6, 6, 9});
    }
  }

  TEST_CASE("the initial value is not divided: a sum of three reads three times it") {
    CHECK(read(copies_of(copy_rule::sum)) == numbers{18});
    CHECK(read(copies_of(copy_rule::sum, 1)) == numbers{6});
    CHECK(read(copies_of(copy_rule::mean)) == numbers{6});
  }

  TEST_CASE("an assignment to all shares out a sum, and otherwise goes to each copy") {
    for (auto [rule, each, whole] : {std::tuple{copy_rule::sum, 3.0, 9.0},
                                     {copy_rule::mean, 9.0, 9.0},
                                     {copy_rule::first_replica, 9.0, 9.0}}) {
      auto copies = copies_of(rule);
      change_one(copies, 1, change::add, scalar(1));
      change_one(copies, whole_variable, change::assign, scalar(9));
      CHECK(all_of(copies) == numbers{each, each, each});
      CHECK(read(copies) == numbers{whole});
    }
  }

  TEST_CASE("an integer that is shared out is cut") {
    auto copies = copies_of(copy_rule::sum, 3, scalar(0, dtype::i32));
    change_one(copies, whole_variable, change::assign, scalar(10, dtype::i32));
    CHECK(all_of(copies) == numbers{3, 3, 3});
    CHECK(read(copies) == numbers{9});
  }

  TEST_CASE("adding to all copies of a sum is refused, to others it adds to each") {
    auto sum = copies_of(copy_rule::sum);
    for (auto how : {change::add, change::subtract})
      CHECK(refusal(sum, whole_variable, how, scalar(1))
            == error{errc::invalid_argument,
                     "SyncOnReadVariable does not support `" + std::string{name_of_assign(how)}
                       + "` in cross-replica context when aggregation is set to SUM: variable 'w'; "
                         "assign the new sum"});
    CHECK(all_of(sum) == numbers{6, 6, 6});
    for (auto rule : {copy_rule::mean, copy_rule::first_replica}) {
      auto copies = copies_of(rule);
      change_one(copies, whole_variable, change::add, scalar(1));
      CHECK(all_of(copies) == numbers{7, 7, 7});
    }
  }

  TEST_CASE("a sum with one copy may be added to") {
    auto alone = copies_of(copy_rule::sum, 1);
    change_one(alone, whole_variable, change::add, scalar(1));
    CHECK(read(alone) == numbers{7});
  }

  TEST_CASE("copies without aggregation are neither read nor changed as one") {
    auto copies = copies_of(copy_rule::none);
    CHECK(copies.read(whole_variable).error()
          == error{errc::invalid_argument,
                   "Could not convert from `tf.VariableAggregation` NONE to a reduction: variable "
                   "'w' is synchronised on read and has no aggregation; read it inside a replica, "
                   "or make it with one"});
    CHECK(refusal(copies, whole_variable, change::assign, scalar(1))
          == error{errc::invalid_argument, "variable 'w' is synchronised on read and has no "
                                           "aggregation; assign it inside a replica"});
    change_one(copies, 1, change::assign, scalar(1));
    CHECK(all_of(copies) == numbers{6, 1, 6});
  }

  TEST_CASE("copies that are kept apart take no scatters") {
    for (auto rule : {copy_rule::sum, copy_rule::mean, copy_rule::first_replica, copy_rule::none})
      for (auto component : {whole_variable, 0}) {
        auto copies = copies_of(rule, 3, array({2, 1}, {1, 2}));
        CHECK(refusal(copies, component, change::add, rows_of({0}, {1}, 2))
              == error{errc::unimplemented, "variable 'w' is synchronised on read, which does not "
                                            "go together with scatter_add"});
      }
  }

  TEST_CASE("a scatter into all copies or one") {
    auto copies = copies_of(copy_rule::alike, 2, array({2, 1}, {1, 2}));
    change_one(copies, whole_variable, change::add, rows_of({1, 1}, {10, 100}, 2));
    change_one(copies, 1, change::assign, rows_of({0}, {7}, 2));
    CHECK(read(copies, 0) == numbers{1, 112});
    CHECK(read(copies, 1) == numbers{7, 112});
  }

  TEST_CASE("a copy that there is not is refused") {
    auto copies = copies_of(copy_rule::alike);
    for (auto component : {3, -2, 1000000}) {
      error expected{errc::out_of_range,
                     "variable 'w' has 3 copies, and no copy " + std::to_string(component)};
      CHECK(copies.read(component).error() == expected);
      CHECK(refusal(copies, component, change::assign, scalar(1)) == expected);
      CHECK(!copies.has(component));
    }
  }

  TEST_CASE("a change that fails names the variable and changes nothing") {
    auto copies = copies_of(copy_rule::alike, 2, scalar(6, dtype::i32));
    change_one(copies, 1, change::add, scalar(1, dtype::i32));
    CHECK(
      refusal(copies, whole_variable, change::divide, scalar(0, dtype::i32))
      == error{errc::invalid_argument, "variable 'w': an integer variable cannot be divided by 0"});
    CHECK(refusal(copies, 0, change::add, scalar(1)).code == errc::type_mismatch);
    CHECK(all_of(copies, 2) == numbers{6, 7});
  }

  TEST_CASE("a checkpoint holds the value as a whole, and all copies go back to it") {
    for (auto [rule, saved, each] : {std::tuple{copy_rule::alike, 6.0, 6.0},
                                     {copy_rule::sum, 21.0, 7.0},
                                     {copy_rule::mean, 7.0, 7.0},
                                     {copy_rule::first_replica, 6.0, 6.0},
                                     {copy_rule::none, 6.0, 6.0}}) {
      auto copies = copies_of(rule);
      change_one(copies, 2, change::add, scalar(3));
      auto state = copies.saved().value();
      CHECK(numbers_of(state.value) == numbers{saved});
      change_one(copies, 0, change::assign, scalar(100));
      copies.restore(state);
      CHECK(all_of(copies) == numbers{each, each, each});
    }
  }

  TEST_CASE("a state saved by one copy is restored by three, and the other way round") {
    auto plain = copies_of(copy_rule::alike, 1);
    auto mirrored = copies_of(copy_rule::alike, 3, scalar(1));
    mirrored.restore(plain.saved().value());
    CHECK(all_of(mirrored) == numbers{6, 6, 6});
    auto sum = copies_of(copy_rule::sum, 2, scalar(5));
    auto alone = copies_of(copy_rule::sum, 1);
    alone.restore(sum.saved().value());
    CHECK(read(alone) == numbers{10});
    CHECK(read(alone, 0) == numbers{10});
  }

  TEST_CASE("a variable of a device lies there, with all that updates need, from the first on") {
    auto gpu = std::make_shared<cpu_device>(2, cpu_device_options{.plays_gpu = true});
    variable_copies copies{{.name = "w", .device = gpu}, array({2, 1}, {1, 2})};
    variable_copies here{{.name = "w"}, array({2, 1}, {1, 2})};
    CHECK(copies.where() == device{device_kind::cuda, 2});
    CHECK(read(copies) == numbers{1, 2});
    CHECK(gpu->bytes_in_use() == 0);
    const update_plan plan{.rule = rules::adam{}, .average = moving_average{}};
    for (auto* each : {&copies, &here}) {
      REQUIRE(each->prepare(plan));
      auto gradients = each->placed({array({2, 1}, {1, 1}), rows_of({0}, {3}, 2)}).value();
      const gradient_mean means[] = {{gradients}, {gradients, 1}};
      CHECK(each->squared_norms(means).value() == std::vector<double>{4 + 0.25, 16 + 1});
      REQUIRE(each->update(plan, {gradients}));
    }
    auto there = copies.saved().value(), expected = here.saved().value();
    for (size_t i = 0; i < arrays_of(expected).size(); ++i)
      CHECK(numbers_of(*arrays_of(there)[i]) == numbers_of(*arrays_of(expected)[i]));
    for (auto* array : arrays_of(copies.first()))
      CHECK(array->device() == copies.where());
    CHECK(there.version == 1);
  }

  TEST_CASE("a reader on the device keeps what it read there, and the host's copy is made once") {
    auto gpu = std::make_shared<cpu_device>(0, cpu_device_options{.plays_gpu = true});
    variable_copies copies{{.name = "w", .device = gpu}, array({1}, {1})};
    const update_plan plan{.rule = rules::sgd{.learning_rate = 1}};
    REQUIRE(copies.prepare(plan));
    auto seen = copies.read_in_place(0).value();
    auto update = [&] {
      auto gradients = copies.placed({array({1}, {1})}).value();
      REQUIRE(copies.update(plan, {gradients}));
    };
    update();
    CHECK(numbers_of(gpu->stream(0).to_host(seen).value()) == numbers{1});
    CHECK(read(copies) == numbers{0});
    CHECK(copies.read(whole_variable)->data() == copies.read(whole_variable)->data());
    seen = {};
    const auto* place = copies.first().value.data();
    update();
    CHECK(copies.first().value.data() == place); // nothing looks at the old version
    CHECK(read(copies) == numbers{-1});
  }

  TEST_CASE("a variable of a device is changed by hand, and restored") {
    auto gpu = std::make_shared<cpu_device>(0, cpu_device_options{.plays_gpu = true});
    variable_copies copies{{.name = "w", .device = gpu}, array({2, 1}, {1, 2})};
    change_one(copies, whole_variable, change::add, array({2, 1}, {1, 1}));
    change_one(copies, 0, change::assign, rows_of({1}, {7}, 2));
    CHECK(read(copies) == numbers{2, 7});
    CHECK(refusal(copies, 1, change::add, scalar(1)).code == errc::out_of_range);
    CHECK(refusal(copies, 0, change::add, array({3}, {1, 1, 1})).code == errc::invalid_argument);
    copies.restore({.value = array({2, 1}, {5, 6}), .version = 4});
    CHECK(read(copies) == numbers{5, 6});
    CHECK(copies.read_in_place(0)->device() == copies.where());
  }

  TEST_CASE("copies on a device are apart while they differ, and each is read where it lies") {
    auto gpu = std::make_shared<cpu_device>(0, cpu_device_options{.plays_gpu = true});
    variable_copies copies{{.name = "w", .count = 3, .device = gpu}, scalar(6)};
    REQUIRE(copies.prepare({.rule = rules::momentum{.learning_rate = 1}}));
    change_one(copies, 1, change::add, scalar(0));
    CHECK(copies.are_together());
    CHECK(refusal(copies, 1, change::add, array({2}, {1, 1})).code == errc::invalid_argument);
    CHECK(copies.are_together());
    for (int32_t i = 0; i < 3; ++i) {
      change_one(copies, i, change::add, scalar(1));
      CHECK(copies.are_together() == (i == 2));
      CHECK(all_of(copies) == numbers{7, i > 0 ? 7.0 : 6.0, i > 1 ? 7.0 : 6.0});
    }
    change_one(copies, 1, change::assign, scalar(10));
    change_one(copies, whole_variable, change::multiply, scalar(2));
    CHECK(all_of(copies) == numbers{14, 20, 14});
    CHECK(read(copies) == numbers{14});
    auto gradients = copies.placed({scalar(1)}).value();
    REQUIRE(copies.update({.rule = rules::momentum{.learning_rate = 1}}, {gradients}));
    CHECK(all_of(copies) == numbers{13, 19, 13});
    auto there = copies.read_in_place(1).value();
    CHECK(there.device() == copies.where());
    CHECK(numbers_of(gpu->stream(0).to_host(there).value()) == numbers{19});
    copies.restore({.value = scalar(5)});
    CHECK(copies.are_together());
    CHECK(all_of(copies) == numbers{5, 5, 5});
  }

  TEST_CASE("an update that fails does not count") {
    auto copies = copies_of(copy_rule::alike, 1);
    const update_plan plan{.rule = custom_rule(own_careful_descent{})};
    REQUIRE(copies.prepare(plan));
    const gradient no_number[] = {scalar(std::nan(""))}, number[] = {scalar(2)};
    CHECK_THROWS_AS(static_cast<void>(copies.update(plan, {no_number})), std::domain_error);
    CHECK(copies.first().version == 0);
    REQUIRE(copies.update(plan, {number}));
    CHECK(copies.first().version == 1);
    CHECK(read(copies) == numbers{5});
  }

  TEST_CASE("a device without room for a variable says so, and the variable stays as it was") {
    auto gpu
      = std::make_shared<cpu_device>(0, cpu_device_options{.plays_gpu = true, .bytes_max = 4});
    variable_copies copies{{.name = "w", .device = gpu}, array({2}, {1, 2})};
    CHECK(copies.prepare({.rule = rules::sgd{}}).error().code == errc::resource);
    CHECK(copies.read_in_place(0).error().code == errc::resource);
    CHECK(read(copies) == numbers{1, 2});
  }
}

} // namespace variable_copies_test
