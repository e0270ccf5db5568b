// SPDX-License-Identifier: Apache-2.0
// Goal: changes by hand do to each element what their name says, in every dtype. Method: numbers by
// hand, the bounds of integers, operands that do not fit.
#include "kernels/tensor/change.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"

#include <cmath>
#include <limits>

namespace change_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const std::pair<change, numbers> results_of_7_and_minus_2[] = {
  {change::assign, {-2, -2}},    {change::add, {5, -9}},      {change::subtract, {9, -5}},
  {change::multiply, {-14, 14}}, {change::minimum, {-2, -7}}, {change::maximum, {7, -2}},
};

const dtype all_types[] = {dtype::f32, dtype::f64, dtype::i32, dtype::i64};

numbers changed_numbers(const tensor& value, change how, const tensor& operand) {
  return numbers_of(changed(value, how, operand).value());
}

template <class T>
T changed_one(const tensor& value, change how, const tensor& operand) {
  tensor result = changed(value, how, operand).value();
  return result.values<T>()[0];
}

} // namespace

TEST_SUITE("kernels/tensor/change") {
  TEST_CASE("each change does what it is called, in every dtype") {
    for (auto type : all_types)
      for (const auto& [how, expected] : results_of_7_and_minus_2) {
        CAPTURE(name_of_assign(how));
        auto result = changed_numbers(array({2}, {7, -7}, type), how, array({2}, {-2, -2}, type));
        CHECK(result == expected);
      }
  }

  TEST_CASE("floating numbers are divided, integers are cut towards 0") {
    for (auto type : {dtype::f32, dtype::f64})
      CHECK(changed_numbers(array({2}, {7, -7}, type), change::divide, array({2}, {2, 2}, type))
            == numbers{3.5, -3.5});
    for (auto type : {dtype::i32, dtype::i64})
      CHECK(changed_numbers(array({2}, {7, -7}, type), change::divide, array({2}, {2, 2}, type))
            == numbers{3, -3});
  }

  TEST_CASE("floating numbers divided by 0 are infinite, integers are refused") {
    CHECK(changed_numbers(scalar(1), change::divide, scalar(0)) == numbers{INFINITY});
    for (auto type : {dtype::i32, dtype::i64}) {
      auto refused = changed(scalar(1, type), change::divide, scalar(0, type));
      CHECK(refused.error()
            == error{errc::invalid_argument, "an integer variable cannot be divided by 0"});
    }
  }

  TEST_CASE_TEMPLATE("integers wrap around where they overflow", T, int32_t, int64_t) {
    tensor least = zeros({}, dtype_of<T>);
    least.mutable_values<T>()[0] = std::numeric_limits<T>::min();
    auto one = scalar(1, dtype_of<T>), minus_one = scalar(-1, dtype_of<T>);
    CHECK(changed_one<T>(least, change::subtract, one) == std::numeric_limits<T>::max());
    CHECK(changed_one<T>(least, change::divide, minus_one) == std::numeric_limits<T>::min());
    CHECK(changed_one<T>(least, change::multiply, minus_one) == std::numeric_limits<T>::min());
  }

  TEST_CASE("the result has memory of its own, and the operands stay as they are") {
    auto value = array({2}, {1, 2}), operand = array({2}, {3, 4});
    auto assigned = changed(value, change::assign, operand).value();
    CHECK(assigned.data() != operand.data());
    CHECK(numbers_of(value) == numbers{1, 2});
    CHECK(numbers_of(operand) == numbers{3, 4});
  }

  TEST_CASE("an operand may be a view, and arrays may be empty") {
    auto turned = array({2, 2}, {1, 2, 3, 4}).transpose();
    CHECK(changed_numbers(array({2, 2}, {10, 20, 30, 40}), change::add, turned)
          == numbers{11, 23, 32, 44});
    CHECK(changed_numbers(array({0, 3}, {}), change::add, array({0, 3}, {})).empty());
  }

  TEST_CASE("operands of another dtype or shape are refused") {
    CHECK(changed(scalar(1), change::add, scalar(1, dtype::i32)).error()
          == error{errc::type_mismatch, "the variable is f32, the operand i32"});
    CHECK(changed(array({2}, {1, 2}), change::assign, array({1}, {1})).error()
          == error{errc::invalid_argument, "the variable has shape [2], the operand [1]"});
    CHECK(changed(zeros({1}, dtype::bf16), change::add, zeros({1}, dtype::bf16)).error().code
          == errc::type_mismatch);
  }

  TEST_CASE("a scatter changes the rows that are named, a repeated one as often") {
    auto value = array({3, 1}, {1, 2, 3});
    auto scatter = [&](change how, const numbers& operands) {
      return numbers_of(scattered(value, how, rows_of({2, 0, 2}, operands, 3)).value());
    };
    CHECK(scatter(change::assign, {7, 8, 9}) == numbers{8, 2, 9});
    CHECK(scatter(change::add, {7, 8, 9}) == numbers{9, 2, 19});
    CHECK(scatter(change::subtract, {7, 8, 9}) == numbers{-7, 2, -13});
    CHECK(scatter(change::multiply, {2, 3, 5}) == numbers{3, 2, 30});
    CHECK(scatter(change::divide, {2, 4, 2}) == numbers{0.25, 2, 0.75});
    CHECK(scatter(change::minimum, {2, 0, 1}) == numbers{0, 2, 1});
    CHECK(scatter(change::maximum, {2, 0, 9}) == numbers{1, 2, 9});
    CHECK(numbers_of(value) == numbers{1, 2, 3});
  }

  TEST_CASE("the smaller and the larger of a number and NaN are NaN") {
    for (auto how : {change::minimum, change::maximum}) {
      auto result = numbers_of(changed(array({2}, {1, NAN}), how, array({2}, {NAN, 1})).value());
      CHECK(std::isnan(result[0]));
      CHECK(std::isnan(result[1]));
    }
  }

  TEST_CASE("a scatter of integers cuts each quotient, and refuses 0") {
    auto value = array({2, 1}, {7, 9}, dtype::i64);
    auto halves = scattered(value, change::divide, rows_of({0, 0}, {2, 2}, 2, dtype::i64));
    CHECK(numbers_of(halves.value()) == numbers{1, 9});
    auto refused = scattered(value, change::divide, rows_of({1}, {0}, 2, dtype::i64));
    CHECK(refused.error().code == errc::invalid_argument);
  }

  TEST_CASE("a scatter of no rows changes nothing") {
    auto value = array({2, 1}, {7, 9});
    CHECK(numbers_of(scattered(value, change::add, rows_of({}, {}, 2)).value()) == numbers{7, 9});
  }

  TEST_CASE("rows that the variable does not have are refused") {
    auto value = array({2, 1}, {7, 9});
    for (auto row : {-1, 2}) {
      auto refused = scattered(value, change::add, rows_of({0, row}, {1, 1}, 2));
      std::string line = "a scatter into row ";
      line.append(std::to_string(row)).append("; the variable has 2");
      CHECK(refused.error() == error{errc::out_of_range, line});
    }
  }

  TEST_CASE("rows of another shape or dtype are refused, and so are scalars") {
    auto value = array({2, 1}, {7, 9});
    auto wide = rows_of({0}, {1}, 2);
    wide.values = array({1, 2}, {1, 2});
    CHECK(scattered(value, change::add, wide).error()
          == error{errc::invalid_argument, "a scatter of 1 rows takes values of shape [1, 1], not "
                                           "of shape [1, 2]"});
    CHECK(scattered(value, change::add, rows_of({0}, {1}, 2, dtype::f64)).error().code
          == errc::type_mismatch);
    CHECK(scattered(scalar(1), change::add, rows_of({0}, {1}, 2)).error().code
          == errc::invalid_argument);
    auto odd = rows_of({0}, {1}, 2);
    odd.indices = array({1}, {0}, dtype::i32);
    CHECK(scattered(value, change::add, odd).error().code == errc::invalid_argument);
  }

  TEST_CASE("an array is filled with a number, cut for integers") {
    CHECK(numbers_of(filled(dtype::f32, {2}, 1.5)) == numbers{1.5, 1.5});
    CHECK(numbers_of(filled(dtype::i32, {2}, -1.5)) == numbers{-1, -1});
    CHECK(numbers_of(filled(dtype::i64, {}, 3)) == numbers{3});
    CHECK(numbers_of(filled(dtype::f64, {0}, 3)).empty());
  }

  TEST_CASE("changes have the names of the users' calls") {
    CHECK(name_of_assign(change::assign) == "assign");
    CHECK(name_of_assign(change::subtract) == "assign_sub");
    CHECK(name_of_scatter(change::assign) == "scatter_update");
    CHECK(name_of_scatter(change::maximum) == "scatter_max");
  }
}

} // namespace change_test
