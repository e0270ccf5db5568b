// SPDX-License-Identifier: Apache-2.0
// Goal: both twins of layer normalisation agree, rows come out normalised, and gradients are those
// of the function. Method: both twins over extents within a bound; the moments of the result;
// central differences.
#include "kernels/math/layer_norm.hpp"
#include "tests/kernels/arrays.hpp"
#include "tests/kernels/closeness.hpp"

#include <utility>

namespace layer_norm_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast;

constexpr extents shapes[]
  = {{0, 3}, {3, 0}, {1, 1}, {31, 32}, {32, 33}, {7, 255}, {101, 17}, {5, 1009}};

/// Everything that `layer_norm` and its gradient write.
template <class T>
struct layer_norm_results {
  guarded<T> output, means, inverse_deviations, input_gradient, gain_gradient, bias_gradient;

  explicit layer_norm_results(extents shape)
    : output(shape.rows * shape.columns), means(shape.rows), inverse_deviations(shape.rows),
      input_gradient(shape.rows * shape.columns), gain_gradient(shape.columns),
      bias_gradient(shape.columns) {}

  layer_norm_statistics<T> statistics() { return {means.span(), inverse_deviations.span()}; }

  layer_norm_gradients<T> gradients() {
    return {input_gradient.span(), gain_gradient.span(), bias_gradient.span()};
  }
};

} // namespace

TEST_SUITE("kernels/math/layer_norm") {
  // A row's sums of n terms of size below 36 differ by at most n + 3 roundings each; what is
  // divided by the deviation (above 1/2 for normal rows; 1 / sqrt(epsilon) = 10 for a single
  // column) grows with it.
  TEST_CASE_TEMPLATE("both twins agree", T, float, double) {
    for (auto shape : shapes) {
      CAPTURE(shape.rows);
      CAPTURE(shape.columns);
      auto size = shape.rows * shape.columns;
      auto input = normal<T>(size, 1), gradient = normal<T>(size, 2);
      auto gain = normal<T>(shape.columns, 3), bias = normal<T>(shape.columns, 4);
      layer_norm_parameters<T> parameters{gain.view(), bias.view()};
      layer_norm_results<T> got{shape}, wanted{shape};
      reference::layer_norm<T>(plain, T{0.01}, input.view(), parameters, wanted.output.span(),
                               wanted.statistics());
      cpu::layer_norm<T>(fast, T{0.01}, input.view(), parameters, got.output.span(),
                         got.statistics());
      reference::layer_norm_gradient<T>(plain, input.view(), gain.view(), wanted.statistics(),
                                        gradient.view(), wanted.gradients());
      cpu::layer_norm_gradient<T>(fast, input.view(), gain.view(), got.statistics(),
                                  gradient.view(), got.gradients());
      auto n = static_cast<double>(shape.columns + shape.rows);
      bound allowed{.relative = roundings<T>(n + 3), .absolute = roundings<T>(36 * 10 * (n + 3))};
      auto agree = [&](guarded<T>& a, guarded<T>& b) {
        return first_not_close(a.span(), b.span(), allowed) == a.span().size();
      };
      CHECK(agree(got.output, wanted.output));
      CHECK(agree(got.means, wanted.means));
      CHECK(agree(got.inverse_deviations, wanted.inverse_deviations));
      CHECK(agree(got.input_gradient, wanted.input_gradient));
      CHECK(agree(got.gain_gradient, wanted.gain_gradient));
      CHECK(agree(got.bias_gradient, wanted.bias_gradient));
    }
  }

  TEST_CASE_TEMPLATE("the output may take the input's place, and a gradient that of another", T,
                     float, double) {
    for (auto shape : shapes) {
      CAPTURE(shape.columns);
      auto size = shape.rows * shape.columns;
      auto input = normal<T>(size, 1), gradient = normal<T>(size, 2);
      auto gain = normal<T>(shape.columns, 3), bias = normal<T>(shape.columns, 4);
      layer_norm_results<T> apart{shape}, in_place{shape};
      cpu::layer_norm<T>(fast, T{0.01}, input.view(), {gain.view(), bias.view()},
                         apart.output.span(), apart.statistics());
      cpu::layer_norm_gradient<T>(fast, input.view(), gain.view(), apart.statistics(),
                                  gradient.view(), apart.gradients());
      in_place.input_gradient = gradient;
      cpu::layer_norm_gradient<T>(fast, input.view(), gain.view(), apart.statistics(),
                                  in_place.input_gradient.view(), in_place.gradients());
      in_place.output = input;
      cpu::layer_norm<T>(fast, T{0.01}, in_place.output.view(), {gain.view(), bias.view()},
                         in_place.output.span(), in_place.statistics());
      CHECK(same_bits(in_place.output, apart.output));
      CHECK(same_bits(in_place.input_gradient, apart.input_gradient));
      CHECK(same_bits(in_place.gain_gradient, apart.gain_gradient));
      CHECK(same_bits(in_place.bias_gradient, apart.bias_gradient));
    }
  }

  TEST_CASE("the gradients are those that differences show") {
    constexpr extents shape{3, 5};
    auto input = normal<double>(15, 1), arriving = normal<double>(15, 2);
    auto gain = normal<double>(5, 3), bias = normal<double>(5, 4);
    // The sum of the output, weighted by the arriving gradient.
    auto loss = [&] {
      layer_norm_results<double> of{shape};
      cpu::layer_norm<double>(fast, 0.01, input.view(), {gain.view(), bias.view()},
                              of.output.span(), of.statistics());
      double sum = 0;
      for (size_t i = 0; i < 15; ++i)
        sum += of.output.span()[i] * arriving.view()[i];
      return sum;
    };
    layer_norm_results<double> got{shape};
    cpu::layer_norm<double>(fast, 0.01, input.view(), {gain.view(), bias.view()}, got.output.span(),
                            got.statistics());
    cpu::layer_norm_gradient<double>(fast, input.view(), gain.view(), got.statistics(),
                                     arriving.view(), got.gradients());
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
    check(input.span(), got.input_gradient.span());
    check(gain.span(), got.gain_gradient.span());
    check(bias.span(), got.bias_gradient.span());
  }

  TEST_CASE("a normalised row has mean 0 and variance 1, and NaN stays in its row") {
    auto input = normal<double>(3 * 100, 1);
    for (auto& value : input.span().first(100))
      value = 1e6 + 1e3 * value;
    input[250] = std::nan("");
    std::vector<double> gain(100, 1), bias(100, 0);
    layer_norm_results<double> got{{3, 100}};
    cpu::layer_norm<double>(fast, 1e-12, input.view(), {gain, bias}, got.output.span(),
                            got.statistics());
    for (size_t row = 0; row < 2; ++row) {
      double sum = 0, square = 0;
      for (auto value : got.output.span().subspan(row * 100, 100)) {
        sum += value;
        square += value * value;
      }
      CHECK(std::abs(sum) < 1e-9);
      CHECK(square == doctest::Approx(100));
    }
    for (auto value : got.output.span().subspan(200))
      CHECK(std::isnan(value));
  }
}

} // namespace layer_norm_test
