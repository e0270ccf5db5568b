// SPDX-License-Identifier: Apache-2.0
// Goal: a gradient that does not fit its variable never gets further than the accumulator, and the
// line names the variable and says what is wrong. Method: every rule, broken one at a time.
#include "actors/training/gradient_check.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"

namespace gradient_check_test {

using namespace troupe;

namespace {

const variable_form matrix{"w", dtype::f32, {4, 3}};
const variable_form scalar{"bias", dtype::f64, {}};

tensor row_numbers(const std::vector<int64_t>& rows) {
  tensor result{dtype::i64, {static_cast<int64_t>(rows.size())}};
  std::copy(rows.begin(), rows.end(), result.mutable_values<int64_t>().begin());
  return result;
}

/// Rows of `matrix`, which the gradient is made for unless `values` or `whole` say otherwise.
indexed_slices slices(const std::vector<int64_t>& rows) {
  auto count = static_cast<int64_t>(rows.size());
  return {row_numbers(rows), zeros({count, 3}), {4, 3}};
}

expected<void> check(const variable_form& variable, const gradient& gradient) {
  auto push = make_push_gradient({}, gradient);
  return check_gradient(variable, push.reader().getGradient());
}

void refuses(const variable_form& variable, const gradient& gradient, errc code,
             const std::string& line) {
  auto fits = check(variable, gradient);
  REQUIRE_FALSE(fits);
  CHECK(fits.error().code == code);
  CHECK(fits.error().message == line);
}

} // namespace

TEST_SUITE("actors/training/gradient_check") {
  TEST_CASE("a dense gradient of the variable's shape and dtype fits") {
    CHECK(check(matrix, zeros({4, 3})));
    CHECK(check(scalar, zeros({}, dtype::f64)));
    CHECK(check({"empty", dtype::f32, {0, 3}}, zeros({0, 3})));
  }

  TEST_CASE("a dense gradient of another shape is refused") {
    for (const auto& [extents, text] : {std::pair{shape{3, 4}, "[3, 4]"},
                                        {shape{4, 2}, "[4, 2]"},
                                        {shape{5, 3}, "[5, 3]"},
                                        {shape{12}, "[12]"},
                                        {shape{}, "[]"},
                                        {shape{4, 3, 1}, "[4, 3, 1]"}})
      refuses(matrix, zeros(extents), errc::invalid_argument,
              std::string{"Shape mismatch: variable 'w' has shape [4, 3], its gradient's is "}
                + text);
    refuses(scalar, zeros({1}, dtype::f64), errc::invalid_argument,
            "Shape mismatch: variable 'bias' has shape [], its gradient's is [1]");
  }

  TEST_CASE("a dense gradient of another dtype is refused") {
    for (auto type : {dtype::f64, dtype::f16, dtype::bf16, dtype::i32, dtype::i64})
      refuses(matrix, zeros({4, 3}, type), errc::type_mismatch,
              "variable 'w' is f32, its gradient " + std::string{to_string(type)});
  }

  TEST_CASE("rows of the variable fit, in any order, any number of times, none of them too") {
    for (const auto& rows : {std::vector<int64_t>{0}, {3, 1}, {2, 2, 2}, {0, 1, 2, 3, 0}, {}})
      CHECK(check(matrix, slices(rows)));
  }

  TEST_CASE("rows of a vector are single numbers") {
    variable_form vector{"v", dtype::f32, {5}};
    CHECK(check(vector, indexed_slices{row_numbers({4}), zeros({1}), {5}}));
    refuses(vector, indexed_slices{row_numbers({4}), zeros({1, 1}), {5}}, errc::invalid_argument,
            "Shape mismatch: variable 'v' has shape [5], its gradient's rows are [1, 1]");
  }

  TEST_CASE("rows of something of another shape are refused") {
    auto wrong = slices({1});
    wrong.dense_extents = {5, 3};
    refuses(matrix, wrong, errc::invalid_argument,
            "Shape mismatch: variable 'w' has shape [4, 3], its gradient's dense shape is [5, 3]");
    wrong.dense_extents = {4};
    refuses(matrix, wrong, errc::invalid_argument,
            "Shape mismatch: variable 'w' has shape [4, 3], its gradient's dense shape is [4]");
  }

  TEST_CASE("rows of another width are refused") {
    auto wrong = slices({1, 2});
    wrong.values = zeros({2, 2});
    refuses(matrix, wrong, errc::invalid_argument,
            "Shape mismatch: variable 'w' has shape [4, 3], its gradient's rows are [2, 2]");
    wrong.values = zeros({2, 3, 1});
    refuses(matrix, wrong, errc::invalid_argument,
            "Shape mismatch: variable 'w' has shape [4, 3], its gradient's rows are [2, 3, 1]");
  }

  TEST_CASE("rows of another dtype are refused") {
    auto wrong = slices({1});
    wrong.values = zeros({1, 3}, dtype::f16);
    refuses(matrix, wrong, errc::type_mismatch, "variable 'w' is f32, its gradient f16");
  }

  TEST_CASE("a row beyond the variable is refused") {
    refuses(matrix, slices({0, 4, 9}), errc::invalid_argument,
            "variable 'w': index of slice 1 exceeded limits of shape; index is 4 exceeded 4");
    refuses(matrix, slices({3, -1}), errc::invalid_argument,
            "variable 'w': index of slice 1 exceeded limits of shape; index is -1 exceeded 4");
  }

  TEST_CASE("row numbers of another kind than i64 are refused") {
    auto wrong = slices({1, 2});
    wrong.indices = zeros({2}, dtype::i32);
    refuses(matrix, wrong, errc::type_mismatch,
            "variable 'w': the row numbers of its gradient are i32, not i64");
    wrong.indices = zeros({2, 1}, dtype::i64);
    refuses(matrix, wrong, errc::invalid_argument,
            "variable 'w': Input indices should be vector but received shape: [2, 1]");
  }

  TEST_CASE("another number of rows than of row numbers is refused") {
    auto wrong = slices({1, 2});
    for (int64_t count : {0, 1, 3}) {
      wrong.values = zeros({count, 3});
      refuses(matrix, wrong, errc::invalid_argument,
              "variable 'w': Expected 2 non-empty input values, got " + std::to_string(count));
    }
  }

  TEST_CASE("a scalar has no rows") {
    refuses(scalar, indexed_slices{row_numbers({0}), zeros({1}, dtype::f64), {}},
            errc::invalid_argument,
            "variable 'bias' is a scalar, which has no rows; give its gradient as a tensor");
  }

  TEST_CASE("no gradient is no gradient") {
    auto push = make_push_gradient({}, optional_gradient{});
    auto fits = check_gradient(matrix, push.reader().getGradient());
    REQUIRE_FALSE(fits);
    CHECK(fits.error().code == errc::invalid_argument);
    CHECK(fits.error().message
          == "the gradient of variable 'w' is none; push only what the loss depends on");
  }
}

} // namespace gradient_check_test
