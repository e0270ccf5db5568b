// SPDX-License-Identifier: Apache-2.0
// Goal: the mask depends on the key alone, drops what it says, and keeps the mean.
// Method: both twins bit for bit over sizes and rates; counts over long arrays.
#include "kernels/math/dropout.hpp"
#include "tests/kernels/arrays.hpp"

namespace dropout_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast;

/// A long array of ones after dropout.
guarded<float> thinned_ones(double rate, const random_key& key) {
  guarded<float> ones{100000};
  for (auto& value : ones.span())
    value = 1;
  cpu::dropout(fast, rate, key, ones.view(), ones.span());
  return ones;
}

} // namespace

TEST_SUITE("kernels/math/dropout") {
  TEST_CASE_TEMPLATE("both twins agree bit for bit, in place or not", T, float, double) {
    for (double rate : {0.0, 0.1, 0.5, 0.999, 1 - 1e-12})
      for (auto size : sizes) {
        CAPTURE(rate);
        CAPTURE(size);
        random_key key{1, "test", 2, size};
        auto input = extreme<T>(size, 1);
        guarded<T> out{size}, wanted{size};
        reference::dropout(plain, rate, key, input.view(), wanted.span());
        cpu::dropout(fast, rate, key, input.view(), out.span());
        CHECK(same_bits(out, wanted));
        cpu::dropout(fast, rate, key, input.view(), input.span());
        CHECK(same_bits(input, wanted));
      }
  }

  TEST_CASE("a rate of 0 changes nothing") {
    auto input = normal<float>(1009, 1);
    guarded<float> out{1009};
    cpu::dropout(fast, 0, random_key{1, "test"}, input.view(), out.span());
    CHECK(same_bits(out, input));
  }

  // Five standard errors of a binomial count; the keys are fixed.
  TEST_CASE("as many elements are dropped as the rate says, and the others are scaled up") {
    for (double rate : {0.1, 0.25, 0.5, 0.9}) {
      CAPTURE(rate);
      auto out = thinned_ones(rate, random_key{2, "test"});
      double dropped = 0;
      for (float value : out.span()) {
        if (value == 0)
          ++dropped;
        else
          CHECK(value == static_cast<float>(1 / (1 - rate)));
      }
      CHECK(std::abs(dropped - 100000 * rate) < 5 * std::sqrt(100000 * rate * (1 - rate)));
    }
  }

  TEST_CASE("another key gives another mask, the same key the same") {
    auto a = thinned_ones(0.5, random_key{3, "test", 0, 1});
    auto b = thinned_ones(0.5, random_key{3, "test", 0, 1});
    auto c = thinned_ones(0.5, random_key{3, "test", 0, 2});
    CHECK(same_bits(a, b));
    CHECK_FALSE(same_bits(a, c));
  }
}

} // namespace dropout_test
