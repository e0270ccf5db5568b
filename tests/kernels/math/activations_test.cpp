// SPDX-License-Identifier: Apache-2.0
// Goal: the vectorised activations are the plain ones up to a few roundings, and treat extremes
// alike. Method: both twins over sizes and fills, in place and not; values at chosen points.
#include "kernels/math/activations.hpp"
#include "tests/kernels/arrays.hpp"
#include "tests/kernels/closeness.hpp"

#include <array>
#include <limits>

namespace activations_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast;

constexpr activation kinds[] = {activation::tanh, activation::relu, activation::sigmoid,
                                activation::gelu, activation::exp,  activation::log};

/// exp and tanh are within 4 units in the last place (8 roundings), and what is built on them adds
/// as many operations again. The argument of gelu's exponential is itself rounded, which the
/// exponential magnifies by that argument's size, at most 104 before everything underflows.
/// Around a zero of a derivative only the distance in absolute terms is bounded.
template <class T>
bound bound_of(activation kind) {
  if (kind == activation::relu) return {};
  double count = kind == activation::gelu ? 16 + 3 * 104 : 16;
  return {.relative = roundings<T>(count), .absolute = roundings<T>(16)};
}

/// Values from -12 to 12 in small steps, where everything but saturation happens.
template <class T>
guarded<T> ramp(size_t count, uint64_t) {
  guarded<T> result{count};
  for (size_t i = 0; i < count; ++i)
    result[i] = static_cast<T>(-12 + 24.0 * static_cast<double>(i) / static_cast<double>(count));
  return result;
}

template <class T>
float value_of(activation kind, T x) {
  T in[] = {x};
  T out[1];
  cpu::activate<T>(fast, kind, in, out);
  return static_cast<float>(out[0]);
}

} // namespace

TEST_SUITE("kernels/math/activations") {
  TEST_CASE_TEMPLATE("both twins agree in values and gradients", T, float, double) {
    for (auto make : {array_maker<T>{normal<T>}, array_maker<T>{ramp<T>}})
      for (auto kind : kinds)
        for (auto size : sizes) {
          CAPTURE(to_string(kind));
          CAPTURE(size);
          auto input = make(size, 1), gradient = normal<T>(size, 2);
          guarded<T> output{size}, wanted{size}, back{size}, wanted_back{size};
          reference::activate(plain, kind, input.view(), wanted.span());
          cpu::activate(fast, kind, input.view(), output.span());
          CHECK(first_not_close(output.span(), wanted.span(), bound_of<T>(kind)) == size);
          reference::activate_gradient(plain, kind, input.view(), wanted.view(), gradient.view(),
                                       wanted_back.span());
          cpu::activate_gradient(fast, kind, input.view(), wanted.view(), gradient.view(),
                                 back.span());
          // The gradient that arrives is below 6 and multiplies the absolute part.
          auto allowed = bound_of<T>(kind);
          allowed.absolute *= 6;
          CHECK(first_not_close(back.span(), wanted_back.span(), allowed) == size);
        }
  }

  TEST_CASE_TEMPLATE("extremes give the same infinities and NaN", T, float, double) {
    for (auto kind : kinds) {
      CAPTURE(to_string(kind));
      auto input = extreme<T>(1009, 4);
      guarded<T> output{1009}, wanted{1009}, back{1009}, wanted_back{1009};
      auto gradient = normal<T>(1009, 5);
      reference::activate(plain, kind, input.view(), wanted.span());
      cpu::activate(fast, kind, input.view(), output.span());
      CHECK(first_not_close(output.span(), wanted.span(), bound_of<T>(kind)) == 1009);
      reference::activate_gradient(plain, kind, input.view(), wanted.view(), gradient.view(),
                                   wanted_back.span());
      cpu::activate_gradient(fast, kind, input.view(), wanted.view(), gradient.view(), back.span());
      auto allowed = bound_of<T>(kind);
      allowed.absolute *= 6;
      CHECK(first_not_close(back.span(), wanted_back.span(), allowed) == 1009);
    }
  }

  TEST_CASE_TEMPLATE("the output may be the input, and a gradient its successor", T, float,
                     double) {
    for (auto kind : kinds) {
      auto input = normal<T>(257, 1), gradient = normal<T>(257, 2);
      guarded<T> output{257}, back{257};
      cpu::activate(fast, kind, input.view(), output.span());
      cpu::activate_gradient(fast, kind, input.view(), output.view(), gradient.view(), back.span());
      cpu::activate_gradient(fast, kind, input.view(), output.view(), gradient.view(),
                             gradient.span());
      cpu::activate(fast, kind, input.view(), input.span());
      CHECK(same_bits(input, output));
      CHECK(same_bits(gradient, back));
    }
  }

  TEST_CASE_TEMPLATE("gelu is straight far out, in both twins", T, float, double) {
    const auto most = std::numeric_limits<T>::max();
    const std::array<T, 6> input{T{1e3}, T{0x1p45}, most, T{-1e3}, T{-0x1p45}, -most};
    const std::array<T, 6> ones{1, 1, 1, 1, 1, 1}, wanted{1, 1, 1, 0, 0, 0};
    std::array<T, 6> back{};
    auto in = std::span<const T>{input};
    reference::activate_gradient<T>(plain, activation::gelu, in, in, ones, back);
    CHECK(back == wanted);
    cpu::activate_gradient<T>(fast, activation::gelu, in, in, ones, back);
    CHECK(back == wanted);
  }

  TEST_CASE("known values") {
    CHECK(value_of(activation::tanh, 0.5F) == doctest::Approx(0.46211716));
    CHECK(value_of(activation::tanh, 20.0F) == 1);
    CHECK(value_of(activation::relu, -2.0F) == 0);
    CHECK(value_of(activation::relu, 2.0F) == 2);
    CHECK(value_of(activation::sigmoid, 0.0F) == 0.5);
    CHECK(value_of(activation::sigmoid, 2.0) == doctest::Approx(0.88079708));
    CHECK(value_of(activation::gelu, 1.0F) == doctest::Approx(0.84119199));
    CHECK(value_of(activation::gelu, -1.0) == doctest::Approx(-0.15880801));
    CHECK(std::isnan(value_of(activation::relu, std::nanf(""))));
  }
}

} // namespace activations_test
