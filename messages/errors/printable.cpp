// SPDX-License-Identifier: Apache-2.0
// Control characters, and bytes that are not UTF-8.
#include "messages/errors/printable.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <utility>

namespace troupe {

namespace {

// Bytes of the UTF-8 character with which a text begins; 0 if it begins with none.
// Source: The Unicode Standard, table 3-7, well-formed UTF-8 byte sequences.
size_t first_character_bytes(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  auto first = byte(0);
  if (text.empty() || first < 0x80) return text.empty() ? 0 : 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  // Some second bytes would make a longer form than needed, a surrogate, or a number too large.
  const auto second_min = first == 0xe0 ? 0xa0U : first == 0xf0 ? 0x90U : 0x80U;
  const auto second_max = first == 0xed ? 0x9fU : first == 0xf4 ? 0x8fU : 0xbfU;
  if (byte(1) < second_min || byte(1) > second_max) return 0;
  for (size_t i = 2; i < size; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  return size;
}

} // namespace

std::string printable(std::string text, std::string_view kept) {
  char none = '\0';
  auto* before = &none;
  for (char& letter : text) {
    auto code = static_cast<unsigned char>(letter);
    auto is_kept = kept.find(letter) != std::string_view::npos;
    // U+0080 to U+009F are control characters, too, and two bytes in UTF-8.
    auto is_second = *before == '\xc2' && code >= 0x80 && code < 0xa0;
    if (is_second) *before = '?';
    if ((code < 0x20 && !is_kept) || code == 0x7f || is_second) letter = '?';
    before = &letter;
  }
  return text;
}

std::string printable_line(std::string_view bytes) {
  std::string line;
  line.reserve(bytes.size());
  while (!bytes.empty()) {
    const auto size = first_character_bytes(bytes);
    line += size == 0 ? "?" : bytes.substr(0, size);
    bytes.remove_prefix(std::max<size_t>(size, 1));
  }
  constexpr std::string_view blanks = "\t\n\v\f\r";
  std::ranges::replace_if(
    line, [&](char letter) { return blanks.find(letter) != std::string_view::npos; }, ' ');
  return printable(std::move(line));
}

std::string printable(double number) {
  std::array<char, 32> digits{}; // of 24 at most
  auto* end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), end};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto size = first_character_bytes(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

} // namespace troupe
