// SPDX-License-Identifier: Apache-2.0
// Copying arrays, and stacking lists of them.
#include "strategies/data/dataset_from_tensors.hpp"

#include "messages/failure.hpp"

namespace troupe {

namespace {

tensor stacked(const std::vector<tensor>& arrays) {
  if (arrays.empty())
    throw failure{error{errc::invalid_argument, "dataset_from_tensors: a list of no arrays"}};
  std::vector<element> rows;
  rows.reserve(arrays.size());
  for (const auto& one : arrays)
    rows.push_back({{one}, {}});
  return value_or_throw(stack(rows)).tensors.front();
}

} // namespace

dataset make_dataset_from_tensors(const std::vector<array_or_list>& arrays) {
  std::vector<tensor> copies;
  copies.reserve(arrays.size());
  for (const auto& one : arrays) {
    const auto* array = std::get_if<tensor>(&one);
    copies.push_back(array ? array->clone() : stacked(std::get<std::vector<tensor>>(one)));
  }
  return dataset::from_tensor_slices(std::move(copies));
}

} // namespace troupe
