// SPDX-License-Identifier: Apache-2.0
// Goal: both twins of pooling have the same bits, and the largest number of a window has its
// gradient. Method: windows worked out by hand; both twins over shapes, with numbers that are
// often equal, infinite or NaN.
#include "kernels/math/images/max_pool.hpp"
#include "tests/kernels/arrays.hpp"
#include "tests/kernels/math/images/image_shapes.hpp"

#include <algorithm>

namespace max_pool_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast;

/// Numbers of which many are equal.
template <class T>
guarded<T> few_values(size_t count, uint64_t seed) {
  std::mt19937_64 engine{seed};
  guarded<T> result{count};
  for (auto& value : result.span())
    value = static_cast<T>(engine() % 3);
  return result;
}

/// Both twins, forward and back.
template <class T>
void check_twins(const image_windows& windows, guarded<T> input) {
  const auto outputs = windows.windows() * windows.channels;
  auto arriving = normal<T>(outputs, 5);
  guarded<T> got{outputs}, wanted{outputs};
  cpu::max_pool<T>(fast, windows, input.view(), got.span());
  reference::max_pool<T>(plain, windows, input.view(), wanted.span());
  CHECK(same_bits(got, wanted));
  guarded<T> got_gradient{input.span().size()}, wanted_gradient{input.span().size()};
  cpu::max_pool_gradient<T>(fast, windows, input.view(), arriving.view(), got_gradient.span());
  reference::max_pool_gradient<T>(plain, windows, input.view(), arriving.view(),
                                  wanted_gradient.span());
  CHECK(same_bits(got_gradient, wanted_gradient));
}

/// Windows of all kinds: apart, overlapping, padded, with few channels and with more than a vector.
image_windows drawn_windows(std::mt19937_64& engine) {
  auto below = [&](size_t limit) { return engine() % limit; };
  image_windows windows{below(3), 1 + below(9), 1 + below(9), 1 + below(20)};
  windows.window_height = 1 + below(4);
  windows.window_width = 1 + below(4);
  windows.stride = 1 + below(4);
  windows.padding = below(std::min(windows.window_height, windows.window_width));
  windows.height = std::max(windows.height, windows.window_height);
  windows.width = std::max(windows.width, windows.window_width);
  return windows;
}

} // namespace

TEST_SUITE("kernels/math/images/max_pool") {
  TEST_CASE_TEMPLATE("both twins have the same bits", T, float, double) {
    for (const auto& windows : image_shapes) {
      CAPTURE(windows.height);
      CAPTURE(windows.channels);
      const auto size = windows.pixels() * windows.channels;
      check_twins(windows, normal<T>(size, 1));
      check_twins(windows, extreme<T>(size, 2));
      check_twins(windows, few_values<T>(size, 3));
    }
  }

  TEST_CASE_TEMPLATE("both twins have the same bits for drawn windows", T, float, double) {
    std::mt19937_64 engine{1};
    for (uint64_t drawn = 0; drawn < 200; ++drawn) {
      CAPTURE(drawn);
      const auto windows = drawn_windows(engine);
      const auto size = windows.pixels() * windows.channels;
      check_twins(windows, extreme<T>(size, drawn));
      check_twins(windows, few_values<T>(size, drawn));
    }
  }

  TEST_CASE_TEMPLATE("each channel has its largest number, and the first of equals the gradient", T,
                     float, double) {
    // Two channels side by side, of windows of 2 x 2 that do not overlap.
    const T input[] = {1, -5, 3, -5, /**/ 4, -1, 4, -2, //
                       2, -7, 3, -6, /**/ 0, -3, 4, -1};
    const T arriving[] = {10, 20, 30, 40};
    const T largest[] = {3, -5, 4, -1};
    const T passed_on[] = {0, 20, 10, 0, 30, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    const image_windows windows{1, 2, 4, 2, 2, 2, 2, 0};
    guarded<T> output{4}, gradient{16};
    cpu::max_pool<T>(fast, windows, input, output.span());
    cpu::max_pool_gradient<T>(fast, windows, input, arriving, gradient.span());
    CHECK(std::ranges::equal(output.span(), largest));
    CHECK(std::ranges::equal(gradient.span(), passed_on));
  }

  TEST_CASE("a window that has a NaN has nothing larger") {
    const float input[] = {1, std::nanf(""), 3, INFINITY}, arriving[] = {7};
    const image_windows windows{1, 2, 2, 1, 2, 2, 1, 0};
    guarded<float> output{1}, gradient{4};
    cpu::max_pool<float>(fast, windows, input, output.span());
    cpu::max_pool_gradient<float>(fast, windows, input, arriving, gradient.span());
    CHECK(std::isnan(output[0]));
    CHECK(gradient[1] == 7);
  }

  TEST_CASE("a pixel in several windows gets the sum of their gradients, padding none") {
    const double input[] = {-9}, arriving[] = {1, 10, 100, 1000};
    const image_windows windows{1, 1, 1, 1, 2, 2, 1, 1};
    guarded<double> output{4}, gradient{1};
    cpu::max_pool<double>(fast, windows, input, output.span());
    cpu::max_pool_gradient<double>(fast, windows, input, arriving, gradient.span());
    CHECK(std::ranges::all_of(output.span(), [](double value) { return value == -9; }));
    CHECK(gradient[0] == 1111);
  }
}

} // namespace max_pool_test
