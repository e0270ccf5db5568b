// SPDX-License-Identifier: Apache-2.0
// Goal: both twins of the transposition put every element where it belongs. Method: extents around
// a block; a case by hand.
#include "kernels/math/transpose.hpp"
#include "tests/kernels/arrays.hpp"

namespace transpose_test {

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("kernels/math/transpose") {
  TEST_CASE_TEMPLATE("both twins agree", T, float, double) {
    for (size_t rows : {0, 1, 31, 32, 33, 101})
      for (size_t columns : {0, 1, 31, 64, 65}) {
        CAPTURE(rows);
        CAPTURE(columns);
        auto input = normal<T>(rows * columns, 1);
        guarded<T> got{rows * columns}, wanted{rows * columns};
        reference::transpose<T>(reference::context{}, rows, input.view(), wanted.span());
        cpu::transpose<T>(cpu::context{}, rows, input.view(), got.span());
        CHECK(same_bits(got, wanted));
      }
  }

  TEST_CASE("two rows of three become three of two") {
    const double input[] = {1, 2, 3, 4, 5, 6};
    guarded<double> got{6};
    reference::transpose<double>(reference::context{}, 2, input, got.span());
    const double wanted[] = {1, 4, 2, 5, 3, 6};
    CHECK(std::equal(std::begin(wanted), std::end(wanted), got.span().begin()));
  }
}

} // namespace transpose_test
