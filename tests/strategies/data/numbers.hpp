// SPDX-License-Identifier: Apache-2.0
// Datasets of small numbers, and what came out of them as a line of text.
#pragma once

#include "strategies/data/dataset.hpp"

#include <fmt/format.h>
#include <numeric>
#include <string>
#include <vector>

namespace troupe::test {

/// The numbers first, first + 1, ... as one tensor.
inline tensor numbers(int64_t count, int64_t first = 0) {
  tensor result{dtype::i64, {count}};
  auto values = result.mutable_values<int64_t>();
  std::iota(values.begin(), values.end(), first);
  return result;
}

/// The numbers first, first + 1, ... as a dataset of scalars.
inline dataset range(int64_t count, int64_t first = 0) {
  return dataset::from_tensor_slices({numbers(count, first)});
}

/// A position as it is saved.
inline tensor place(int64_t delivered, int64_t size) {
  tensor result{dtype::i64, {2}};
  result.mutable_values<int64_t>()[0] = delivered;
  result.mutable_values<int64_t>()[1] = size;
  return result;
}

/// "1" for a scalar, "[1 2]" for a batch of any rank; tensors and texts of one element with commas
/// between them.
inline std::string text_of(const element& one) {
  std::string text;
  for (const auto& value : one.tensors) {
    std::string line;
    for (auto number : value.contiguous().values<int64_t>())
      line.append(line.empty() ? "" : " ").append(std::to_string(number));
    text.append(text.empty() ? "" : ",");
    text.append(value.rank() == 0 ? line : fmt::format("[{}]", line));
  }
  for (const auto& part : one.texts)
    text.append(text.empty() ? "" : ",").append(part);
  return text;
}

/// Up to `count_max` further elements; an error stands there as its message.
inline std::vector<std::string> drain(dataset_iterator& from, size_t count_max = 1000) {
  std::vector<std::string> all;
  while (all.size() < count_max) {
    auto one = from.next();
    if (one && !*one) break;
    all.push_back(one ? text_of(**one) : one.error().message);
  }
  return all;
}

/// All of a dataset, or its beginning, with blanks between the elements.
inline std::string line_of(const dataset& source, size_t count_max = 1000) {
  auto iterator = source.iterate();
  return fmt::format("{}", fmt::join(drain(iterator, count_max), " "));
}

} // namespace troupe::test
