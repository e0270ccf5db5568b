// SPDX-License-Identifier: Apache-2.0
// Putting elements together.
#include "strategies/data/element.hpp"

#include "messages/assert.hpp"

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
      const auto& one = other.tensors[k];
      const auto& model = first.tensors[k];
      if (one.type() == model.type() && one.extents() == model.extents()) continue;
      return fail(errc::invalid_argument,
                  fmt::format("batch: tensor {} of element {} of the batch is {} {}, of the first "
                              "{} {}: make them alike with map()",
                              k, i, to_string(one.type()), to_string(one.extents()),
                              to_string(model.type()), to_string(model.extents())));
    }
  }
  return {};
}

tensor stack_tensors(std::span<const element> elements, size_t index) {
  const auto& first = elements.front().tensors[index];
  auto dims = first.extents().dims();
  dims.insert(dims.begin(), static_cast<int64_t>(elements.size()));
  tensor result{first.type(), shape{std::move(dims)}};
  auto* target = static_cast<std::byte*>(result.mutable_data());
  for (const auto& one : elements) {
    const auto source = one.tensors[index].contiguous();
    if (source.bytes() != 0) std::memcpy(target, source.data(), source.bytes());
    target += source.bytes();
  }
  return result;
}

} // namespace

expected<element> stack(std::span<const element> elements) {
  TROUPE_ASSERT(!elements.empty());
  if (auto alike = check_alike(elements); !alike) return tl::unexpected(alike.error());
  element result;
  for (size_t k = 0; k < elements.front().tensors.size(); ++k)
    result.tensors.push_back(stack_tensors(elements, k));
  for (const auto& one : elements)
    result.texts.insert(result.texts.end(), one.texts.begin(), one.texts.end());
  return result;
}

} // namespace troupe
