// SPDX-License-Identifier: Apache-2.0
// Goal: views show the elements that they should, share memory when they say so, and copies do not.
// Method: small tensors of counted numbers.
#include "kernels/tensor/eigen.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/errors/failure.hpp"
#include "tests/doctest.hpp"

#include <new>
#include <numeric>
#include <type_traits>

namespace tensor_test {

using namespace troupe;

namespace {

/// 0, 1, 2, ... in the given shape.
tensor counted(shape extents) {
  tensor result{dtype::f32, std::move(extents)};
  auto values = result.mutable_values<float>();
  std::iota(values.begin(), values.end(), 0.0F);
  return result;
}

bool holds(const tensor& value, std::vector<float> expected) {
  auto values = value.values<float>();
  return std::equal(values.begin(), values.end(), expected.begin(), expected.end());
}

/// The reason for which `call` throws a `failure`.
template <class Call>
error refusal_of(Call call) {
  try {
    call();
  } catch (const failure& failed) {
    return failed.reason();
  }
  return {};
}

} // namespace

TEST_SUITE("kernels/tensor/tensor") {
  TEST_CASE("a tensor of nothing has no elements") {
    tensor empty;
    CHECK(empty.element_count() == 0);
    CHECK(empty.bytes() == 0);
    CHECK(empty.is_contiguous());
    CHECK(empty.values<float>().empty());
    CHECK(empty.clone().element_count() == 0);
    CHECK(zeros({3, 0, 2}).element_count() == 0);
  }

  TEST_CASE("a tensor that was moved from is one of nothing") {
    static_assert(std::is_nothrow_move_constructible_v<tensor>);
    static_assert(std::is_nothrow_move_assignable_v<tensor>);
    for (const auto& extents : {shape{}, shape{2, 3}}) {
      auto value = zeros(extents, dtype::i64);
      auto taken = std::move(value);
      CHECK(taken.extents() == extents);
      CHECK(taken.is_unique());
      CHECK(value.data() == nullptr); // NOLINT(bugprone-use-after-move)
      CHECK(value.owner() == nullptr);
      CHECK(value.type() == dtype::f32);
      CHECK(value.extents() == shape{0});
      CHECK(value.strides() == std::vector<int64_t>{1});
      CHECK(value.values<float>().empty());
      CHECK(value.slice(0, 0).reshape({0, 3}).extents() == shape{0, 3});
      value = std::move(taken);
      CHECK(value.extents() == extents);
      CHECK(taken.rank() == 1); // NOLINT(bugprone-use-after-move)
      auto& itself = value;
      value = std::move(itself);
      CHECK(value.extents() == extents);
    }
  }

  TEST_CASE("a tensor that is assigned to lets go of its elements") {
    auto value = counted({2});
    auto other = value;
    other = counted({3});
    CHECK(value.is_unique());
    CHECK(holds(other, {0, 1, 2}));
  }

  TEST_CASE("a scalar has rank 0 and one element") {
    auto scalar = make_tensor({}, {7});
    CHECK(scalar.rank() == 0);
    CHECK(scalar.element_count() == 1);
    CHECK(holds(scalar, {7}));
    CHECK(holds(scalar.clone(), {7}));
    CHECK(to_string(scalar.extents()) == "[]");
  }

  TEST_CASE("shapes print as lists") {
    CHECK(to_string(shape{3, 4}) == "[3, 4]");
    CHECK(to_string(shape{0}) == "[0]");
  }

  TEST_CASE("zeros are zero in every type") {
    for (size_t i = 0; i < dtype_count; ++i) {
      auto type = static_cast<dtype>(i);
      auto value = zeros({3, 5}, type);
      CHECK(value.bytes() == 15 * element_bytes(type));
      const auto* bytes = static_cast<const std::byte*>(value.data());
      CHECK(std::count(bytes, bytes + value.bytes(), std::byte{0}) == 15 * element_bytes(type));
    }
  }

  TEST_CASE("a reshaped tensor shares its elements") {
    auto value = counted({2, 6});
    auto view = value.reshape({3, 4});
    view.mutable_values<float>()[5] = 42;
    CHECK(value.values<float>()[5] == 42);
    CHECK(view.strides() == std::vector<int64_t>{4, 1});
    CHECK_FALSE(value.is_unique());
  }

  TEST_CASE("a slice shows some rows") {
    auto value = counted({4, 3});
    CHECK(holds(value.slice(1, 3), {3, 4, 5, 6, 7, 8}));
    CHECK(holds(value.slice(1, 3).slice(1, 2), {6, 7, 8}));
    CHECK(value.slice(2, 2).element_count() == 0);
    CHECK(value.slice(0, 4).extents() == value.extents());
  }

  TEST_CASE("a transposed tensor is a view until it is made contiguous") {
    auto value = counted({2, 3});
    auto view = value.transpose();
    CHECK(view.extents() == shape{3, 2});
    CHECK(view.data() == value.data());
    CHECK_FALSE(view.is_contiguous());
    auto copy = view.contiguous();
    CHECK(copy.data() != value.data());
    CHECK(holds(copy, {0, 3, 1, 4, 2, 5}));
    CHECK(holds(view.slice(1, 3).clone(), {1, 4, 2, 5}));
    CHECK(view.transpose().is_contiguous());
    CHECK(value.contiguous().data() == value.data());
  }

  TEST_CASE("strides of extents 1 do not matter") {
    auto value = counted({1, 5});
    CHECK(value.transpose().is_contiguous());
    CHECK(holds(value.transpose(), {0, 1, 2, 3, 4}));
  }

  TEST_CASE("only the last handle to its elements is unique") {
    auto value = counted({4});
    CHECK(value.is_unique());
    auto other = value;
    CHECK_FALSE(value.is_unique());
    other = {};
    CHECK(value.is_unique());
    CHECK(value.clone().is_unique());
  }

  TEST_CASE("wrapped elements live as long as a handle to them") {
    auto memory = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3, 4});
    std::weak_ptr<std::vector<float>> watch = memory;
    auto* data = memory->data();
    auto value = tensor::wrap_read_only(data, dtype::f32, {2, 2}, std::move(memory));
    auto view = value.slice(1, 2);
    value = {};
    CHECK(view.read_only());
    CHECK(holds(view, {3, 4}));
    CHECK_FALSE(watch.expired());
    CHECK_FALSE(view.clone().read_only());
    view = {};
    CHECK(watch.expired());
  }

  TEST_CASE("Eigen sees the elements, whatever their strides") {
    auto value = counted({2, 3});
    auto matrix = matrix_of<float>(value);
    CHECK(matrix.rows() == 2);
    CHECK(matrix(1, 0) == 3);
    CHECK(matrix_of<float>(value.transpose())(0, 1) == 3);
    auto rows = counted({3});
    mutable_vector_of<float>(rows) *= 2;
    CHECK(holds(rows, {0, 2, 4}));
    auto product = zeros({2, 2});
    mutable_matrix_of<float>(product) = matrix * matrix_of<float>(value.transpose());
    CHECK(holds(product, {5, 14, 14, 50}));
    auto column = tensor::wrap_strided(value.mutable_data(), dtype::f32, {2}, {3}, value.owner());
    CHECK(vector_of<float>(column).sum() == 3);
  }

  TEST_CASE("a tensor on a device says so, and so do its views") {
    const device second_gpu{device_kind::cuda, 1};
    float elements[4] = {1, 2, 3, 4};
    auto value = tensor::wrap_on(second_gpu, elements, dtype::f32, {4}, nullptr);
    CHECK(value.device() == second_gpu);
    CHECK(value.slice(1, 3).reshape({2, 1}).device() == second_gpu);
    CHECK(value.values<float>(second_gpu).data() == elements);
    CHECK(to_string(value.device()) == "gpu:1");
    CHECK(to_string(zeros({1}).device()) == "cpu:0");
  }

  TEST_CASE("elements of another type are refused, with both types") {
    auto value = counted({2, 3});
    auto read = refusal_of([&] { (void)value.values<double>(); });
    CHECK(read.code == errc::type_mismatch);
    CHECK(read.message
          == "a tensor of f32 [2, 3] has no elements of f64: ask for <float>, not for <double>, or "
             "make it with dtype::f64");
    CHECK(refusal_of([&] { (void)value.mutable_values<int64_t>(); }).code == errc::type_mismatch);
    CHECK(refusal_of([&] { (void)matrix_of<double>(value); }).message == read.message);
    CHECK(refusal_of([&] { (void)mutable_matrix_of<double>(value); }) == read);
  }

  TEST_CASE("elements that lie otherwise than the caller expects are refused") {
    auto value = counted({2, 3});
    auto transposed = refusal_of([&] { (void)value.transpose().values<float>(); });
    CHECK(transposed.code == errc::failed_precondition);
    CHECK(transposed.message.find("contiguous()") != std::string::npos);
    auto elsewhere = refusal_of([&] { (void)value.values<float>({device_kind::cuda, 1}); });
    CHECK(elsewhere.code == errc::failed_precondition);
    CHECK(elsewhere.message.find("lies on cpu:0, not on gpu:1") != std::string::npos);
    auto on_gpu
      = tensor::wrap_on({device_kind::cuda, 1}, value.mutable_data(), dtype::f32, {2}, nullptr);
    CHECK(refusal_of([&] { (void)on_gpu.clone(); }).code == errc::failed_precondition);
    auto mapped = refusal_of([&] { (void)vector_of<float>(on_gpu); });
    CHECK(mapped.code == errc::failed_precondition);
    CHECK(mapped.message.ends_with("[2] lies on gpu:1: copy it to the CPU before"));
    CHECK(refusal_of([&] { (void)mutable_matrix_of<float>(on_gpu); }) == mapped);
  }

  TEST_CASE("read-only elements are not written") {
    auto value = counted({3}).as_read_only();
    auto refused = refusal_of([&] { (void)value.mutable_values<float>(); });
    CHECK(refused.code == errc::failed_precondition);
    CHECK(refused.message.find("read-only") != std::string::npos);
    CHECK(refusal_of([&] { (void)value.mutable_data(); }) == refused);
    CHECK(refusal_of([&] { (void)mutable_vector_of<float>(value); }) == refused);
  }

  TEST_CASE("shapes that the elements do not have are refused") {
    auto value = counted({2, 3});
    auto too_few = refusal_of([] { (void)make_tensor({2, 2}, {1, 2, 3}); });
    CHECK(too_few.code == errc::invalid_argument);
    CHECK(too_few.message == "a tensor of f32 [2, 2] takes 4 values, not 3");
    CHECK(refusal_of([&] { (void)value.reshape({4}); }).code == errc::invalid_argument);
    CHECK(refusal_of([&] { (void)value.transpose().reshape({6}); }).code
          == errc::failed_precondition);
    CHECK(refusal_of([&] { (void)counted({3}).transpose(); }).code == errc::invalid_argument);
    CHECK(refusal_of([&] { (void)vector_of<float>(value); }).code == errc::invalid_argument);
    CHECK(refusal_of([&] { (void)matrix_of<float>(counted({6})); }).code == errc::invalid_argument);
  }

  TEST_CASE("rows that a tensor does not have are refused") {
    auto value = counted({2, 3});
    for (auto [begin, end] : {std::pair{-1, 1}, std::pair{2, 1}, std::pair{0, 3}})
      CHECK(refusal_of([&] { (void)value.slice(begin, end); }).code == errc::out_of_range);
    CHECK(refusal_of([] { (void)make_tensor({}, {7}).slice(0, 1); }).code == errc::out_of_range);
  }

  TEST_CASE("extents that no memory has are refused") {
    CHECK(refusal_of([] { (void)zeros({2, -1}); }).code == errc::invalid_argument);
    CHECK(refusal_of([] { (void)zeros({1L << 40, 1L << 40}); }).code == errc::limit_exceeded);
    CHECK(refusal_of([] { (void)zeros({1L << 62}); }).code == errc::limit_exceeded);
  }

  TEST_CASE("want of memory names the tensor and its bytes") {
    CHECK_THROWS_WITH_AS(
      static_cast<void>(zeros({1L << 58})),
      "there is no memory for a tensor of f32 [288230376151711744], 1152921504606846976 bytes; "
      "make smaller ones",
      std::bad_alloc);
  }
}

} // namespace tensor_test
