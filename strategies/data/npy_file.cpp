// SPDX-License-Identifier: Apache-2.0
// Reads the header of a NumPy file: a Python dictionary of three entries.
#include "strategies/data/npy_file.hpp"

#include "messages/errors/failure.hpp"
#include "strategies/data/array_rows.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <string_view>

namespace troupe {

namespace {

// NumPy itself distrusts headers over a hundredth of this.
constexpr uint32_t header_bytes_max = 1 << 20;

// The three entries of the dictionary.
struct npy_header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<uint64_t>> dims;
};

// Reads {'name': value, ...} with the values that NumPy writes. Each step is false if the text is
// otherwise, and `position` then says where.
class dictionary_reader {
public:
  explicit dictionary_reader(std::string_view text) : text_(text) {}

  [[nodiscard]] size_t position() const { return position_; }

  bool read(npy_header& header) {
    if (!take('{')) return false;
    while (!take('}'))
      if (!read_entry(header) || (!take(',') && !next_is('}'))) return false;
    skip_blanks();
    return position_ == text_.size() && header.descr && header.fortran_order && header.dims;
  }

private:
  bool read_entry(npy_header& header) {
    auto name = read_text();
    if (!name || !take(':')) return false;
    if (*name == "descr") return static_cast<bool>(header.descr = read_text());
    if (*name == "fortran_order") return static_cast<bool>(header.fortran_order = read_truth());
    return *name == "shape" && static_cast<bool>(header.dims = read_tuple());
  }

  std::optional<std::string> read_text() {
    const char quote = next_is('"') ? '"' : '\'';
    if (!take(quote)) return {};
    const auto end = text_.find(quote, position_);
    if (end == std::string_view::npos) return {};
    std::string text{text_.substr(position_, end - position_)};
    position_ = end + 1;
    return text;
  }

  std::optional<bool> read_truth() {
    skip_blanks();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.substr(position_).starts_with(word)) continue;
      position_ += word.size();
      return word == "True";
    }
    return {};
  }

  std::optional<std::vector<uint64_t>> read_tuple() {
    std::vector<uint64_t> numbers;
    if (!take('(')) return {};
    while (!take(')')) {
      skip_blanks();
      uint64_t number = 0;
      const auto* begin = text_.data() + position_;
      const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), number);
      if (problem != std::errc{}) return {};
      position_ += static_cast<size_t>(end - begin);
      numbers.push_back(number);
      if (!take(',') && !next_is(')')) return {};
    }
    return numbers;
  }

  void skip_blanks() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n'))
      ++position_;
  }

  bool next_is(char letter) {
    skip_blanks();
    return position_ < text_.size() && text_[position_] == letter;
  }

  bool take(char letter) {
    const bool is_there = next_is(letter);
    position_ += is_there;
    return is_there;
  }

  std::string_view text_;
  size_t position_ = 0;
};

// The text of the dictionary, and where it begins.
struct dictionary_text {
  uint64_t offset = 0;
  std::string text;
};

expected<dictionary_text> read_dictionary(const input_file& file) {
  constexpr std::string_view magic = "\x93NUMPY";
  std::string begin(magic.size() + 2, '\0');
  auto done = file.read_at(0, std::as_writable_bytes(std::span{begin}));
  if (!done) return tl::unexpected(done.error());
  const auto version = static_cast<unsigned char>(begin[magic.size()]);
  if (!begin.starts_with(magic) || version < 1 || version > 3)
    return file.malformed(0, "this does not begin a NumPy file of version 1, 2 or 3");
  uint32_t length = 0;
  const size_t length_bytes = version == 1 ? 2 : 4;
  done
    = file.read_at(begin.size(), std::as_writable_bytes(std::span{&length, 1}).first(length_bytes));
  if (!done) return tl::unexpected(done.error());
  dictionary_text dictionary{begin.size() + length_bytes, {}};
  if (length > header_bytes_max || length > file.bytes() - dictionary.offset) {
    return file.malformed(
      begin.size(), fmt::format("a header of {} bytes: more than the file holds, or more than "
                                "{}",
                                length, header_bytes_max));
  }
  dictionary.text.resize(length);
  done = file.read_at(dictionary.offset, std::as_writable_bytes(std::span{dictionary.text}));
  if (!done) return tl::unexpected(done.error());
  return dictionary;
}

// "<f4" and the like: byte order, kind, bytes.
std::optional<stored_numbers> numbers_of(std::string_view descr) {
  constexpr std::string_view orders = "<|=>";
  if (descr.size() != 3 || orders.find(descr[0]) == std::string_view::npos || descr[2] < '1'
      || descr[2] > '8')
    return {};
  stored_numbers numbers{number_kind::floating, static_cast<uint8_t>(descr[2] - '0'),
                         descr[0] == '>'};
  switch (descr[1]) {
  case 'f':
    break;
  case 'i':
    numbers.kind = number_kind::integer;
    break;
  case 'b':
  case 'u':
    numbers.kind = number_kind::natural;
    break;
  default:
    return {};
  }
  return numbers;
}

expected<array_layout> read_npy_header(const input_file& file) {
  auto dictionary = read_dictionary(file);
  if (!dictionary) return tl::unexpected(dictionary.error());
  dictionary_reader reader{dictionary->text};
  npy_header header;
  if (!reader.read(header)) {
    return file.malformed(dictionary->offset + reader.position(),
                          "here the header is none of an array of numbers");
  }
  const auto numbers = numbers_of(*header.descr);
  if (!numbers) {
    return fail(errc::unimplemented,
                fmt::format("{}: an array of {} holds no numbers that can be read", file.name(),
                            excerpt(*header.descr)));
  }
  if (*header.fortran_order && header.dims->size() > 1) {
    return fail(errc::unimplemented,
                fmt::format("{}: the array is in Fortran order: save numpy.ascontiguousarray(a)",
                            file.name()));
  }
  return array_layout{dictionary->offset + dictionary->text.size(), *numbers,
                      std::move(*header.dims)};
}

} // namespace

dataset npy_file(const std::filesystem::path& path, std::optional<dtype> type) {
  return value_or_throw(input_file::open(path).and_then(
    [type](const input_file& file) { return npy_dataset(file, type); }));
}

expected<dataset> npy_dataset(const input_file& file, std::optional<dtype> type) {
  return read_npy_header(file).and_then(
    [&](const array_layout& layout) { return array_rows(file, layout, type); });
}

} // namespace troupe
