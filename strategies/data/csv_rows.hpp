// SPDX-License-Identifier: Apache-2.0
// The grammar of CSV: where rows begin, and what their fields are.
#pragma once

#include "strategies/data/record_table.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Reads a CSV text letter by letter. The meaning of a letter depends only on which of four places
/// it stands at.
class csv_grammar {
public:
  enum class place : uint8_t {
    field_begin, ///< A quote opens a quoted field here, and only here.
    plain,       ///< In a field without quotes.
    quoted,      ///< In a field with quotes.
    after_quote, ///< Behind a quote in such a field: its end, or half of a doubled quote.
  };

  explicit csv_grammar(char separator) : separator_(separator) {}

  [[nodiscard]] place where() const { return where_; }

  /// True if the letter ends the row.
  [[nodiscard]] bool ends_row(char letter) const {
    return letter == '\n' && where_ != place::quoted;
  }

  /// True if the letter ends the field.
  [[nodiscard]] bool ends_field(char letter) const {
    return where_ != place::quoted && (letter == separator_ || letter == '\n');
  }

  /// Goes on behind a letter.
  void advance(char letter);

private:
  char separator_;
  place where_ = place::field_begin;
};

/// Finds the rows of a file, its header among them; empty lines belong to the row before. A byte
/// order mark at the beginning is passed over. Cost: one pass over the file.
/// Errors: `malformed` for a quoted field without end.
[[nodiscard]] expected<record_table> find_csv_rows(const input_file& file, char separator);

/// The fields of a row, without their quotes. Nothing if a letter follows a closing quote.
[[nodiscard]] std::optional<std::vector<std::string>> split_csv_row(std::string_view row,
                                                                    char separator);

} // namespace troupe
