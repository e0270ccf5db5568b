// SPDX-License-Identifier: Apache-2.0
// Measured computing times, read from comma-separated values.
#include "simulation/distributions/trace_table.hpp"

#include "actors/recording/input_file.hpp"
#include "messages/mapped.hpp"
#include "messages/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace troupe {

namespace {

constexpr uint64_t file_bytes_max = uint64_t{1} << 30;
constexpr uint32_t trace_replicas_max = 1'000'000;

std::string_view unquoted(std::string_view text) {
  auto is_quoted = text.size() > 1 && text.front() == '"' && text.back() == '"';
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    auto comma = line.find(',');
    fields.push_back(unquoted(trimmed(line.substr(0, comma))));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

// Whether a field is a number of any kind, infinite and negative ones, too.
bool is_number(std::string_view text) {
  double number = 0;
  return !text.empty()
         && std::from_chars(text.data(), text.data() + text.size(), number).ptr
              == text.data() + text.size();
}

std::optional<double> time_in(std::string_view text) {
  auto number = number_of<double>(text);
  if (!number || !std::isfinite(*number) || *number < 0) return std::nullopt;
  return number;
}

// "0,1,2": what pandas calls columns that have no names. No gradient takes 0 s, then 1 s, then 2 s.
bool counts_up(std::span<const std::string_view> fields) {
  for (size_t i = 0; i < fields.size(); ++i)
    if (fields[i] != std::to_string(i)) return false;
  return true;
}

// 0, 1, 2, ... from the first line to the last.
bool counts_lines(const std::vector<double>& column) {
  for (size_t i = 0; i < column.size(); ++i)
    if (column[i] != static_cast<double>(i)) return false;
  return column.size() > 1;
}

std::string in_small_letters(std::string_view text) {
  std::string result{text};
  for (auto& letter : result)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return result;
}

/// Reads line after line; names the line in errors.
class trace_reader {
public:
  explicit trace_reader(std::string name) : name_(std::move(name)) {}

  expected<void> read(std::string_view line, size_t number) {
    line_ = number;
    auto fields = fields_of(line);
    if (is_first_) {
      is_first_ = false;
      if (!is_number(fields[0]) || counts_up(fields)) return read_heading(fields);
    }
    return is_matrix_ ? read_row(fields) : read_entry(fields);
  }

  expected<trace_table> table() && {
    for (auto& [replica, entries] : entries_) {
      if (replica != matrix_.size())
        return fail(errc::malformed,
                    fmt::format("{}: no line of replica {}", name_, matrix_.size()));
      std::ranges::stable_sort(entries, {}, &entry::order);
      matrix_.push_back(mapped(entries, &entry::seconds));
    }
    // An index without a name, in a file without names.
    if (!has_names_ && matrix_.size() > 1 && counts_lines(matrix_.front()))
      matrix_.erase(matrix_.begin());
    if (matrix_.empty() || matrix_.front().empty())
      return fail(errc::malformed, fmt::format("{}: no times", name_));
    return trace_table{std::move(matrix_)};
  }

private:
  struct entry {
    double order;
    double seconds;
  };

  [[nodiscard]] tl::unexpected<error> refuse(std::string_view reason) const {
    return fail(errc::malformed, fmt::format("{}:{}: {}", name_, line_, reason));
  }

  expected<void> read_heading(std::span<const std::string_view> fields) {
    constexpr std::string_view keys[]
      = {"replica", "worker", "rank", "start", "time", "seconds", "duration"};
    has_names_ = true;
    auto names = mapped(fields, in_small_letters);
    auto is_key = [&](std::string_view name) { return std::ranges::count(keys, name) > 0; };
    if (std::ranges::none_of(names, is_key)) return read_replica_names(names);
    is_matrix_ = false;
    using list = std::initializer_list<std::string_view>;
    auto column = [&names](list spellings) -> std::optional<size_t> {
      for (auto name : spellings)
        if (auto found = std::ranges::find(names, name); found != names.end())
          return static_cast<size_t>(found - names.begin());
      return std::nullopt;
    };
    auto replica = column({"replica", "worker", "rank"});
    auto order = column({"step", "start"});
    auto seconds = column({"seconds", "duration", "time"});
    if (!replica || !order || !seconds)
      return refuse("begin with numbers, with a name for each replica, or with the columns "
                    "'step,replica,seconds' or 'replica,start,duration'");
    columns_ = {*replica, *order, *seconds};
    return {};
  }

  expected<void> read_replica_names(std::span<const std::string> names) {
    has_index_
      = names[0].empty() || names[0] == "step" || names[0] == "index" || names[0] == "unnamed: 0";
    if (names.size() == (has_index_ ? 1U : 0U)) return refuse("there is no column of a replica");
    matrix_.resize(names.size() - (has_index_ ? 1 : 0));
    return {};
  }

  expected<void> read_row(std::span<const std::string_view> fields) {
    if (matrix_.empty()) matrix_.resize(fields.size());
    auto expected_count = matrix_.size() + (has_index_ ? 1 : 0);
    if (fields.size() != expected_count)
      return refuse(
        fmt::format("{} fields, but the lines above have {}", fields.size(), expected_count));
    if (has_index_) fields = fields.subspan(1);
    for (size_t i = 0; i < fields.size(); ++i) {
      auto seconds = time_in(fields[i]);
      if (!seconds) return refuse_number(fields[i]);
      matrix_[i].push_back(*seconds);
    }
    return {};
  }

  expected<void> read_entry(std::span<const std::string_view> fields) {
    double numbers[3] = {};
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i] >= fields.size()) return refuse("too few fields");
      auto number = time_in(fields[columns_[i]]);
      if (!number) return refuse_number(fields[columns_[i]]);
      numbers[i] = *number;
    }
    if (numbers[0] != std::floor(numbers[0]) || numbers[0] >= trace_replicas_max)
      return refuse(fmt::format("'{}' is no replica", fields[columns_[0]]));
    entries_[static_cast<uint32_t>(numbers[0])].push_back({numbers[1], numbers[2]});
    return {};
  }

  [[nodiscard]] tl::unexpected<error> refuse_number(std::string_view field) const {
    return refuse(fmt::format("{} is no number from 0 on", excerpt(field)));
  }

  std::string name_;
  size_t line_ = 0;
  bool is_first_ = true;
  bool has_names_ = false; ///< The first line was no line of times.
  bool is_matrix_ = true;
  bool has_index_ = false; ///< The first column of the matrix is of no replica.
  std::vector<size_t> columns_;
  std::vector<std::vector<double>> matrix_; ///< [replica][draw]
  std::map<uint32_t, std::vector<entry>> entries_;
};

} // namespace

double trace_table::mean() const {
  double sum = 0;
  double count = 0;
  for (const auto& of_replica : seconds)
    for (double time : of_replica) {
      sum += time;
      ++count;
    }
  return sum / count;
}

uint64_t trace_table::draw_count() const {
  return std::ranges::min(seconds, {}, &std::vector<double>::size).size();
}

uint64_t trace_table::time_count(uint64_t replicas) const {
  uint64_t count = 0;
  for (size_t i = 0; i < std::min<uint64_t>(replicas, seconds.size()); ++i)
    count += seconds[i].size();
  return count;
}

double trace_table::repeats(double draws, uint64_t replicas) const {
  auto used = std::min<uint64_t>(replicas, seconds.size());
  auto fewest = std::ranges::min(std::span{seconds}.first(used), {}, &std::vector<double>::size);
  return draws / static_cast<double>(used) / static_cast<double>(fewest.size());
}

expected<trace_table> read_trace_table(std::string_view text, const std::string& name) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  trace_reader reader{name};
  for (size_t number = 1; !text.empty(); ++number) {
    auto end = text.find('\n');
    auto line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line[0] == '#') continue;
    if (auto done = reader.read(line, number); !done) return tl::unexpected<error>(done.error());
  }
  return std::move(reader).table();
}

expected<trace_table> load_trace_table(const std::string& path) {
  auto file = input_file::open(path);
  if (!file) return tl::unexpected<error>(file.error());
  if (file->bytes() > file_bytes_max)
    return fail(errc::limit_exceeded,
                fmt::format("{}: {} bytes, {} are the most", path, file->bytes(), file_bytes_max));
  std::string text(file->bytes(), '\0');
  auto done = file->read_at(0, std::as_writable_bytes(std::span{text}));
  if (!done) return tl::unexpected<error>(done.error());
  return read_trace_table(text, path);
}

} // namespace troupe
