// SPDX-License-Identifier: Apache-2.0
// Tensors into messages and out of them; no element moves.
#include "actors/interfaces/tensor_payload.hpp"

#include <utility>

namespace troupe {

static_assert(payload_element_bytes(static_cast<uint8_t>(dtype::i64)) == element_bytes(dtype::i64));
static_assert(payload_element_bytes(dtype_count) == 0);

tensor_payload to_payload(const tensor& value) {
  if (!value.is_contiguous()) return to_payload(value.clone());
  return {static_cast<uint8_t>(value.type()), value.extents().dims(),
          static_cast<const std::byte*>(value.data()), value.bytes(), value.owner()};
}

gradient_payload to_payload(const gradient& value) {
  if (const auto* sparse = std::get_if<indexed_slices>(&value))
    return indexed_slices_payload{to_payload(sparse->indices), to_payload(sparse->values),
                                  sparse->dense_extents.dims()};
  return to_payload(std::get<tensor>(value));
}

tensor to_tensor(tensor_payload payload) {
  return tensor::wrap_read_only(payload.data, static_cast<dtype>(payload.dtype),
                                shape{std::move(payload.extents)}, std::move(payload.owner));
}

gradient to_gradient(gradient_payload payload) {
  if (auto* sparse = std::get_if<indexed_slices_payload>(&payload))
    return indexed_slices{to_tensor(std::move(sparse->indices)),
                          to_tensor(std::move(sparse->values)),
                          shape{std::move(sparse->dense_extents)}};
  return to_tensor(std::get<tensor_payload>(std::move(payload)));
}

} // namespace troupe
