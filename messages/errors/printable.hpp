// SPDX-License-Identifier: Apache-2.0
// Text from elsewhere, for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// UTF-8 text as it may be printed: a control character, with which a terminal could be told to do
/// things, becomes '?' (two, if it has two bytes). @param kept Characters below U+0020 that stay.
[[nodiscard]] std::string printable(std::string text, std::string_view kept = {});

/// Bytes from elsewhere as one line that may be printed: line ends and tabs become blanks, any
/// other control character becomes '?', and so does each byte that belongs to no character of
/// UTF-8.
[[nodiscard]] std::string printable_line(std::string_view bytes);

/// A number in the fewest digits that stand for no other one: "0.1", "1e-09".
[[nodiscard]] std::string printable(double number);

/// Whether all bytes of a text belong to UTF-8.
[[nodiscard]] bool is_utf8(std::string_view text);

} // namespace troupe
