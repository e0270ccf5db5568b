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

/// Copies parts that lie apart into one place, which becomes the payload's owner.
void join_parts(parts_reader parts, tensor_payload& target) {
  auto joined = std::make_shared_for_overwrite<std::byte[]>(target.bytes);
  auto* position = joined.get();
  for (auto part : parts) {
    std::memcpy(position, part.begin(), part.size());
    position += part.size();
  }
  target.data = joined.get();
  target.owner = std::move(joined);
}

} // namespace

tensor_payload read_tensor(wire::Tensor::Reader tensor, std::shared_ptr<const void> owner) {
  auto parts = tensor.getParts();
  tensor_payload result;
  result.dtype = static_cast<uint8_t>(tensor.getDtype());
  result.extents = read_extents(tensor.getShape());
  result.owner = std::move(owner);
  bool follow_each_other = true;
  for (auto part : parts) {
    auto* begin = reinterpret_cast<const std::byte*>(part.begin());
    if (result.bytes == 0) result.data = begin;
    if (begin != result.data + result.bytes) follow_each_other = false;
    result.bytes += part.size();
  }
  if (!follow_each_other) join_parts(parts, result);
  return result;
}

gradient_payload read_gradient(wire::Gradient::Reader gradient,
                               const std::shared_ptr<const void>& owner) {
  switch (gradient.which()) {
  case wire::Gradient::DENSE:
    return read_tensor(gradient.getDense(), owner);
  case wire::Gradient::SPARSE: {
    auto slices = gradient.getSparse();
    return indexed_slices_payload{read_tensor(slices.getIndices(), owner),
                                  read_tensor(slices.getValues(), owner),
                                  read_extents(slices.getDenseShape())};
  }
  case wire::Gradient::NONE:
    break;
  }
  return std::monostate{};
}

} // namespace troupe
