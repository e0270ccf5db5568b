// SPDX-License-Identifier: Apache-2.0
// Bytes as a safetensors file: header, entries, payload. Accepted entries must be
// the same in a header that we write of them and read again.
#include "actors/checkpoint/safetensors_file.hpp"
#include "actors/checkpoint/safetensors_header.hpp"
#include "messages/errors/assert.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace troupe::fuzz {

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text});
}

void check_header(const safetensors_header& header, uint64_t file_bytes) {
  auto payload_bytes = file_bytes - header.bytes.size();
  auto again = format_safetensors_header(header.entries, header.metadata);
  if (!again) return; // a name that we would not give
  again->append(payload_bytes, '\0');
  auto read = read_safetensors_header(input_file::in_memory("again", bytes_of(*again)));
  TROUPE_ASSERT(read.has_value(), *again);
  TROUPE_ASSERT(read->entries.size() == header.entries.size());
  for (size_t i = 0; i < header.entries.size(); ++i) {
    TROUPE_ASSERT(read->entries[i].name == header.entries[i].name, i);
    TROUPE_ASSERT(read->entries[i].begin == header.entries[i].begin, i);
    TROUPE_ASSERT(read->entries[i].end == header.entries[i].end, i);
  }
  TROUPE_ASSERT(read->metadata == header.metadata);
}

} // namespace

bool accepts(std::span<const std::byte> input) {
  auto file = input_file::in_memory("input", input);
  auto header = read_safetensors_header(file);
  if (header) check_header(*header, input.size());
  auto content = read_safetensors(file);
  TROUPE_ASSERT(header.has_value() || !content.has_value());
  if (!content) return false;
  TROUPE_ASSERT(content->tensors.size() == header->entries.size());
  return true;
}

} // namespace troupe::fuzz
