// SPDX-License-Identifier: Apache-2.0
// Tensors into messages and out of them; no element moves.
#include "actors/tensor_payload.hpp"

namespace troupe {

static_assert(payload_element_bytes(static_cast<uint8_t>(dtype::i64)) == element_bytes(dtype::i64));
static_assert(payload_element_bytes(dtype_count) == 0);

tensor_payload to_payload(const tensor& value) {
  auto row_major = value.contiguous();
  return {static_cast<uint8_t>(row_major.type()), row_major.extents().dims(),
          static_cast<const std::byte*>(row_major.data()), row_major.bytes(), row_major.owner()};
}

gradient_payload to_payload(const gradient& value) {
  if (const auto* sparse = std::get_if<indexed_slices>(&value))
    return indexed_slices_payload{to_payload(sparse->indices), to_payload(sparse->values),
                                  sparse->dense_extents.dims()};
  return to_payload(std::get<tensor>(value));
}

tensor to_tensor(const tensor_payload& payload) {
  return tensor::wrap_read_only(payload.data, static_cast<dtype>(payload.dtype),
                                shape{payload.extents}, payload.owner);
}

gradient to_gradient(const gradient_payload& payload) {
  if (const auto* sparse = std::get_if<indexed_slices_payload>(&payload))
    return indexed_slices{to_tensor(sparse->indices), to_tensor(sparse->values),
                          shape{sparse->dense_extents}};
  return to_tensor(std::get<tensor_payload>(payload));
}

} // namespace troupe
