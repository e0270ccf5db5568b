// SPDX-License-Identifier: Apache-2.0
// Goal: clipping shortens what is too long and leaves the rest alone. Method: norms in long double,
// over sizes.
#include "kernels/math/clip.hpp"
#include "tests/kernels/arrays.hpp"

#include <cmath>
#include <initializer_list>
#include <span>

namespace clip_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast{.grain_elements = 4096};

template <class T>
double norm_of(std::initializer_list<std::span<const T>> arrays) {
  long double sum = 0;
  for (auto array : arrays)
    for (long double value : array)
      sum += value * value;
  return static_cast<double>(std::sqrt(sum));
}

} // namespace

TEST_SUITE("kernels/math/clip") {
  TEST_CASE("the factor is 1 up to the limit, and shortens beyond it") {
    CHECK(clip_factor(0, 5) == 1);
    CHECK(clip_factor(5, 5) == 1);
    CHECK(clip_factor(20, 5) == 0.25);
    CHECK(clip_factor(20, INFINITY) == 1);
    CHECK(std::isnan(clip_factor(INFINITY, 5)));
    CHECK(std::isnan(clip_factor(INFINITY, INFINITY)));
    CHECK(std::isnan(clip_factor(NAN, 5)));
  }

  TEST_CASE_TEMPLATE("arrays are shortened together", T, float, double) {
    for (auto count : sizes) {
      CAPTURE(count);
      auto a = normal<T>(count, 1), b = normal<T>(2 * count, 2);
      auto first = a;
      auto norm = norm_of<T>({a.view(), b.view()});
      const elements views[] = {a.view(), b.view()};
      CHECK(cpu::global_norm(fast, views) == doctest::Approx(norm).epsilon(1e-12));
      const std::span<T> arrays[] = {a.span(), b.span()};
      CHECK(cpu::clip_by_global_norm<T>(fast, arrays, 1.5) == doctest::Approx(norm).epsilon(1e-12));
      CHECK(norm_of<T>({a.view(), b.view()}) == doctest::Approx(std::min(norm, 1.5)).epsilon(1e-5));
      for (size_t i = 0; i < count; ++i)
        CHECK(a.view()[i]
              == doctest::Approx(first.view()[i] * std::min(1.0, 1.5 / norm)).epsilon(1e-5));
    }
  }

  TEST_CASE("what is short enough keeps its bits") {
    auto a = normal<float>(1009, 1), copy = a;
    const std::span<float> arrays[] = {a.span()};
    cpu::clip_by_global_norm<float>(fast, arrays, 1e6);
    CHECK(same_bits(a, copy));
  }

  TEST_CASE("a norm that is not finite turns everything into NaN") {
    float values[] = {1, INFINITY, 2};
    const std::span<float> arrays[] = {values};
    CHECK(std::isinf(cpu::clip_by_global_norm<float>(fast, arrays, 1)));
    for (float value : values)
      CHECK(std::isnan(value));
  }
}

} // namespace clip_test
