// SPDX-License-Identifier: Apache-2.0
// Copies arrays, and stacks lists of them.
#include "strategies/data/dataset_from_tensors.hpp"

#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"

namespace troupe {

namespace {

tensor stacked(const std::vector<tensor>& arrays) {
  require(!arrays.empty(), "dataset_from_tensors: a list of no arrays");
  auto rows = mapped(arrays, [](const auto& array) { return element{{array}, {}}; });
  return value_or_throw(stack(rows)).tensors.front();
}

} // namespace

dataset make_dataset_from_tensors(const std::vector<array_or_list>& arrays) {
  std::vector<tensor> copies;
  copies.reserve(arrays.size());
  for (const auto& rows : arrays) {
    const auto* array = std::get_if<tensor>(&rows);
    copies.push_back(array ? array->clone() : stacked(std::get<std::vector<tensor>>(rows)));
  }
  return dataset::from_tensor_slices(std::move(copies));
}

} // namespace troupe
