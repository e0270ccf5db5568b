// SPDX-License-Identifier: Apache-2.0
// Makes elements of rows of text.
#include "strategies/data/csv_file.hpp"

#include "kernels/tensor/elements.hpp"
#include "messages/errors/failure.hpp"
#include "messages/text.hpp"
#include "strategies/data/csv_rows.hpp"
#include "strategies/data/dataset_stage.hpp"
#include "strategies/data/stored_numbers.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <locale>
#include <memory>
#include <sstream>
#include <type_traits>

namespace troupe {

namespace {

using fields = std::vector<std::string>;

// A tensor of an element: its type, and the places of its columns in a row.
struct tensor_plan {
  std::vector<size_t> columns;
  dtype type = dtype::f32;
};

// How each row of a file becomes an element.
struct row_plan {
  fields names;
  std::vector<tensor_plan> tensors;
  std::vector<size_t> texts;
  char separator = ',';
  uint64_t first_row = 0; // In the table: 1 behind a header.
};

// A number that is out of range, if it is so because it is too small. The library for reading says
// the same of one that is too large.
template <class Number>
std::optional<Number> nearest_to_zero(std::string_view text) {
  if constexpr (std::is_integral_v<Number>) return {};
  std::istringstream stream{std::string{text}};
  stream.imbue(std::locale::classic());
  Number number{};
  if (!(stream >> number) || std::isinf(number)) return {};
  return number;
}

// The whole of `text` as a number, or nothing.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  text = trimmed(text, " \t");
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  Number number{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size()) return {};
  if (problem == std::errc::result_out_of_range) return nearest_to_zero<Number>(text);
  if (problem != std::errc{}) return {};
  return number;
}

// Writes the number in `text` to place `index` of `to`; false if it is none, or too large.
bool parse_into(tensor& to, size_t index, std::string_view text) {
  if (!is_floating(to.type())) {
    const auto number = number_in<int64_t>(text);
    if (!number) return false;
    if (to.type() == dtype::i64) {
      to.mutable_values<int64_t>()[index] = *number;
      return true;
    }
    to.mutable_values<int32_t>()[index] = static_cast<int32_t>(*number);
    return static_cast<int32_t>(*number) == *number;
  }
  bool fits = false;
  visit_floating(to.type(), [&]<class T>(T) {
    const auto number = number_in<rounded_first<T>>(text);
    if (!number) return;
    const auto value = narrow<T>(*number);
    to.mutable_values<T>()[index] = value;
    fits = std::isinf(widen<double>(value)) == std::isinf(*number);
  });
  return fits;
}

class csv_reader {
public:
  csv_reader(record_table rows, row_plan plan) : rows_(std::move(rows)), plan_(std::move(plan)) {}

  [[nodiscard]] uint64_t size() const {
    return rows_.size() - std::min(rows_.size(), plan_.first_row);
  }

  [[nodiscard]] expected<element> read(uint64_t index) const {
    auto row = fields_of(index);
    if (!row) return tl::unexpected(row.error());
    element result;
    for (const auto& plan : plan_.tensors) {
      auto value = tensor_of(plan, *row, index);
      if (!value) return tl::unexpected(value.error());
      result.tensors.push_back(std::move(*value));
    }
    for (auto column : plan_.texts)
      result.texts.push_back((*row)[column]);
    return result;
  }

private:
  [[nodiscard]] tl::unexpected<error> malformed(uint64_t index, std::string_view problem) const {
    return rows_.file().malformed(rows_.offset(plan_.first_row + index),
                                  fmt::format("row {}: {}", index, problem));
  }

  [[nodiscard]] expected<fields> fields_of(uint64_t index) const {
    auto row = rows_.read(plan_.first_row + index);
    if (!row) return tl::unexpected(row.error());
    auto split = split_csv_row(*row, plan_.separator);
    if (!split) return malformed(index, "a field goes on behind its closing quote");
    if (split->size() != plan_.names.size()) {
      return malformed(index, fmt::format("{} fields, where the first row has {}", split->size(),
                                          plan_.names.size()));
    }
    return std::move(*split);
  }

  [[nodiscard]] expected<tensor> tensor_of(const tensor_plan& plan, const fields& row,
                                           uint64_t index) const {
    const auto count = plan.columns.size();
    tensor value{plan.type, count == 1 ? shape{} : shape{static_cast<int64_t>(count)}};
    for (size_t i = 0; i < count; ++i) {
      const auto column = plan.columns[i];
      if (parse_into(value, i, row[column])) continue;
      return malformed(index, fmt::format("column {}: {} is no {}", excerpt(plan_.names[column]),
                                          excerpt(row[column]), to_string(plan.type)));
    }
    return value;
  }

  record_table rows_;
  row_plan plan_;
};

// The columns' names: those of the first row, or their numbers.
expected<fields> names_of(const record_table& rows, const csv_options& options) {
  if (rows.size() == 0) return fields{};
  auto row = rows.read(0);
  if (!row) return tl::unexpected(row.error());
  auto names = split_csv_row(*row, options.separator);
  if (!names)
    return rows.file().malformed(rows.offset(0), "a field goes on behind its closing quote");
  for (size_t i = 0; i < names->size() && !options.has_header; ++i)
    (*names)[i] = std::to_string(i);
  return std::move(*names);
}

expected<size_t> place_of(const std::string& column, const fields& names, const input_file& file) {
  const auto found = std::ranges::find(names, column);
  if (found == names.end()) {
    const auto all = fmt::format("{}", fmt::join(names, ", "));
    return fail(errc::not_found, fmt::format("{}: there is no column {}; there are {}", file.name(),
                                             excerpt(column), excerpt(all, 400)));
  }
  if (std::find(found + 1, names.end(), column) != names.end())
    return fail(errc::invalid_argument,
                fmt::format("{}: column {} is there twice", file.name(), excerpt(column)));
  return static_cast<size_t>(found - names.begin());
}

expected<std::vector<size_t>> places_of(const fields& columns, const fields& names,
                                        const input_file& file) {
  std::vector<size_t> places;
  for (const auto& column : columns) {
    auto place = place_of(column, names, file);
    if (!place) return tl::unexpected(place.error());
    places.push_back(*place);
  }
  return places;
}

expected<row_plan> plan_rows(const record_table& rows, const csv_options& options) {
  auto names = names_of(rows, options);
  if (!names) return tl::unexpected(names.error());
  row_plan plan{std::move(*names), {}, {}, options.separator, options.has_header ? 1U : 0U};
  auto tensors = options.tensors;
  if (tensors.empty() && options.texts.empty()) tensors.push_back({plan.names, dtype::f32});
  for (const auto& tensor : tensors) {
    auto columns = places_of(tensor.columns, plan.names, rows.file());
    if (!columns) return tl::unexpected(columns.error());
    plan.tensors.push_back({std::move(*columns), tensor.type});
  }
  auto texts = places_of(options.texts, plan.names, rows.file());
  if (!texts) return tl::unexpected(texts.error());
  plan.texts = std::move(*texts);
  return plan;
}

} // namespace

dataset csv_file(const std::filesystem::path& path, const csv_options& options) {
  return value_or_throw(input_file::open(path).and_then(
    [&options](const input_file& file) { return csv_dataset(file, options); }));
}

expected<dataset> csv_dataset(const input_file& file, const csv_options& options) {
  auto rows = find_csv_rows(file, options.separator);
  if (!rows) return tl::unexpected(rows.error());
  auto plan = plan_rows(*rows, options);
  if (!plan) return tl::unexpected(plan.error());
  auto reader = std::make_shared<const csv_reader>(std::move(*rows), std::move(*plan));
  element_reader read = [reader](uint64_t, uint64_t index) { return reader->read(index); };
  return records_of_file(reader->size(), std::move(read));
}

} // namespace troupe
