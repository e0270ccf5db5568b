// SPDX-License-Identifier: Apache-2.0
// Stacks elements.
#include "strategies/data/element.hpp"

#include "messages/errors/assert.hpp"

#include <cstring>
#include <fmt/format.h>

namespace troupe {

namespace {

expected<void> check_alike(std::span<const element> elements) {
  const auto& first = elements.front();
  for (size_t i = 1; i < elements.size(); ++i) {
    const auto& other = elements[i];
    if (other.tensors.size() != first.tensors.size() || other.texts.size() != first.texts.size()) {
      return fail(errc::invalid_argument,
                  fmt::format("batch: element {} of the batch has {} tensors and {} texts, the "
                              "first has {} and {}",
                              i, other.tensors.size(), other.texts.size(), first.tensors.size(),
                              first.texts.size()));
    }
    for (size_t k = 0; k < first.tensors.size(); ++k) {
      const auto& value = other.tensors[k];
      const auto& model = first.tensors[k];
      if (value.type() == model.type() && value.extents() == model.extents()) continue;
      return fail(errc::invalid_argument,
                  fmt::format("batch: tensor {} of element {} of the batch is {} {}, of the first "
                              "{} {}: make them alike with map()",
                              k, i, to_string(value.type()), to_string(value.extents()),
                              to_string(model.type()), to_string(model.extents())));
    }
  }
  return {};
}

} // namespace

expected<element> stack(std::span<const element> elements) {
  TROUPE_ASSERT(!elements.empty());
  if (auto alike = check_alike(elements); !alike) return tl::unexpected(alike.error());
  element result;
  for (size_t k = 0; k < elements.front().tensors.size(); ++k) {
    auto dims = elements.front().tensors[k].extents().dims();
    dims.insert(dims.begin(), static_cast<int64_t>(elements.size()));
    result.tensors.push_back(in_sequence(elements, k, shape{std::move(dims)}));
  }
  for (const auto& source : elements)
    result.texts.insert(result.texts.end(), source.texts.begin(), source.texts.end());
  result.rows = elements.size();
  return result;
}

tensor in_sequence(std::span<const element> elements, size_t index, shape extents) {
  tensor result{elements.front().tensors[index].type(), std::move(extents)};
  auto* target = static_cast<std::byte*>(result.mutable_data());
  for (const auto& element : elements) {
    const auto source = element.tensors[index].contiguous();
    if (source.bytes() != 0) std::memcpy(target, source.data(), source.bytes());
    target += source.bytes();
  }
  return result;
}

} // namespace troupe
