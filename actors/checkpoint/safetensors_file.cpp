// SPDX-License-Identifier: Apache-2.0
// Writing tensors to a file in one pass, and reading them.
#include "actors/checkpoint/safetensors_file.hpp"

#include "actors/recording/output_file.hpp"
#include "kernels/tensor/crc32c.hpp"
#include "messages/mapped.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <new>
#include <system_error>

namespace troupe {

namespace {

// Bytes that go to the checksum and then to the disk, for which they are still in the cache.
constexpr size_t block_bytes = size_t{1} << 20;

// Entries in the order of `tensors`; their bytes lie in falling order of their elements' size.
std::vector<safetensors_entry> lay_out(std::span<const named_tensor> tensors) {
  std::vector<safetensors_entry> entries;
  entries.reserve(tensors.size());
  for (const auto& [name, value] : tensors)
    entries.push_back({name, value.type(), value.extents(), 0, value.bytes()});
  auto order = mapped(entries, [](auto& entry) { return &entry; });
  std::ranges::stable_sort(order, std::greater{},
                           [](const auto* entry) { return element_bytes(entry->type); });
  uint64_t offset = 0;
  for (auto* entry : order) {
    entry->begin = offset;
    offset = entry->end += offset;
  }
  return entries;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text});
}

// Writes `bytes` at `offset`, and adds them to the checksum.
expected<void> write_checked(output_file& file, uint64_t offset, std::span<const std::byte> bytes,
                             uint32_t& crc) {
  while (!bytes.empty()) {
    const auto block = bytes.first(std::min(bytes.size(), block_bytes));
    crc = cpu::crc32c(block, crc);
    if (auto done = file.write_at(offset, as_text(block)); !done) return done;
    offset += block.size();
    bytes = bytes.subspan(block.size());
  }
  return {};
}

// Writes the payload first, since the header holds the checksum of both.
expected<void> write_content(output_file& file, std::span<const named_tensor> tensors,
                             std::span<const safetensors_entry> entries, std::string header) {
  auto crc = cpu::crc32c(bytes_of(header));
  for (const auto* entry : in_payload_order(entries)) {
    const auto value = tensors[static_cast<size_t>(entry - entries.data())].value.contiguous();
    const std::span bytes{static_cast<const std::byte*>(value.data()), value.bytes()};
    if (auto done = write_checked(file, header.size() + entry->begin, bytes, crc); !done)
      return done;
  }
  const auto digits = safetensors_checksum(crc);
  header.replace(safetensors_checksum_offset, digits.size(), digits);
  if (auto done = file.write_at(0, header); !done) return done;
  return file.sync();
}

// The folder of a path; the current one, if the path has none.
std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

} // namespace

expected<void> write_safetensors(const std::filesystem::path& path,
                                 std::span<const named_tensor> tensors,
                                 const safetensors_metadata& metadata) {
  const auto entries = lay_out(tensors);
  auto header = format_safetensors_header(entries, metadata);
  if (!header) return fail(header.error().code, path.native() + ": " + header.error().message);
  const auto folder = folder_of(path);
  const auto partial = folder / fmt::format(".{}.partial", path.filename().native());
  auto file = output_file::create(partial);
  if (!file) return tl::unexpected(file.error());
  auto done = write_content(*file, tensors, entries, std::move(*header));
  if (done) done = file->rename(path);
  if (done) return sync_folder(folder);
  std::error_code ignored;
  std::filesystem::remove(partial, ignored);
  return done;
}

namespace {

// Fills `bytes` from `offset` on, and adds them to the checksum.
expected<void> read_checked(const input_file& file, uint64_t offset, std::span<std::byte> bytes,
                            uint32_t& crc) {
  while (!bytes.empty()) {
    const auto block = bytes.first(std::min(bytes.size(), block_bytes));
    if (auto done = file.read_at(offset, block); !done) return done;
    crc = cpu::crc32c(block, crc);
    offset += block.size();
    bytes = bytes.subspan(block.size());
  }
  return {};
}

// The checksum of a header; the checksum's own digits count as zeros.
uint32_t checksum_of(const safetensors_header& header) {
  auto bytes = header.bytes;
  if (!header.checksum.empty())
    bytes.replace(safetensors_checksum_offset, header.checksum.size(), safetensors_checksum(0));
  return cpu::crc32c(bytes_of(bytes));
}

expected<safetensors_content> read_payload(const input_file& file, safetensors_header header) {
  safetensors_content content;
  content.tensors.resize(header.entries.size());
  auto crc = checksum_of(header);
  for (const auto* entry : in_payload_order(header.entries)) {
    tensor value{entry->type, entry->extents};
    const std::span bytes{static_cast<std::byte*>(value.mutable_data()), value.bytes()};
    auto done = read_checked(file, header.bytes.size() + entry->begin, bytes, crc);
    if (!done) return tl::unexpected(done.error());
    content.tensors[static_cast<size_t>(entry - header.entries.data())]
      = {entry->name, std::move(value)};
  }
  content.has_checksum = !header.checksum.empty();
  if (content.has_checksum && header.checksum != safetensors_checksum(crc)) {
    return fail(errc::malformed,
                fmt::format("{}: the checksum of its bytes is {}, but {} was written: damaged",
                            file.name(), safetensors_checksum(crc), header.checksum));
  }
  content.metadata = std::move(header.metadata);
  return content;
}

} // namespace

expected<safetensors_content> read_safetensors(const std::filesystem::path& path) {
  auto file = input_file::open(path);
  if (!file) return tl::unexpected(file.error());
  return read_safetensors(*file);
}

expected<safetensors_content> read_safetensors(const input_file& file) {
  try {
    auto header = read_safetensors_header(file);
    if (!header) return tl::unexpected(header.error());
    return read_payload(file, std::move(*header));
  } catch (const std::bad_alloc&) {
    return fail(errc::resource,
                fmt::format("{}: there is no memory for its {} bytes", file.name(), file.bytes()));
  }
}

} // namespace troupe
