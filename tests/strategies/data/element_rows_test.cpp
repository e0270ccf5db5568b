// SPDX-License-Identifier: Apache-2.0
// Goal: batches are cut and joined by rows, and what is no batch is refused. Method: small batches,
// written out.
#include "strategies/data/element_rows.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/data/numbers.hpp"

namespace element_rows_test {

TEST_SUITE("strategies/data/element_rows") {
  using namespace troupe;
  using test::text_of;

  element batch() {
    return {{test::numbers(3), test::numbers(6, 10).reshape({3, 2})}, {"a", "b", "c"}};
  }

  TEST_CASE("cuts tensors as views, and texts in equal shares") {
    CHECK(rows_of(batch()) == 3);
    CHECK(text_of(slice_rows(batch(), 1, 3)) == "[1 2],[12 13 14 15],b,c");
    CHECK(text_of(slice_rows(batch(), 0, 0)) == "[],[]");
    const auto whole = batch();
    CHECK(slice_rows(whole, 0, 2).tensors[0].data() == whole.tensors[0].data());
    CHECK(text_of(slice_rows({{test::numbers(2)}, {"a", "b", "c", "d"}}, 1, 2)) == "[1],c,d");
    CHECK(rows_of({{}, {"a", "b"}}) == 2);
    CHECK(text_of(slice_rows({{}, {"a", "b"}}, 1, 2)) == "b");
  }

  TEST_CASE("joins what was cut") {
    const auto first = slice_rows(batch(), 0, 1);
    const auto none = slice_rows(batch(), 1, 1);
    const auto rest = slice_rows(batch(), 1, 3);
    const auto joined = join_rows(std::vector{first, none, rest});
    REQUIRE(joined);
    CHECK(text_of(*joined) == text_of(batch()));
  }

  TEST_CASE("refuses what is no batch") {
    CHECK(rows_of({{test::numbers(1).reshape({})}, {}}).error().message
          == "rebatch: a scalar has no rows to divide: call batch() before the dataset is divided "
             "among replicas");
    CHECK(rows_of({{test::numbers(2), test::numbers(3)}, {}}).error().message
          == "rebatch: tensors of 2 and 3 rows are no batch: call batch() before the dataset is "
             "divided among replicas");
    CHECK_FALSE(rows_of({{test::numbers(2)}, {"a"}}));
    CHECK_FALSE(rows_of({{test::numbers(0)}, {"a"}}));
  }

  TEST_CASE("refuses to join batches of different examples") {
    const element pairs{{test::numbers(4).reshape({2, 2})}, {}};
    CHECK(join_rows(std::vector{element{{test::numbers(2)}, {}}, pairs}).error()
          == error{errc::invalid_argument,
                   "rebatch: tensor 0 is i64 [2] in one batch and i64 [2, 2] "
                   "in the next: make them alike with map()"});
    CHECK(join_rows(std::vector{element{}, pairs}).error().message
          == "rebatch: batches of 0 and 1 tensors cannot be joined");
  }
}

} // namespace element_rows_test
