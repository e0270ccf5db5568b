// SPDX-License-Identifier: Apache-2.0
// Goes through CSV letter by letter.
#include "strategies/data/csv_rows.hpp"

#include <array>
#include <fmt/format.h>

namespace troupe {

void csv_grammar::advance(char letter) {
  if (ends_field(letter))
    where_ = place::field_begin;
  else if (where_ == place::quoted)
    where_ = letter == '"' ? place::after_quote : place::quoted;
  else if (letter == '"' && where_ != place::plain)
    where_ = place::quoted;
  else
    where_ = place::plain;
}

namespace {

// Rows as they turn up, one letter after the other.
class csv_row_finder {
public:
  csv_row_finder(uint64_t begin, char separator) : grammar_(separator), begin_(begin) {}

  void take(uint64_t offset, char letter) {
    const bool ends_row = grammar_.ends_row(letter);
    if (is_after_return_ && !ends_row && !lone_return_) lone_return_ = offset - 1;
    is_after_return_ = letter == '\r' && !is_in_quotes();
    is_empty_ &= ends_row || letter == '\r';
    grammar_.advance(letter);
    if (!ends_row) return;
    finish_row();
    begin_ = offset + 1;
  }

  void finish_row() {
    if (!is_empty_) offsets_.push_back(begin_);
    is_empty_ = true;
  }

  [[nodiscard]] bool is_in_quotes() const { return grammar_.where() == csv_grammar::place::quoted; }

  /// The first carriage return, outside quotes, that no line feed follows.
  [[nodiscard]] std::optional<uint64_t> lone_return() const { return lone_return_; }

  [[nodiscard]] uint64_t row_begin() const { return begin_; }

  [[nodiscard]] std::vector<uint64_t>& offsets() { return offsets_; }

private:
  csv_grammar grammar_;
  uint64_t begin_;
  bool is_empty_ = true;
  bool is_after_return_ = false;
  std::optional<uint64_t> lone_return_;
  std::vector<uint64_t> offsets_;
};

expected<uint64_t> text_begin(const input_file& file) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  std::array<char, byte_order_mark.size()> first{};
  if (file.bytes() < first.size()) return 0;
  auto done = file.read_at(0, std::as_writable_bytes(std::span{first}));
  if (!done) return tl::unexpected(done.error());
  return std::string_view{first.data(), first.size()} == byte_order_mark ? first.size() : 0;
}

} // namespace

expected<record_table> find_csv_rows(const input_file& file, char separator) {
  auto begin = text_begin(file);
  if (!begin) return tl::unexpected(begin.error());
  csv_row_finder rows{*begin, separator};
  auto done = for_each_block(file, *begin, [&](uint64_t offset, std::string_view block) {
    for (char letter : block)
      rows.take(offset++, letter);
  });
  if (!done) return tl::unexpected(done.error());
  if (rows.is_in_quotes()) {
    return file.malformed(rows.row_begin(), fmt::format("row {}: a field in quotes does not end",
                                                        rows.offsets().size()));
  }
  if (rows.lone_return())
    return file.malformed(*rows.lone_return(), "a carriage return that no line feed follows: end "
                                               "lines in one, or in both");
  rows.finish_row();
  rows.offsets().push_back(file.bytes());
  return record_table{file, std::move(rows.offsets())};
}

std::optional<std::vector<std::string>> split_csv_row(std::string_view row, char separator) {
  using place = csv_grammar::place;
  std::vector<std::string> fields(1);
  csv_grammar grammar{separator};
  for (size_t i = 0; i < row.size() && !grammar.ends_row(row[i]); ++i) {
    const bool is_line_end = row[i] == '\r' && (i + 1 == row.size() || row[i + 1] == '\n');
    if (is_line_end && grammar.where() != place::quoted) continue;
    const auto before = grammar.where();
    if (grammar.ends_field(row[i])) fields.emplace_back();
    grammar.advance(row[i]);
    const auto now = grammar.where();
    if (before == place::after_quote && now == place::plain) return {};
    // Not the quotes around a field, but the second of two within it.
    if (now == place::plain || (now == place::quoted && before != place::field_begin))
      fields.back() += row[i];
  }
  return fields;
}

} // namespace troupe
