// SPDX-License-Identifier: Apache-2.0
// The frames of a TFRecord file: records, each with its length and two checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// A file is a sequence of frames, without a header of its own. All numbers are little-endian.
///
/// | bytes  | meaning                              |
/// |--------|--------------------------------------|
/// | 8      | n, the length of the record          |
/// | 4      | masked checksum of those 8 bytes     |
/// | n      | the record                           |
/// | 4      | masked checksum of the record        |
///
/// Source: https://www.tensorflow.org/tutorials/load_data/tfrecord, "TFRecords format details".
namespace tfrecord {

/// Bytes before a record, and after it.
inline constexpr uint64_t header_bytes = 12;
inline constexpr uint64_t footer_bytes = 4;

/// The CRC-32C, rotated and moved by a constant, so that the checksum of bytes that hold their own
/// checksum is no special case.
[[nodiscard]] uint32_t masked_checksum(std::span<const std::byte> bytes);

/// The frame around a record.
[[nodiscard]] std::string frame(std::string_view record);

} // namespace tfrecord

} // namespace troupe
