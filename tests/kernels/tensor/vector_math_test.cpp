// SPDX-License-Identifier: Apache-2.0
// Goal: the vectorised functions keep their bounds, and sums have the order that they state.
// Method: every exponent and sign against the C library in f64; sums with results that show their
// order.
#include "kernels/tensor/vector_math.hpp"
#include "tests/doctest.hpp"
#include "tests/kernels/closeness.hpp"

#include <bit>
#include <utility>
#include <vector>

namespace vector_math_test {

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("kernels/tensor/vector_math") {
  // Every 997th float: 4.3 million arguments, all exponents and both signs among them.
  TEST_CASE("the vectorised exp and tanh keep their bounds over the whole range") {
    int bad = 0;
    for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 997) {
      auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
      auto exp = static_cast<float>(std::exp(static_cast<double>(x)));
      auto tanh = static_cast<float>(std::tanh(static_cast<double>(x)));
      // 2 and 3 units in the last place; denormal results lie on a fixed grid.
      bound exp_bound{.relative = roundings<float>(4), .absolute = 1.5e-45};
      bound tanh_bound{.relative = roundings<float>(6), .absolute = 1.5e-45};
      bad += is_close(cpu::detail::exp(x), exp, exp_bound) ? 0 : 1;
      bad += is_close(cpu::detail::tanh(x), tanh, tanh_bound) ? 0 : 1;
    }
    CHECK(bad == 0);
  }

  TEST_CASE("every element counts once, whatever the count") {
    for (size_t count : {0, 1, 15, 16, 17, 31, 32, 33, 1009}) {
      auto identity = [](size_t i) { return static_cast<double>(i + 1); };
      auto n = static_cast<double>(count);
      CHECK(cpu::detail::sum_lanes<double>(count, identity) == n * (n + 1) / 2);
    }
  }

  TEST_CASE_TEMPLATE("the largest value is found in every place, on either side of 0", T, float,
                     double) {
    constexpr auto infinity = std::numeric_limits<T>::infinity();
    const std::vector<std::pair<T, T>> cases{{-3, -1},        {-3, 2},   {1, 2},
                                             {-infinity, -3}, {-0.5, 0}, {1, infinity}};
    for (auto [others, largest] : cases)
      for (size_t count : {1, 15, 16, 17, 33})
        for (size_t place = 0; place < count; ++place) {
          std::vector<T> values(count, others);
          values[place] = largest;
          CHECK(cpu::detail::max_lanes<T>(values) == largest);
        }
    CHECK(cpu::detail::max_lanes<T>({}) == -infinity);
  }

  TEST_CASE("lane 0 takes every sixteenth element, and distant lanes join first") {
    // 1e8 + 1 rounds back to 1e8 in f32, so the 1 survives only if it meets -1e8 + 1e8 later.
    std::vector<float> values(32, 0);
    auto sum
      = [&] { return cpu::detail::sum_lanes<float>(32, [&](size_t i) { return values[i]; }); };
    values[0] = 1e8F;
    values[16] = -1e8F;
    values[1] = 1;
    CHECK(sum() == 1);
    values[16] = 0;
    values[8] = -1e8F;
    CHECK(sum() == 1);
    values[8] = 0;
    values[2] = -1e8F;
    values[1] = 0;
    values[4] = 1;
    CHECK(sum() == 0);
  }
}

} // namespace vector_math_test
