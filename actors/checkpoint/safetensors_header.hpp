// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file: the tensors, and where they lie in the bytes after it.
#pragma once

#include "actors/recording/input_file.hpp"
#include "kernels/tensor/dtype.hpp"
#include "kernels/tensor/shape.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Texts by name, which a file holds besides its tensors.
using safetensors_metadata = std::map<std::string, std::string>;

/// One tensor as a header lists it: row-major little-endian elements without gaps.
struct safetensors_entry {
  std::string name;
  dtype type = dtype::f32;
  shape extents{0};
  uint64_t begin = 0; ///< First of its bytes, counted from the end of the header.
  uint64_t end = 0;   ///< One past its last byte.
};

/// A file is eight bytes with the length of a JSON text, the text, and the payload: the tensors'
/// bytes, each of which belongs to exactly one tensor.
///
/// Files of ours begin with a checksum: the CRC-32C of all bytes, with the checksum's own digits as
/// zeros, is the first entry of the metadata. Other tools take it for metadata like any other;
/// their files have none. Source: https://github.com/huggingface/safetensors, README.
struct safetensors_header {
  std::vector<safetensors_entry> entries; ///< As the text lists them, not as their bytes lie.
  safetensors_metadata metadata;          ///< Without the checksum.
  std::string checksum;                   ///< Eight digits; empty if there is none.
  std::string bytes;                      ///< The header as in the file, with its length in front.
};

/// The name that no tensor can have: it holds the metadata.
inline constexpr std::string_view safetensors_metadata_key = "__metadata__";

/// The most bytes of the text; other readers have the same limit. Units: bytes.
inline constexpr uint64_t safetensors_header_bytes_max = 100'000'000;

/// The most dimensions of a tensor, as in messages.
inline constexpr size_t safetensors_rank_max = 32;

/// Reads and checks a header, so that the caller may trust it: names are unique, shapes and byte
/// counts agree, and the tensors cover the payload without gap or overlap.
/// Cost: memory for the header's text and its entries.
/// Errors: `malformed` with the file and the tensor or byte; `resource`.
[[nodiscard]] expected<safetensors_header> read_safetensors_header(const input_file& file);

/// The bytes of a header with its length, padded so that the payload begins at a multiple of 64;
/// the checksum is eight zeros.
/// Errors: `invalid_argument` for a name that is not UTF-8, taken twice or reserved;
/// `limit_exceeded`.
[[nodiscard]] expected<std::string>
format_safetensors_header(std::span<const safetensors_entry> entries,
                          const safetensors_metadata& metadata);

/// Where in a file of ours the digits of the checksum stand, and how they are written.
inline constexpr uint64_t safetensors_checksum_offset
  = 8 + std::string_view{R"({"__metadata__":{"troupe.crc32c":")"}.size();
[[nodiscard]] std::string safetensors_checksum(uint32_t crc);

/// The entries in the order of their bytes.
[[nodiscard]] std::vector<const safetensors_entry*>
in_payload_order(std::span<const safetensors_entry> entries);

} // namespace troupe
