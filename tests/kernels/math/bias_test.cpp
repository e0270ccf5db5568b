// SPDX-License-Identifier: Apache-2.0
// Goal: both twins of the bias agree bit for bit, and add what they should.
// Method: both twins over extents and fills, in place or not; a small example by hand.
#include "kernels/math/bias.hpp"
#include "tests/kernels/arrays.hpp"

namespace bias_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast;

constexpr extents shapes[]
  = {{0, 3}, {3, 0}, {1, 1}, {31, 32}, {32, 33}, {7, 255}, {101, 17}, {5, 1009}};

} // namespace

TEST_SUITE("kernels/math/bias") {
  TEST_CASE_TEMPLATE("both twins agree bit for bit", T, float, double) {
    for (auto make : {array_maker<T>{normal<T>}, array_maker<T>{extreme<T>}})
      for (auto [rows, columns] : shapes) {
        CAPTURE(rows);
        CAPTURE(columns);
        auto input = make(rows * columns, 1), bias = make(columns, 2);
        guarded<T> out{rows * columns}, wanted{rows * columns}, sums{columns}, wanted_sums{columns};
        reference::add_bias(plain, input.view(), bias.view(), wanted.span());
        cpu::add_bias(fast, input.view(), bias.view(), out.span());
        CHECK(same_bits(out, wanted));
        reference::bias_gradient(plain, input.view(), wanted_sums.span());
        cpu::bias_gradient(fast, input.view(), sums.span());
        CHECK(same_bits(sums, wanted_sums));
        cpu::add_bias(fast, input.view(), bias.view(), input.span());
        CHECK(same_bits(input, wanted));
      }
  }

  TEST_CASE("a bias is added to every row, and its gradient is the sum of the rows") {
    const float input[] = {1, 2, 3, 4};
    const float bias[] = {10, 20};
    float out[4], sums[2];
    cpu::add_bias<float>(fast, input, bias, out);
    CHECK(std::vector<float>(out, out + 4) == std::vector<float>{11, 22, 13, 24});
    cpu::bias_gradient<float>(fast, input, sums);
    CHECK(std::vector<float>(sums, sums + 2) == std::vector<float>{4, 6});
  }
}

} // namespace bias_test
