// SPDX-License-Identifier: Apache-2.0
// Reads the header of an IDX file.
#include "strategies/data/idx_file.hpp"

#include "messages/errors/failure.hpp"
#include "strategies/data/array_rows.hpp"

#include <array>

namespace troupe {

namespace {

std::optional<stored_numbers> numbers_of(std::byte code) {
  switch (static_cast<unsigned>(code)) {
  case 0x08:
    return stored_numbers{number_kind::natural, 1, true};
  case 0x09:
    return stored_numbers{number_kind::integer, 1, true};
  case 0x0b:
    return stored_numbers{number_kind::integer, 2, true};
  case 0x0c:
    return stored_numbers{number_kind::integer, 4, true};
  case 0x0d:
    return stored_numbers{number_kind::floating, 4, true};
  case 0x0e:
    return stored_numbers{number_kind::floating, 8, true};
  default:
    return {};
  }
}

expected<array_layout> read_idx_header(const input_file& file) {
  std::array<std::byte, 4> magic{};
  if (auto done = file.read_at(0, magic); !done) return tl::unexpected(done.error());
  if (magic[0] == std::byte{0x1f} && magic[1] == std::byte{0x8b})
    return file.malformed(0, "the file is compressed: unpack it with gunzip first");
  const auto numbers = numbers_of(magic[2]);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || !numbers)
    return file.malformed(0, "this does not begin an IDX file");
  array_layout layout{magic.size(), *numbers, {}};
  for (auto left = static_cast<unsigned>(magic[3]); left > 0; --left) {
    std::array<std::byte, 4> dim{};
    if (auto done = file.read_at(layout.offset, dim); !done) return tl::unexpected(done.error());
    uint64_t extent = 0;
    for (auto byte : dim)
      extent = extent << 8 | static_cast<uint64_t>(byte);
    layout.dims.push_back(extent);
    layout.offset += dim.size();
  }
  return layout;
}

} // namespace

dataset idx_file(const std::filesystem::path& path, std::optional<dtype> type) {
  return value_or_throw(input_file::open(path).and_then(
    [type](const input_file& file) { return idx_dataset(file, type); }));
}

expected<dataset> idx_dataset(const input_file& file, std::optional<dtype> type) {
  return read_idx_header(file).and_then(
    [&](const array_layout& layout) { return array_rows(file, layout, type); });
}

} // namespace troupe
