// SPDX-License-Identifier: Apache-2.0
// Goal: both twins of convolution agree, the sum is the one that the header says, and the gradients
// are its derivatives. Method: a convolution worked out by hand; both twins over shapes within a
// bound; the gradients against the sum itself, which is linear in each operand.
#include "kernels/math/images/convolution.hpp"
#include "tests/kernels/arrays.hpp"
#include "tests/kernels/closeness.hpp"
#include "tests/kernels/math/images/image_shapes.hpp"

#include <algorithm>
#include <numeric>
#include <thread>

namespace convolution_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast;

/// Calls `check` for each shape with 1, 3 and 17 channels of the output.
template <class Check>
void for_shapes(Check check) {
  for (const auto& windows : image_shapes)
    for (size_t outputs : {1, 3, 17}) {
      CAPTURE(windows.height);
      CAPTURE(windows.window_height);
      CAPTURE(outputs);
      check(convolution_extents{windows, outputs});
    }
}

double product(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

} // namespace

TEST_SUITE("kernels/math/images/convolution") {
  TEST_CASE_TEMPLATE("a window weighs what it sees, and nothing lies around the image", T, float,
                     double) {
    // 1 2 3   with 1 10   and a padding of 1; the window is not mirrored.
    // 4 5 6       100 1000
    const T image[] = {1, 2, 3, 4, 5, 6}, weights[] = {1, 10, 100, 1000};
    const T wanted[] = {1000, 2100, 3200, 300, 4010, 5421, 6532, 603, 40, 54, 65, 6};
    guarded<T> output{12};
    const convolution_extents extents{{1, 2, 3, 1, 2, 2, 1, 1}, 1};
    cpu::convolve<T>(fast, extents, image, weights, output.span());
    CHECK(std::ranges::equal(output.span(), wanted));
  }

  // A result of n products of normal numbers: n + 1 roundings of what is below 36 each.
  TEST_CASE_TEMPLATE("both twins agree", T, float, double) {
    for_shapes([](const convolution_extents& extents) {
      auto input = normal<T>(extents.input_elements(), 1);
      auto weights = normal<T>(extents.weight_elements(), 2);
      auto arriving = normal<T>(extents.output_elements(), 3);
      auto agree = [&](size_t size, size_t products, auto compute) {
        guarded<T> got = extreme<T>(size, 4), wanted{size}; // what lay there does not count
        compute(fast, got.span());
        compute(plain, wanted.span());
        const bound allowed{0, roundings<T>(36 * static_cast<double>(products + 1))};
        CHECK(first_not_close(got.span(), wanted.span(), allowed) == size);
      };
      const auto window = extents.window_height * extents.window_width;
      agree(extents.output_elements(), window * extents.channels, [&](auto on, std::span<T> out) {
        convolve<T>(on, extents, input.view(), weights.view(), out);
      });
      agree(extents.input_elements(), window * extents.outputs, [&](auto on, std::span<T> out) {
        convolve_input_gradient<T>(on, extents, weights.view(), arriving.view(), out);
      });
      agree(extents.weight_elements(), extents.windows(), [&](auto on, std::span<T> out) {
        convolve_weights_gradient<T>(on, extents, input.view(), arriving.view(), out);
      });
    });
  }

  // The sum is linear in each operand: so sum(arriving * convolve(input, weights)) is also
  // sum(input * its gradient) and sum(weights * their gradient), for all numbers.
  TEST_CASE("the gradients are the derivatives") {
    for_shapes([](const convolution_extents& extents) {
      auto input = normal<double>(extents.input_elements(), 1);
      auto weights = normal<double>(extents.weight_elements(), 2);
      auto arriving = normal<double>(extents.output_elements(), 3);
      guarded<double> output{arriving.span().size()};
      guarded<double> by_input{input.span().size()}, by_weights{weights.span().size()};
      cpu::convolve<double>(fast, extents, input.view(), weights.view(), output.span());
      cpu::convolve_input_gradient<double>(fast, extents, weights.view(), arriving.view(),
                                           by_input.span());
      cpu::convolve_weights_gradient<double>(fast, extents, input.view(), arriving.view(),
                                             by_weights.span());
      const auto whole = product(arriving.view(), output.view());
      CHECK(product(input.view(), by_input.view()) == doctest::Approx(whole));
      CHECK(product(weights.view(), by_weights.view()) == doctest::Approx(whole));
    });
  }

  TEST_CASE("threads at the same time compute the same bits, each for itself") {
    const convolution_extents extents{{4, 14, 14, 8, 5, 5, 1, 2}, 16};
    auto input = normal<float>(extents.input_elements(), 1);
    auto weights = normal<float>(extents.weight_elements(), 2);
    guarded<float> outputs[2]
      = {guarded<float>{extents.output_elements()}, guarded<float>{extents.output_elements()}};
    auto compute = [&](guarded<float>& output) {
      for (int again = 0; again < 3; ++again)
        cpu::convolve<float>(fast, extents, input.view(), weights.view(), output.span());
    };
    std::jthread other{[&] { compute(outputs[1]); }};
    compute(outputs[0]);
    other.join();
    CHECK(same_bits(outputs[0], outputs[1]));
  }
}

} // namespace convolution_test
