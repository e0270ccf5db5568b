// SPDX-License-Identifier: Apache-2.0
// Goal: both twins of the lookup and its gradient agree bit for bit, and find bad indices.
// Method: both twins over extents and fills; small examples by hand.
#include "kernels/math/embedding.hpp"
#include "tests/kernels/arrays.hpp"

namespace embedding_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast;

constexpr extents shapes[]
  = {{0, 3}, {3, 0}, {1, 1}, {31, 32}, {32, 33}, {7, 255}, {101, 17}, {5, 1009}};

std::vector<int64_t> indices_for(size_t count, size_t limit) {
  std::vector<int64_t> indices(count);
  for (size_t i = 0; i < count; ++i)
    indices[i] = static_cast<int64_t>(i * i % limit);
  return indices;
}

} // namespace

TEST_SUITE("kernels/math/embedding") {
  TEST_CASE_TEMPLATE("both twins agree bit for bit", T, float, double) {
    for (auto make : {array_maker<T>{normal<T>}, array_maker<T>{extreme<T>}})
      for (auto [rows, columns] : shapes) {
        CAPTURE(rows);
        CAPTURE(columns);
        constexpr size_t table_rows = 13;
        auto indices = indices_for(rows, table_rows);
        auto table = make(table_rows * columns, 1), gradient = make(rows * columns, 2);
        guarded<T> out{rows * columns}, wanted{rows * columns};
        reference::embedding<T>(plain, table.view(), indices, wanted.span());
        cpu::embedding<T>(fast, table.view(), indices, out.span());
        CHECK(same_bits(out, wanted));
        auto table_copy = table;
        reference::embedding_gradient<T>(plain, gradient.view(), indices, table.span());
        cpu::embedding_gradient<T>(fast, gradient.view(), indices, table_copy.span());
        CHECK(same_bits(table, table_copy));
      }
  }

  TEST_CASE("rows are looked up, and gradients of repeated rows add up") {
    const double table[] = {1, 2, 3, 4, 5, 6};
    const int64_t indices[] = {2, 0, 2};
    double out[6];
    cpu::embedding<double>(fast, table, indices, out);
    CHECK(std::vector<double>(out, out + 6) == std::vector<double>{5, 6, 1, 2, 5, 6});
    double gradient[6] = {};
    cpu::embedding_gradient<double>(fast, out, indices, gradient);
    CHECK(std::vector<double>(gradient, gradient + 6) == std::vector<double>{1, 2, 0, 0, 10, 12});
  }

  TEST_CASE("the first index outside the table is found") {
    const int64_t indices[] = {0, 4, 5, -1};
    CHECK(reference::find_outside(plain, indices, 6) == 3);
    CHECK(cpu::find_outside(fast, indices, 6) == 3);
    CHECK(reference::find_outside(plain, indices, 5) == 2);
    CHECK(cpu::find_outside(fast, indices, 5) == 2);
    CHECK(cpu::find_outside(fast, indices, 0) == 0);
    CHECK(cpu::find_outside(fast, std::span(indices, 2), 6) == 2);
    CHECK(cpu::find_outside(fast, {}, 6) == 0);
  }
}

} // namespace embedding_test
