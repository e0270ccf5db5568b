// SPDX-License-Identifier: Apache-2.0
// Goal: both twins of root mean square normalisation agree, rows come out with a mean square of 1,
// and gradients are those of the function. Method: both twins over extents within a bound; the
// squares of the result; central differences.
#include "kernels/math/rms_norm.hpp"
#include "tests/kernels/arrays.hpp"
#include "tests/kernels/closeness.hpp"

#include <utility>

namespace rms_norm_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast;

constexpr extents shapes[]
  = {{0, 3}, {3, 0}, {1, 1}, {31, 32}, {32, 33}, {7, 255}, {101, 17}, {5, 1009}};

/// Everything that `rms_norm` and its gradient write.
template <class T>
struct rms_norm_results {
  guarded<T> output, inverse_roots, input_gradient, gain_gradient;

  explicit rms_norm_results(extents shape)
    : output(shape.rows * shape.columns), inverse_roots(shape.rows),
      input_gradient(shape.rows * shape.columns), gain_gradient(shape.columns) {}
};

} // namespace

TEST_SUITE("kernels/math/rms_norm") {
  // A row's sums of n terms of size below 36 differ by at most n + 3 roundings each; what is
  // divided by the root (above 1/2 for normal rows; 1 / sqrt(epsilon) = 10 for a single column)
  // grows with it.
  TEST_CASE_TEMPLATE("both twins agree", T, float, double) {
    for (auto shape : shapes) {
      CAPTURE(shape.rows);
      CAPTURE(shape.columns);
      auto size = shape.rows * shape.columns;
      auto input = normal<T>(size, 1), gradient = normal<T>(size, 2);
      auto gain = normal<T>(shape.columns, 3);
      rms_norm_results<T> got{shape}, wanted{shape};
      reference::rms_norm<T>(plain, T{0.01}, input.view(), gain.view(), wanted.output.span(),
                             wanted.inverse_roots.span());
      cpu::rms_norm<T>(fast, T{0.01}, input.view(), gain.view(), got.output.span(),
                       got.inverse_roots.span());
      reference::rms_norm_gradient<T>(plain, input.view(), gain.view(), wanted.inverse_roots.view(),
                                      gradient.view(), wanted.input_gradient.span(),
                                      wanted.gain_gradient.span());
      cpu::rms_norm_gradient<T>(fast, input.view(), gain.view(), got.inverse_roots.view(),
                                gradient.view(), got.input_gradient.span(),
                                got.gain_gradient.span());
      auto n = static_cast<double>(shape.columns + shape.rows);
      bound allowed{.relative = roundings<T>(n + 3), .absolute = roundings<T>(36 * 10 * (n + 3))};
      auto agree = [&](guarded<T>& a, guarded<T>& b) {
        return first_not_close(a.span(), b.span(), allowed) == a.span().size();
      };
      CHECK(agree(got.output, wanted.output));
      CHECK(agree(got.inverse_roots, wanted.inverse_roots));
      CHECK(agree(got.input_gradient, wanted.input_gradient));
      CHECK(agree(got.gain_gradient, wanted.gain_gradient));
    }
  }

  TEST_CASE("the gradients are those that differences show") {
    auto input = normal<double>(15, 1), arriving = normal<double>(15, 2);
    auto gain = normal<double>(5, 3);
    // The sum of the output, weighted by the arriving gradient.
    auto loss = [&] {
      rms_norm_results<double> of{{3, 5}};
      cpu::rms_norm<double>(fast, 0.01, input.view(), gain.view(), of.output.span(),
                            of.inverse_roots.span());
      double sum = 0;
      for (size_t i = 0; i < 15; ++i)
        sum += of.output[i] * arriving[i];
      return sum;
    };
    rms_norm_results<double> got{{3, 5}};
    cpu::rms_norm<double>(fast, 0.01, input.view(), gain.view(), got.output.span(),
                          got.inverse_roots.span());
    cpu::rms_norm_gradient<double>(fast, input.view(), gain.view(), got.inverse_roots.view(),
                                   arriving.view(), got.input_gradient.span(),
                                   got.gain_gradient.span());
    auto check = [&](std::span<double> of, std::span<const double> gradient) {
      for (size_t i = 0; i < of.size(); ++i) {
        auto kept = std::exchange(of[i], of[i] + 1e-6);
        auto above = loss();
        of[i] = kept - 1e-6;
        auto below = loss();
        of[i] = kept;
        CHECK(gradient[i] == doctest::Approx((above - below) / 2e-6).epsilon(1e-6));
      }
    };
    check(input.span(), got.input_gradient.view());
    check(gain.span(), got.gain_gradient.view());
  }

  TEST_CASE("a normalised row has a mean square of 1, and NaN stays in its row") {
    auto input = normal<double>(3 * 100, 1);
    for (auto& value : input.span().first(100))
      value = 1e6 + 1e3 * value;
    input[250] = std::nan("");
    std::vector<double> gain(100, 1);
    rms_norm_results<double> got{{3, 100}};
    cpu::rms_norm<double>(fast, 1e-12, input.view(), gain, got.output.span(),
                          got.inverse_roots.span());
    for (size_t row = 0; row < 2; ++row) {
      double squares = 0;
      for (auto value : got.output.span().subspan(row * 100, 100))
        squares += value * value;
      CHECK(squares == doctest::Approx(100));
    }
    CHECK(got.output[0] / input[0] == doctest::Approx(got.inverse_roots[0]));
    for (auto value : got.output.span().subspan(200))
      CHECK(std::isnan(value));
  }
}

} // namespace rms_norm_test
