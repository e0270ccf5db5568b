// SPDX-License-Identifier: Apache-2.0
// Checks an array's size, and reads its rows.
#include "strategies/data/array_rows.hpp"

#include "strategies/data/dataset_stage.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

// As in messages.
constexpr size_t rank_max = 32;

// Where the rows of an array lie in its file, and their form.
struct row_layout {
  uint64_t offset = 0;
  uint64_t row_bytes = 0;
  stored_numbers numbers;
  shape extents;
  dtype type = dtype::f32;
};

expected<element> read_row(const input_file& file, const row_layout& layout, uint64_t index) {
  tensor row{layout.type, layout.extents};
  const auto offset = layout.offset + index * layout.row_bytes;
  std::vector<std::byte> bytes(layout.row_bytes);
  if (auto done = file.read_at(offset, bytes); !done) return tl::unexpected(done.error());
  convert(bytes, layout.numbers, row);
  return element{{std::move(row)}, {}};
}

expected<dtype> choose_type(const input_file& file, const stored_numbers& numbers,
                            std::optional<dtype> type) {
  auto natural = type_for(numbers);
  if (!natural) return fail(natural.error().code, file.name() + ": " + natural.error().message);
  if (type && !can_become(numbers, *type)) {
    return fail(errc::type_mismatch,
                fmt::format("{}: its numbers need {} and do not fit into {}", file.name(),
                            to_string(*natural), to_string(*type)));
  }
  return type.value_or(*natural);
}

} // namespace

expected<dataset> array_rows(const input_file& file, const array_layout& layout,
                             std::optional<dtype> type) {
  auto chosen = choose_type(file, layout.numbers, type);
  if (!chosen) return tl::unexpected(chosen.error());
  const auto& dims = layout.dims;
  if (dims.empty() || dims.size() > rank_max) {
    return file.malformed(0,
                          fmt::format("an array of {} dimensions: 1 to {} can be read row by row",
                                      dims.size(), rank_max));
  }
  const auto bytes = bytes_of_array(layout.numbers.bytes, dims);
  if (!bytes || *bytes != file.bytes() - layout.offset) {
    return file.malformed(layout.offset,
                          fmt::format("{} bytes follow, where an array of [{}] needs {}",
                                      file.bytes() - layout.offset, fmt::join(dims, ", "),
                                      bytes ? std::to_string(*bytes) : "more than 63 bits count"));
  }
  const std::span inner = std::span{dims}.subspan(1);
  const row_layout rows{layout.offset, *bytes_of_array(layout.numbers.bytes, inner), layout.numbers,
                        shape{std::vector<int64_t>(inner.begin(), inner.end())}, *chosen};
  element_reader read
    = [file, rows](uint64_t, uint64_t index) { return read_row(file, rows, index); };
  return records_of_file(dims[0], std::move(read), dims.size() == 1);
}

} // namespace troupe
