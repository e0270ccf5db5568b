// SPDX-License-Identifier: Apache-2.0
// Lays arrays behind each other, and cuts them apart again.
#include "strategies/reduce/packs.hpp"

#include <cstring>

namespace troupe {

std::vector<size_t> pack_by_bytes(std::span<const size_t> bytes, int64_t bytes_per_pack) {
  std::vector<size_t> packs;
  size_t filled = 0;
  for (auto size : bytes) {
    auto is_full = bytes_per_pack > 0 && filled > static_cast<size_t>(bytes_per_pack);
    if (packs.empty() || is_full) {
      packs.push_back(0);
      filled = 0;
    }
    ++packs.back();
    filled += size;
  }
  return packs;
}

tensor laid_flat(std::span<const tensor> parts) {
  int64_t elements = 0;
  for (const auto& part : parts)
    elements += part.extents().element_count();
  tensor flat{parts.front().type(), {elements}};
  auto* to = static_cast<std::byte*>(flat.mutable_data());
  for (const auto& part : parts) {
    auto from = part.contiguous();
    if (from.bytes() > 0) std::memcpy(to, from.data(), from.bytes());
    to += from.bytes();
  }
  return flat;
}

std::vector<tensor> cut(const tensor& flat, std::span<const shape> extents) {
  std::vector<tensor> parts;
  int64_t begin = 0;
  for (const auto& shape : extents) {
    auto end = begin + shape.element_count();
    parts.push_back(flat.slice(begin, end).reshape(shape));
    begin = end;
  }
  return parts;
}

} // namespace troupe
