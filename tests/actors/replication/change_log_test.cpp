// SPDX-License-Identifier: Apache-2.0
// Goal: a reader that knows an earlier revision is told the rows that changed since, or everything.
#include "actors/replication/change_log.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"

namespace change_log_test {

using namespace troupe;
using namespace troupe::test;

namespace {

using rows = std::vector<int64_t>;

gradient gradient_of(const rows& of) {
  tensor indices{dtype::i64, {static_cast<int64_t>(of.size())}};
  std::ranges::copy(of, indices.mutable_values<int64_t>().begin());
  return indexed_slices{indices, zeros({static_cast<int64_t>(of.size()), 2}), {100, 2}};
}

void add(change_log& log, const rows& of) {
  std::vector<gradient> gradients{gradient_of(of)};
  log.add_rows(gradients);
}

} // namespace

TEST_SUITE("actors/replication/change_log") {
  TEST_CASE("nothing has changed since the present revision") {
    change_log log{100};
    CHECK(log.revision() == 1);
    CHECK(log.rows_since(1) == rows{});
    add(log, {5});
    CHECK(log.revision() == 2);
    CHECK(log.rows_since(2) == rows{});
  }

  TEST_CASE("rows of several changes come in order, each once") {
    change_log log{100};
    std::vector<gradient> gradients{gradient_of({7, 3, 7}), gradient_of({3, 1})};
    log.add_rows(gradients);
    add(log, {9, 3});
    CHECK(log.rows_since(1) == rows{1, 3, 7, 9});
    CHECK(log.rows_since(2) == rows{3, 9});
  }

  TEST_CASE("after a change of everything no former revision is of use") {
    change_log log{100};
    add(log, {1});
    log.add_all();
    add(log, {2});
    CHECK(log.rows_since(3) == rows{2});
    CHECK_FALSE(log.rows_since(2));
    CHECK_FALSE(log.rows_since(1));
  }

  TEST_CASE("a revision that has not been, or that is none, tells nothing") {
    change_log log{100};
    add(log, {1});
    CHECK_FALSE(log.rows_since(3));
    CHECK_FALSE(log.rows_since(0));
  }

  TEST_CASE("more rows than half of them are forgotten, the oldest first") {
    change_log log{10};
    add(log, {0, 1});
    add(log, {2, 3});
    CHECK(log.rows_since(1) == rows{0, 1, 2, 3});
    add(log, {4, 5});
    CHECK_FALSE(log.rows_since(1));
    CHECK(log.rows_since(2) == rows{2, 3, 4, 5});
    add(log, {0, 1, 2, 3, 4, 5});
    CHECK_FALSE(log.rows_since(4));
    CHECK(log.rows_since(5) == rows{});
  }

  TEST_CASE("a change of no rows is a change") {
    change_log log{10};
    add(log, {});
    CHECK(log.revision() == 2);
    CHECK(log.rows_since(1) == rows{});
  }
}

} // namespace change_log_test
