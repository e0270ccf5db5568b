// SPDX-License-Identifier: Apache-2.0
// Goal: how the loss falls says how curved it is. Method: descents on a parabola of known
// curvature, with gradients and losses that are exact or noisy.
#include "actors/policies/curvature_estimate.hpp"
#include "kernels/tensor/random.hpp"
#include "tests/doctest.hpp"

#include <vector>

namespace curvature_estimate_test {

using namespace troupe;

namespace {

constexpr double learning_rate = 0.1;

/// Goes down curvature / 2 |x|^2 in 50 dimensions from 1 in each.
struct descent {
  double curvature = 1;
  double gradient_noise = 0; ///< Deviation of each element.
  double loss_noise = 0;

  [[nodiscard]] std::vector<descent_step> steps(uint64_t seed, size_t count) const {
    constexpr size_t dimensions = 50;
    random_stream draws{random_key{seed, "descent"}};
    std::vector<double> at(dimensions, 1);
    std::vector<descent_step> result;
    for (size_t i = 0; i < count; ++i) {
      descent_step step{.loss = loss_noise * draws.normal(),
                        .squared_norm = -gradient_noise * gradient_noise * dimensions};
      for (auto& x : at) {
        step.loss += curvature / 2 * x * x;
        auto gradient = curvature * x + gradient_noise * draws.normal();
        step.squared_update += gradient * gradient;
        x -= learning_rate * gradient;
      }
      step.squared_norm += step.squared_update; // without what noise adds to it, on average
      result.push_back(step);
    }
    return result;
  }
};

double mean_estimate(const descent& down, size_t count) {
  constexpr uint64_t runs = 200;
  double mean = 0;
  for (uint64_t seed = 0; seed < runs; ++seed)
    mean += *estimate_curvature(down.steps(seed, count), learning_rate) / runs;
  return mean;
}

} // namespace

TEST_SUITE("actors/policies/curvature_estimate") {
  TEST_CASE("without noise the estimate is exact, on a parabola") {
    for (double curvature : {0.1, 1.0, 10.0})
      for (size_t count : {4U, 5U, 40U}) {
        CAPTURE(curvature);
        CAPTURE(count);
        auto seen = estimate_curvature(descent{curvature}.steps(1, count), learning_rate);
        REQUIRE(seen);
        CHECK(*seen == doctest::Approx(learning_rate * curvature));
      }
  }

  TEST_CASE("noisy gradients and losses leave it right on average") {
    CHECK(mean_estimate({.curvature = 4, .gradient_noise = 1}, 40)
          == doctest::Approx(0.4).epsilon(0.05));
    CHECK(mean_estimate({.curvature = 4, .gradient_noise = 1, .loss_noise = 0.3}, 40)
          == doctest::Approx(0.4).epsilon(0.05));
  }

  TEST_CASE("too few steps, or steps that went nowhere, say nothing") {
    CHECK_FALSE(estimate_curvature(descent{}.steps(1, 3), learning_rate));
    CHECK_FALSE(estimate_curvature({}, learning_rate));
    std::vector<descent_step> nowhere(10);
    CHECK_FALSE(estimate_curvature(nowhere, learning_rate));
  }
}

} // namespace curvature_estimate_test
