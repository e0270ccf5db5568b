// SPDX-License-Identifier: Apache-2.0
// Control characters, and bytes that are not UTF-8.
#include "messages/printable.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

std::string printable(std::string text, std::string_view kept) {
  auto before = '\0';
  for (char& letter : text) {
    auto code = static_cast<unsigned char>(letter);
    auto is_kept = kept.find(letter) != std::string_view::npos;
    // U+0080 to U+009F are control characters, too, and two bytes in UTF-8.
    auto is_second = before == '\xc2' && code >= 0x80 && code < 0xa0;
    before = letter;
    if ((code < 0x20 && !is_kept) || code == 0x7f || is_second) letter = '?';
  }
  return text;
}

bool is_utf8(std::string_view text) {
  try {
    static_cast<void>(nlohmann::json(text).dump()); // throws if it is not
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

} // namespace troupe
