// SPDX-License-Identifier: Apache-2.0
// Goal: both twins of the mean agree up to the last rounding.
// Method: both twins over sizes; NaN, nothing, and a small example.
#include "kernels/math/mean.hpp"
#include "tests/kernels/arrays.hpp"
#include "tests/kernels/closeness.hpp"

#include <algorithm>

namespace mean_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast;

} // namespace

TEST_SUITE("kernels/math/mean") {
  // Both add n numbers in f64; only the order differs, and the result is rounded to T.
  TEST_CASE_TEMPLATE("both twins agree", T, float, double) {
    for (auto size : sizes) {
      CAPTURE(size);
      auto values = normal<T>(size, 1);
      bound allowed{.relative = roundings<T>(2), .absolute = roundings<double>(6.0 * 100003)};
      CHECK(
        is_close(cpu::mean(fast, values.view()), reference::mean(plain, values.view()), allowed));
    }
    const T broken[] = {1, std::numeric_limits<T>::quiet_NaN(), 2};
    CHECK(std::isnan(cpu::mean<T>(fast, broken)));
    CHECK(std::isnan(cpu::mean<T>(fast, {})));
    const T few[] = {1, 2, 6};
    CHECK(cpu::mean<T>(fast, few) == 3);
  }

  TEST_CASE_TEMPLATE("its gradient is shared by all values", T, float, double) {
    const T of_the_mean[] = {1};
    for (size_t size : {0, 1, 3, 16, 33}) {
      guarded<T> gradient{size}, expected{size};
      std::ranges::fill(expected.span(), static_cast<T>(1 / static_cast<double>(size)));
      cpu::mean_gradient<T>(fast, of_the_mean, gradient.span());
      CHECK(same_bits(gradient, expected));
      reference::mean_gradient<T>(plain, of_the_mean, gradient.span());
      CHECK(same_bits(gradient, expected));
    }
  }
}

} // namespace mean_test
