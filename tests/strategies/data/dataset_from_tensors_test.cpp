// SPDX-License-Identifier: Apache-2.0
// Goal: arrays in memory become rows as `make_numpy_dataset` makes them. Method: written out.
#include "strategies/data/dataset_from_tensors.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/data/numbers.hpp"
#include "tests/strategies/data/refusal.hpp"

namespace dataset_from_tensors_test {

TEST_SUITE("strategies/data/dataset_from_tensors") {
  using namespace troupe;
  using test::line_of;
  using test::numbers;

  TEST_CASE("an element holds a row of each array") {
    CHECK(line_of(make_dataset_from_tensors({numbers(6).reshape({3, 2}), numbers(3, 10)}))
          == "[0 1],10 [2 3],11 [4 5],12");
  }

  TEST_CASE("lists of arrays are stacked first") {
    CHECK(
      line_of(make_dataset_from_tensors({std::vector{numbers(2), numbers(2, 5)}, numbers(2, 9)}))
      == "[0 1],9 [5 6],10");
  }

  TEST_CASE("arrays are copied, so that they may change") {
    auto array = numbers(2);
    const auto rows = make_dataset_from_tensors({array});
    array.mutable_values<int64_t>()[0] = 7;
    CHECK(line_of(rows) == "0 1");
  }

  TEST_CASE("refuses arrays of different rows, and lists of different arrays") {
    CHECK(test::refusal([] {
            return make_dataset_from_tensors({numbers(2), numbers(3)});
          })
          == "invalid_argument: from_tensor_slices: tensors of 2 and 3 rows");
    CHECK(test::refusal([] { return make_dataset_from_tensors({std::vector<tensor>{}}); })
          == "invalid_argument: dataset_from_tensors: a list of no arrays");
    CHECK(test::refusal([] {
            return make_dataset_from_tensors({std::vector{numbers(2), numbers(3)}});
          }).starts_with("invalid_argument: "));
  }
}

} // namespace dataset_from_tensors_test
