// SPDX-License-Identifier: Apache-2.0
// Files that lie in memory, and what a reader complains about.
#pragma once

#include "actors/recording/input_file.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/data/numbers.hpp"

namespace troupe::test {

/// A file named "file"; `content` must live as long as what is made of it.
inline input_file in_memory(std::string_view content) {
  return input_file::in_memory("file", std::as_bytes(std::span{content}));
}

/// All rows of a dataset of arrays as one tensor.
inline tensor whole(const expected<dataset>& source) {
  REQUIRE(source);
  auto batches = source->batch(source->size()).iterate();
  const auto batch = batches.next();
  REQUIRE(batch);
  return (*batch)->tensors[0];
}

/// The elements of a tensor. @pre It is of type T, and contiguous.
template <class T>
std::vector<T> values(const tensor& from) {
  const auto all = from.values<T>();
  return {all.begin(), all.end()};
}

/// All texts of a dataset; an error stands there as its message.
inline std::vector<std::string> texts_of(const expected<dataset>& source) {
  REQUIRE(source);
  auto iterator = source->iterate();
  return drain(iterator);
}

/// The message with which a reader refuses a file as malformed.
inline std::string complaint_about(const expected<dataset>& source) {
  REQUIRE_FALSE(source);
  CHECK(source.error().code == errc::malformed);
  return source.error().message;
}

/// Opens every cut of a file and the file with every single bit flipped, and reads all there is:
/// nothing may break, and every complaint is one line.
template <class Open>
void try_all_damages(const std::string& whole, const Open& open) {
  const auto read_all = [&open](const std::string& bytes) {
    const auto source = open(in_memory(bytes));
    if (!source) {
      CHECK(source.error().message.starts_with("file: "));
      CHECK(source.error().message.find('\n') == std::string::npos);
      return;
    }
    auto iterator = source->take(100).iterate();
    for (auto one = iterator.next(); !one || *one; one = iterator.next())
      if (!one) CHECK(one.error().message.starts_with("file: "));
  };
  for (size_t length = 0; length < whole.size(); ++length)
    read_all(whole.substr(0, length));
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    auto damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    read_all(damaged);
  }
}

} // namespace troupe::test
