// SPDX-License-Identifier: Apache-2.0
// Reading tensors where they lie.
#include "messages/tensor_message.hpp"

#include <bit>
#include <cstring>

namespace troupe {
namespace {

// Elements travel in little-endian order and are used where they lie.
static_assert(std::endian::native == std::endian::little);

using parts_reader = capnp::List<capnp::Data>::Reader;

std::vector<int64_t> read_extents(capnp::List<int64_t>::Reader extents) {
  std::vector<int64_t> result(extents.size());
  for (capnp::uint i = 0; i < extents.size(); ++i)
    result[i] = extents[i];
  return result;
}

/// Copies parts that lie apart into one place.
std::shared_ptr<const std::byte[]> joined(parts_reader parts, size_t bytes) {
  auto whole = std::make_shared_for_overwrite<std::byte[]>(bytes);
  auto* position = whole.get();
  for (auto part : parts) {
    std::memcpy(position, part.begin(), part.size());
    position += part.size();
  }
  return whole;
}

} // namespace

tensor read_tensor(wire::Tensor::Reader from, std::shared_ptr<const void> owner) {
  auto parts = from.getParts();
  // A scalar has its element, so this field of another schema's message was not set.
  if (parts.size() == 0 && from.getShape().size() == 0) return {};
  const std::byte* data = nullptr;
  size_t bytes = 0;
  bool follow_each_other = true;
  for (auto part : parts) {
    auto* begin = reinterpret_cast<const std::byte*>(part.begin());
    if (bytes == 0) data = begin;
    if (begin != data + bytes) follow_each_other = false;
    bytes += part.size();
  }
  if (!follow_each_other) {
    auto whole = joined(parts, bytes);
    data = whole.get();
    owner = std::move(whole);
  }
  auto type = static_cast<dtype>(from.getDtype());
  shape extents{read_extents(from.getShape())};
  device where{static_cast<device_kind>(from.getDeviceKind()), from.getDeviceIndex()};
  if (where.kind == device_kind::cpu)
    return tensor::wrap_read_only(data, type, std::move(extents), std::move(owner));
  return tensor::wrap_on(where, const_cast<std::byte*>(data), type, std::move(extents),
                         std::move(owner))
    .as_read_only();
}

optional_gradient read_gradient(wire::Gradient::Reader gradient,
                                const std::shared_ptr<const void>& owner) {
  switch (gradient.which()) {
  case wire::Gradient::DENSE:
    return read_tensor(gradient.getDense(), owner);
  case wire::Gradient::SPARSE: {
    auto slices = gradient.getSparse();
    return indexed_slices{read_tensor(slices.getIndices(), owner),
                          read_tensor(slices.getValues(), owner),
                          shape{read_extents(slices.getDenseShape())}};
  }
  case wire::Gradient::NONE:
    break;
  }
  return std::nullopt;
}

} // namespace troupe
