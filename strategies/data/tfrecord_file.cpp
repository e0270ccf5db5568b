// SPDX-License-Identifier: Apache-2.0
// Finds and checks the frames of a TFRecord file.
#include "strategies/data/tfrecord_file.hpp"

#include "actors/recording/tfrecord.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/data/dataset_stage.hpp"
#include "strategies/data/record_table.hpp"

#include <array>
#include <cstring>
#include <fmt/format.h>
#include <memory>

namespace troupe {

namespace {

using tfrecord::footer_bytes;
using tfrecord::header_bytes;

template <class Number>
Number number_at(std::span<const std::byte> bytes, size_t offset) {
  Number number{};
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

// Where the frame at `offset` ends.
expected<uint64_t> end_of_frame(const input_file& file, uint64_t offset, uint64_t index) {
  const auto left = file.bytes() - offset;
  if (left < header_bytes)
    return file.malformed(
      offset, fmt::format("record {} is cut: {} bytes are left of its frame", index, left));
  std::array<std::byte, header_bytes> header{};
  if (auto done = file.read_at(offset, header); !done) return tl::unexpected(done.error());
  const auto length = number_at<uint64_t>(header, 0);
  const auto checksum = number_at<uint32_t>(header, sizeof length);
  if (tfrecord::masked_checksum(std::span{header}.first(sizeof length)) != checksum) {
    return file.malformed(offset, fmt::format("record {}: its length does not match its checksum: "
                                              "damaged, compressed, or no TFRecord file",
                                              index));
  }
  if (left - header_bytes < footer_bytes || length > left - header_bytes - footer_bytes) {
    return file.malformed(offset, fmt::format("record {} is cut: it has {} bytes, and {} are left "
                                              "in the file",
                                              index, length, left - header_bytes));
  }
  return offset + header_bytes + length + footer_bytes;
}

expected<record_table> find_frames(const input_file& file) {
  std::vector<uint64_t> offsets{0};
  while (offsets.back() < file.bytes()) {
    auto end = end_of_frame(file, offsets.back(), offsets.size() - 1);
    if (!end) return tl::unexpected(end.error());
    offsets.push_back(*end);
  }
  return record_table{file, std::move(offsets)};
}

expected<element> read_record(const record_table& frames, uint64_t index) {
  auto frame = frames.read(index);
  if (!frame) return tl::unexpected(frame.error());
  const auto bytes = std::as_bytes(std::span{*frame});
  const auto record = bytes.subspan(header_bytes, bytes.size() - header_bytes - footer_bytes);
  const auto checksum = number_at<uint32_t>(bytes, bytes.size() - footer_bytes);
  if (tfrecord::masked_checksum(record) != checksum) {
    return frames.file().malformed(
      frames.offset(index), fmt::format("record {} does not match its checksum: damaged", index));
  }
  return element{{}, {frame->substr(header_bytes, record.size())}};
}

} // namespace

dataset tfrecord_file(const std::filesystem::path& path) {
  return value_or_throw(input_file::open(path).and_then(tfrecord_dataset));
}

expected<dataset> tfrecord_dataset(const input_file& file) {
  auto found = find_frames(file);
  if (!found) return tl::unexpected(found.error());
  auto frames = std::make_shared<const record_table>(std::move(*found));
  element_reader read = [frames](uint64_t, uint64_t index) { return read_record(*frames, index); };
  return records_of_file(frames->size(), std::move(read));
}

} // namespace troupe
