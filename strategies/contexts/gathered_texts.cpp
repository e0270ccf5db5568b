// SPDX-License-Identifier: Apache-2.0
// Gathers texts as numbers: the length of each, then its letters.
#include "strategies/contexts/gathered_texts.hpp"

#include "messages/errors/throw_failure.hpp"

#include <algorithm>

namespace troupe {

namespace {

tensor numbers_of(const std::string& text) {
  tensor result{dtype::i64, {static_cast<int64_t>(text.size()) + 1}};
  auto numbers = result.mutable_values<int64_t>();
  numbers[0] = static_cast<int64_t>(text.size());
  std::ranges::transform(text, numbers.begin() + 1,
                         [](char letter) { return static_cast<unsigned char>(letter); });
  return result;
}

std::vector<std::string> texts_of(const tensor& all, const std::string& name) {
  std::vector<std::string> texts;
  auto numbers = all.values<int64_t>();
  while (!numbers.empty()) {
    auto length = numbers[0];
    if (length < 0 || static_cast<size_t>(length) >= numbers.size())
      throw_failure(errc::malformed, "{}: a text is longer than what has come", name);
    auto letters = numbers.subspan(1, static_cast<size_t>(length));
    auto& text = texts.emplace_back();
    for (auto letter : letters)
      text += static_cast<char>(letter);
    numbers = numbers.subspan(1 + letters.size());
  }
  return texts;
}

} // namespace

std::vector<std::string> gather_texts(strategy& strategy, const std::string& name,
                                      const std::string& own) {
  context_check::blocking("gather_texts", strategy);
  const auto& group = strategy.layout().group;
  if (!group) return {own};
  auto numbers = numbers_of(own);
  auto all = strategy.cross_replica([numbers, name](cross_replica_context& context) {
    return context.reducing().gather_rows(name, {numbers});
  });
  auto texts = texts_of(all.front(), name);
  if (texts.size() != group->size)
    throw_failure(errc::malformed, "{}: {} texts have come from {} processes", name, texts.size(),
                  group->size);
  return texts;
}

} // namespace troupe
