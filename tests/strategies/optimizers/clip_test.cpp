// SPDX-License-Identifier: Apache-2.0
// Goal: clips before a push do what tf.clip_by_* do. Method: numbers by hand, for dense and sparse
// gradients of several types, and TensorFlow's answers to infinities and NaN.
#include "kernels/math/cast.hpp"
#include "kernels/tensor/elements.hpp"
#include "strategies/optimizers/clip.hpp"
#include "tests/strategies/small_job.hpp"

#include <cmath>
#include <functional>
#include <limits>

namespace clip_test {

using namespace troupe;

namespace {

constexpr auto infinity = std::numeric_limits<float>::infinity();
constexpr auto not_a_number = std::numeric_limits<float>::quiet_NaN();

tensor dense(std::initializer_list<float> values) {
  return make_tensor({static_cast<int64_t>(values.size())}, values);
}

/// Rows 2 and 0 of a [3, 1] array; or row 2 twice.
indexed_slices sparse(float first, float second, bool is_same_row = false) {
  tensor indices{dtype::i64, {2}};
  indices.mutable_values<int64_t>()[0] = 2;
  indices.mutable_values<int64_t>()[1] = is_same_row ? 2 : 0;
  return {indices, make_tensor({2, 1}, {first, second}), {3, 1}};
}

tensor as(dtype type, const tensor& values) {
  tensor result{type, values.extents()};
  cpu::cast({}, elements{values}, mutable_elements{result});
  return result;
}

std::vector<float> numbers(const gradient& of) {
  const auto* slices = std::get_if<indexed_slices>(&of);
  auto values = as(dtype::f32, slices != nullptr ? slices->values : std::get<tensor>(of));
  return {values.values<float>().begin(), values.values<float>().end()};
}

errc refusal(const std::function<void()>& call) {
  return test::refusal_of(call).code;
}

} // namespace

TEST_SUITE("strategies/optimizers/clip") {
  TEST_CASE("a clip by value cuts elements to the limits, and leaves NaN") {
    auto clipped = numbers(clip_by_value(dense({-3, -1, 0.5F, 4, infinity, not_a_number}), -1, 2));
    CHECK(std::vector(clipped.begin(), clipped.end() - 1)
          == std::vector<float>{-1, -1, 0.5F, 2, 2});
    CHECK(std::isnan(clipped.back()));
    CHECK(numbers(clip_by_value(sparse(-3, 1), -1, 2)) == std::vector<float>{-1, 1});
  }

  TEST_CASE("a clip by norm keeps the direction of what is too long, and all of the rest") {
    CHECK(numbers(clip_by_norm(dense({3, 4}), 2.5)) == std::vector<float>{1.5F, 2});
    CHECK(numbers(clip_by_norm(dense({3, 4}), 5)) == std::vector<float>{3, 4});
    CHECK(numbers(clip_by_norm(dense({0, 0}), 5)) == std::vector<float>{0, 0});
    CHECK(numbers(clip_by_norm(sparse(6, 8), 5)) == std::vector<float>{3, 4});
  }

  TEST_CASE("a gradient that fits already is given back as it is, without a copy") {
    auto short_one = dense({3, 4});
    CHECK(std::get<tensor>(clip_by_norm(short_one, 5)).data() == short_one.data());
    auto together = clip_by_global_norm({short_one}, 5);
    CHECK(std::get<tensor>(together.gradients[0]).data() == short_one.data());
  }

  TEST_CASE("a norm that is not finite shows as in TensorFlow") {
    auto clipped = numbers(clip_by_norm(dense({1, infinity}), 5));
    CHECK(clipped[0] == 0);
    CHECK(std::isnan(clipped[1]));
    for (auto value : numbers(clip_by_norm(dense({1, not_a_number}), 5)))
      CHECK(std::isnan(value));
    for (auto bad : {infinity, not_a_number})
      for (const auto& one : clip_by_global_norm({dense({1, 2}), sparse(bad, 1)}, 5).gradients)
        for (auto value : numbers(one))
          CHECK(std::isnan(value));
  }

  TEST_CASE("a clip by global norm multiplies all gradients by one factor") {
    auto result = clip_by_global_norm({dense({6, 0}), sparse(0, 8)}, 5);
    CHECK(result.global_norm == 10);
    CHECK(numbers(result.gradients[0]) == std::vector<float>{3, 0});
    CHECK(numbers(result.gradients[1]) == std::vector<float>{0, 4});
    const auto& slices = std::get<indexed_slices>(result.gradients[1]);
    CHECK(slices.indices.values<int64_t>()[0] == 2);
    CHECK(slices.dense_extents == shape{3, 1});
    CHECK(clip_by_global_norm({}, 1).global_norm == 0);
  }

  TEST_CASE("rows of one index count one by one") {
    CHECK(global_norm({sparse(3, 4, true)}) == 5);
  }

  TEST_CASE("every floating type keeps its type") {
    for (auto type : {dtype::f32, dtype::f64, dtype::f16, dtype::bf16}) {
      CAPTURE(to_string(type));
      gradient wide = as(type, dense({-6, 8}));
      auto clipped = clip_by_norm(wide, 5);
      CHECK(std::get<tensor>(clipped).type() == type);
      CHECK(numbers(clipped) == std::vector<float>{-3, 4});
      CHECK(numbers(clip_by_value(wide, -1, 1)) == std::vector<float>{-1, 1});
    }
  }

  TEST_CASE("views are clipped as they look") {
    auto columns = make_tensor({2, 2}, {1, 2, 3, 9}).transpose();
    CHECK(numbers(clip_by_value(columns, 0, 4)) == std::vector<float>{1, 3, 2, 4});
  }

  TEST_CASE("integers, arrays of a GPU and limits without sense are refused") {
    gradient integers = tensor{dtype::i32, {2}};
    CHECK(refusal([&] { (void)clip_by_value(integers, 0, 1); }) == errc::type_mismatch);
    CHECK(refusal([&] { (void)global_norm({integers}); }) == errc::type_mismatch);
    float element = 1;
    gradient there = tensor::wrap_on({device_kind::cuda, 0}, &element, dtype::f32, {1}, nullptr);
    CHECK(refusal([&] { (void)global_norm({there}); }) == errc::failed_precondition);
    CHECK(refusal([&] { (void)clip_by_value(dense({1}), 1, 0); }) == errc::invalid_argument);
    CHECK(refusal([&] { (void)clip_by_value(dense({1}), 0, NAN); }) == errc::invalid_argument);
    CHECK(refusal([&] { (void)clip_by_norm(dense({1}), 0); }) == errc::invalid_argument);
    CHECK(refusal([&] { (void)clip_by_global_norm({dense({1})}, -1); }) == errc::invalid_argument);
  }
}

} // namespace clip_test
