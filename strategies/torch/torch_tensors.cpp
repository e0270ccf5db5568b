// SPDX-License-Identifier: Apache-2.0
// Lends memory to libtorch, and borrows its own.
#include "strategies/torch/torch_tensors.hpp"

#include "messages/errors/throw_failure.hpp"

#include <ATen/ATen.h>
#include <memory>
#include <sstream>
#include <utility>

namespace troupe {

namespace {

// By the value of a `dtype`.
constexpr at::ScalarType torch_types[dtype_count]
  = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt, at::kLong};

dtype type_of(const at::Tensor& value) {
  for (size_t i = 0; i < dtype_count; ++i)
    if (value.scalar_type() == torch_types[i]) return static_cast<dtype>(i);
  throw_failure(
    errc::type_mismatch,
    "an array of libtorch has elements of type {}; there are f32, f64, f16, bf16, i32 and i64",
    at::toString(value.scalar_type()));
}

} // namespace

at::Tensor to_torch(const tensor& value) {
  if (value.device().kind != device_kind::cpu)
    throw_failure(errc::unimplemented,
                  "an array on {} is not lent to libtorch: copy it to the host first",
                  to_string(value.device()));
  // The deleter's copy of the tensor is what keeps the elements.
  return at::from_blob(
    const_cast<void*>(value.data()), value.extents().dims(), value.strides(), [value](void*) {},
    at::TensorOptions{}.dtype(torch_types[static_cast<size_t>(value.type())]));
}

tensor from_torch(const at::Tensor& value) {
  if (value.layout() != at::kStrided || !value.device().is_cpu()) {
    std::ostringstream place;
    place << value.layout() << " on " << value.device();
    throw_failure(errc::unimplemented,
                  "an array of libtorch is {}; only dense ones on the host are taken", place.str());
  }
  auto type = type_of(value);
  shape extents{value.sizes().vec()};
  auto owner = std::make_shared<at::Tensor>(value.detach());
  // Along an extent of 1, a stride of libtorch may be anything.
  auto strides = value.is_contiguous() ? row_major_strides(extents) : value.strides().vec();
  return tensor::wrap_strided(value.data_ptr(), type, std::move(extents), std::move(strides),
                              std::move(owner));
}

gradient gradient_from_torch(const at::Tensor& value) {
  if (value.layout() != at::kSparse) return from_torch(value);
  if (value.sparse_dim() != 1)
    throw_failure(errc::unimplemented,
                  "a gradient of libtorch has coordinates of {} dimensions; only rows are taken",
                  value.sparse_dim());
  return indexed_slices{from_torch(value._indices()[0].contiguous()),
                        from_torch(value._values().contiguous()), shape{value.sizes().vec()}};
}

} // namespace troupe
