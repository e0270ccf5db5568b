// SPDX-License-Identifier: Apache-2.0
// Goal: gradients that f16 cannot hold arrive, and a dynamic scale finds its size. Method: a loss
// by hand with a gradient that is too small for f16, and the course of a scale step by step.
#include "strategies/optimizers/loss_scale.hpp"
#include "tests/strategies/small_job.hpp"

#include <cmath>
#include <limits>

namespace loss_scale_test {

using namespace troupe;

namespace {

/// The f16 gradient of scale * slope * x by x, worked out in f16 as a device would.
tensor half_gradient(double slope, double scale) {
  tensor result{dtype::f16, {1}};
  result.mutable_values<float16>()[0] = to_float16(static_cast<float>(slope * scale));
  return result;
}

float number(const gradient& of) {
  return std::get<tensor>(of).values<float>()[0];
}

errc refusal(auto call) {
  return test::refusal_of(call).code;
}

} // namespace

TEST_SUITE("strategies/optimizers/loss_scale") {
  TEST_CASE("a gradient that f16 would lose arrives through a scale") {
    constexpr double slope = 0x1p-30;
    auto none = loss_scale::fixed(1);
    CHECK(number(none.unscale({half_gradient(slope, none.value())}).gradients[0]) == 0);
    auto scale = loss_scale::dynamic();
    CHECK(scale.value() == 32768);
    auto result = scale.unscale({half_gradient(slope, scale.value())});
    CHECK(result.is_finite);
    CHECK(std::get<tensor>(result.gradients[0]).type() == dtype::f32);
    CHECK(number(result.gradients[0]) == static_cast<float>(slope));
  }

  TEST_CASE("a scale that is too large falls until gradients are finite") {
    auto scale = loss_scale::dynamic();
    int lost = 0;
    for (;;) {
      auto result = scale.unscale({half_gradient(100, scale.value())});
      scale.update(result.is_finite);
      if (result.is_finite) {
        CHECK(number(result.gradients[0]) == 100);
        break;
      }
      ++lost;
    }
    CHECK(lost == 6); // 100 * 2^15 down to 100 * 2^9, below 65504
    CHECK(scale.value() == 512);
  }

  TEST_CASE("a scale grows after so many finite steps in a row") {
    auto scale = loss_scale::dynamic({.initial = 8, .growth_interval = 3});
    for (bool is_finite : {true, true, false, true, true, true, true})
      scale.update(is_finite);
    CHECK(scale.value() == 8); // 8, fell to 4, grew to 8
    CHECK(scale.state().finite_steps == 1);
  }

  TEST_CASE("a scale stays at 1 or above, and finite") {
    auto low = loss_scale::dynamic({.initial = 2});
    for (int i = 0; i < 10; ++i)
      low.update(false);
    CHECK(low.value() == 1);
    auto lower = loss_scale::dynamic({.initial = 0.25});
    lower.update(false);
    CHECK(lower.value() == 0.25);
    auto high = loss_scale::dynamic({.initial = 0x1p126, .growth_interval = 1});
    for (int i = 0; i < 10; ++i)
      high.update(true);
    CHECK(high.value() == 0x1p127);
  }

  TEST_CASE("a fixed scale stays") {
    auto scale = loss_scale::fixed(128);
    for (int i = 0; i < 5000; ++i)
      scale.update(i % 2 == 0);
    CHECK(scale.value() == 128);
  }

  TEST_CASE("a scale that is restored goes on where it was") {
    auto first = loss_scale::dynamic({.growth_interval = 3});
    first.update(false);
    first.update(true);
    first.update(true);
    auto second = loss_scale::dynamic({.growth_interval = 3});
    second.restore(first.state());
    first.update(true);
    second.update(true);
    CHECK(second.state() == first.state());
    CHECK(second.value() == 32768);
  }

  TEST_CASE("a scale that has had more finite steps than it needs grows with the next one") {
    auto scale = loss_scale::dynamic({.growth_interval = 3});
    scale.restore({.scale = 512, .finite_steps = 7});
    scale.update(true);
    CHECK(scale.state() == loss_scale_state{1024, 0});
  }

  TEST_CASE(
    "a scale that was kept as a tensor goes on where it was, and other tensors are refused") {
    const loss_scale_state state{512, 7};
    CHECK(to_loss_scale_state(to_tensor(state)) == state);
    auto refused
      = [](const tensor& kept) { return refusal([&] { (void)to_loss_scale_state(kept); }); };
    CHECK(refused(zeros({2})) == errc::invalid_argument);
    CHECK(refused(zeros({3}, dtype::f64)) == errc::invalid_argument);
    for (auto steps : {-1.0, 1e300, std::nan("")}) {
      auto kept = to_tensor(state);
      kept.mutable_values<double>()[1] = steps;
      CHECK(refused(kept) == errc::invalid_argument);
    }
  }

  TEST_CASE("dense and sparse gradients of all types are divided, and looked through") {
    tensor indices{dtype::i64, {1}};
    indices.mutable_values<int64_t>()[0] = 1;
    indexed_slices slices{indices, make_tensor({1, 2}, {8, 16}), {3, 2}};
    auto wide = zeros({1}, dtype::f64);
    wide.mutable_values<double>()[0] = 1;
    auto result = loss_scale::fixed(8).unscale({slices, wide});
    CHECK(std::get<indexed_slices>(result.gradients[0]).values.values<float>()[1] == 2);
    CHECK(std::get<tensor>(result.gradients[1]).values<double>()[0] == 0.125);
    CHECK(result.is_finite);
    slices.values = make_tensor({1, 2}, {1, std::numeric_limits<float>::infinity()});
    CHECK_FALSE(loss_scale::fixed(8).unscale({wide, slices}).is_finite);
    CHECK_FALSE(all_finite({half_gradient(1, 1e6)}));
    CHECK_FALSE(all_finite({make_tensor({1}, {NAN})}));
    CHECK(all_finite({}));
  }

  TEST_CASE("scales and options that cannot work are refused") {
    auto dynamic = [](loss_scale_options options) { (void)loss_scale::dynamic(options); };
    CHECK(refusal([] { (void)loss_scale::fixed(0); }) == errc::invalid_argument);
    CHECK(refusal([] { (void)loss_scale::fixed(NAN); }) == errc::invalid_argument);
    CHECK(refusal([&] { dynamic({.growth_interval = 0}); }) == errc::invalid_argument);
    CHECK(refusal([&] { dynamic({.growth_factor = 0.5}); }) == errc::invalid_argument);
    CHECK(refusal([&] { dynamic({.backoff_factor = 2}); }) == errc::invalid_argument);
    CHECK(refusal([] { loss_scale::fixed(1).restore({-1, 0}); }) == errc::invalid_argument);
    CHECK(refusal([] { (void)all_finite({tensor{dtype::i32, {1}}}); }) == errc::type_mismatch);
  }
}

} // namespace loss_scale_test
