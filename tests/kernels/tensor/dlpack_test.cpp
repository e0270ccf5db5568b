// SPDX-License-Identifier: Apache-2.0
// Goal: tensors cross the border to other libraries with the right elements and the right owner,
// and what makes no sense is refused and given back. Method: both directions, and a foreign lender.
#include "kernels/tensor/dlpack.hpp"
#include "tests/doctest.hpp"

#include <functional>
#include <vector>

namespace dlpack_test {

using namespace troupe;

namespace {

/// A library that lends a 2 x 3 matrix of floats, and notices when it comes back.
struct lender {
  std::vector<float> values{0, 1, 2, 3, 4, 5};
  std::vector<int64_t> dims{2, 3};
  std::vector<int64_t> strides{3, 1};
  int returned = 0;
  DLManagedTensor managed{};

  lender() {
    managed.dl_tensor
      = {values.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, dims.data(), strides.data(), 0};
    managed.manager_ctx = this;
    managed.deleter
      = [](DLManagedTensor* self) { ++static_cast<lender*>(self->manager_ctx)->returned; };
  }

  [[nodiscard]] dlpack_handle lend() { return dlpack_handle{&managed}; }
};

/// How a lent tensor, changed in some way, is refused.
errc refusal(const std::function<void(DLTensor&)>& change) {
  lender library;
  change(library.managed.dl_tensor);
  auto result = from_dlpack(library.lend());
  CHECK(library.returned == 1);
  return result ? errc::none : result.error().code;
}

} // namespace

TEST_SUITE("kernels/tensor/dlpack") {
  TEST_CASE("a borrowed tensor shares memory and is given back with its last handle") {
    lender library;
    auto borrowed = from_dlpack(library.lend());
    REQUIRE(borrowed);
    CHECK(borrowed->extents() == shape{2, 3});
    CHECK(borrowed->data() == library.values.data());
    CHECK_FALSE(borrowed->read_only());
    auto view = borrowed->slice(1, 2);
    borrowed = tensor{};
    CHECK(library.returned == 0);
    view.mutable_values<float>()[0] = 42;
    view = {};
    CHECK(library.returned == 1);
    CHECK(library.values[3] == 42);
  }

  TEST_CASE("strides, offsets and missing strides are understood") {
    lender library;
    library.dims = {3, 2};
    library.strides = {1, 3};
    CHECK(from_dlpack(library.lend())->contiguous().values<float>()[1] == 3);
    library.managed.dl_tensor.strides = nullptr;
    CHECK(from_dlpack(library.lend())->values<float>()[1] == 1);
    library.dims = {1, 2};
    library.managed.dl_tensor.byte_offset = 8;
    CHECK(from_dlpack(library.lend())->values<float>()[0] == 2);
    library.managed.dl_tensor.ndim = 0;
    library.managed.dl_tensor.shape = nullptr;
    auto scalar = from_dlpack(library.lend());
    CHECK(scalar->rank() == 0);
    CHECK(scalar->values<float>()[0] == 2);
  }

  TEST_CASE("a tensor on a GPU is lent and borrowed where it lies") {
    lender library;
    library.managed.dl_tensor.device = {kDLCUDA, 1};
    auto borrowed = from_dlpack(library.lend());
    REQUIRE(borrowed);
    CHECK(borrowed->device() == device{device_kind::cuda, 1});
    CHECK(borrowed->data() == library.values.data());
    CHECK(borrowed->extents() == shape{2, 3});
    {
      auto lent = to_dlpack(*borrowed);
      REQUIRE(lent);
      const auto& view = (*lent)->dl_tensor;
      CHECK(view.device.device_type == kDLCUDA);
      CHECK(view.device.device_id == 1);
      CHECK(view.data == library.values.data());
      borrowed = tensor{};
      CHECK(library.returned == 0);
    }
    CHECK(library.returned == 1);
    library.strides = {1, 2};
    auto gaps = from_dlpack(library.lend());
    REQUIRE(!gaps);
    CHECK(gaps.error()
          == error{errc::unimplemented, "DLPack tensor: it does not lie row by row on gpu:1: make "
                                        "it contiguous there"});
    library.dims = {1, 6}; // where an extent is 1, its stride says nothing
    library.strides = {1, 1};
    CHECK(from_dlpack(library.lend()));
  }

  TEST_CASE("a broadcast tensor may be read but not written") {
    lender library;
    library.strides = {0, 1};
    auto borrowed = from_dlpack(library.lend());
    REQUIRE(borrowed);
    CHECK(borrowed->read_only());
    CHECK(borrowed->clone().values<float>()[4] == 1);
  }

  TEST_CASE("a tensor that we cannot compute with is refused and given back") {
    CHECK(refusal([](DLTensor& t) { t.dtype = {kDLUInt, 8, 1}; }) == errc::type_mismatch);
    CHECK(refusal([](DLTensor& t) { t.dtype = {kDLFloat, 32, 4}; }) == errc::type_mismatch);
    CHECK(refusal([](DLTensor& t) { t.dtype = {kDLComplex, 64, 1}; }) == errc::type_mismatch);
    CHECK(refusal([](DLTensor& t) { t.dtype = {kDLBfloat, 32, 1}; }) == errc::type_mismatch);
    CHECK(refusal([](DLTensor& t) { t.device = {kDLCUDA, -1}; }) == errc::unimplemented);
    CHECK(refusal([](DLTensor& t) { t.device = {kDLVulkan, 0}; }) == errc::unimplemented);
    CHECK(refusal([](DLTensor& t) { t.ndim = -1; }) == errc::invalid_argument);
    CHECK(refusal([](DLTensor& t) { t.shape = nullptr; }) == errc::invalid_argument);
    CHECK(refusal([](DLTensor& t) { t.shape[1] = -3; }) == errc::invalid_argument);
    CHECK(refusal([](DLTensor& t) { t.shape[1] = INT64_MAX; }) == errc::invalid_argument);
    CHECK(refusal([](DLTensor& t) { t.data = nullptr; }) == errc::invalid_argument);
    CHECK(refusal([](DLTensor& t) { t.byte_offset = 2; }) == errc::invalid_argument);
    CHECK(from_dlpack(nullptr).error().code == errc::invalid_argument);
  }

  TEST_CASE("a lender without a deleter is none to worry about") {
    lender library;
    library.managed.deleter = nullptr;
    CHECK(from_dlpack(library.lend()));
    CHECK(library.returned == 0);
  }

  TEST_CASE("a lent tensor keeps its elements until it comes back") {
    for (size_t i = 0; i < dtype_count; ++i) {
      auto type = static_cast<dtype>(i);
      auto value = zeros({2, 3}, type);
      const auto* data = value.data();
      auto lent = to_dlpack(value.transpose());
      REQUIRE(lent);
      CHECK_FALSE(value.is_unique());
      value = {};
      const auto& view = (*lent)->dl_tensor;
      CHECK(view.data == data);
      CHECK(view.ndim == 2);
      CHECK(view.shape[0] == 3);
      CHECK(view.strides[0] == 1);
      CHECK(view.strides[1] == 3);
      CHECK(view.dtype.bits == element_bytes(type) * 8);
      auto back = from_dlpack(std::move(*lent));
      REQUIRE(back);
      CHECK(back->type() == type);
      CHECK(back->data() == data);
      CHECK(back->extents() == shape{3, 2});
    }
  }

  TEST_CASE("a read-only tensor is not lent, a clone of it is") {
    auto value = zeros({2}).as_read_only();
    CHECK(to_dlpack(value).error().code == errc::failed_precondition);
    CHECK(to_dlpack(value.clone()));
  }

  TEST_CASE("a raw pointer may go through a C interface") {
    auto value = zeros({2});
    DLManagedTensor* raw = to_dlpack(value)->release();
    CHECK_FALSE(value.is_unique());
    raw->deleter(raw);
    CHECK(value.is_unique());
  }
}

} // namespace dlpack_test
