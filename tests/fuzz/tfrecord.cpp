// SPDX-License-Identifier: Apache-2.0
// Bytes as a TFRecord file; and once more with checksums that are right, as an attacker would make
// them.
#include "actors/recording/tfrecord.hpp"

#include "messages/errors/assert.hpp"
#include "strategies/data/tfrecord_file.hpp"
#include "tests/fuzz/fuzz_target.hpp"

#include <cstring>
#include <string>
#include <vector>

namespace troupe::fuzz {

namespace {

bool reads(std::span<const std::byte> bytes) {
  auto records = tfrecord_dataset(input_file::in_memory("input", bytes));
  if (!records) {
    TROUPE_ASSERT(records.error().code == errc::malformed, records.error().message);
    return false;
  }
  std::string written;
  auto iterator = records->iterate();
  for (uint64_t i = 0; i < records->size(); ++i) {
    auto record = iterator.next();
    if (!record) return false;
    TROUPE_ASSERT(record->has_value(), i);
    written += tfrecord::frame((*record)->texts[0]);
  }
  TROUPE_ASSERT(written == text_of(bytes));
  return true;
}

// Rewrites checksums along the lengths that the frames claim.
std::vector<std::byte> with_checksums(std::span<const std::byte> input) {
  std::vector<std::byte> bytes{input.begin(), input.end()};
  std::span<std::byte> left{bytes};
  auto sum_up = [&](size_t offset, size_t count) {
    auto sum = tfrecord::masked_checksum(left.subspan(offset, count));
    std::memcpy(left.data() + offset + count, &sum, sizeof sum);
  };
  while (left.size() >= tfrecord::header_bytes) {
    uint64_t length = 0;
    std::memcpy(&length, left.data(), sizeof length);
    sum_up(0, sizeof length);
    left = left.subspan(tfrecord::header_bytes);
    if (left.size() < tfrecord::footer_bytes || length > left.size() - tfrecord::footer_bytes)
      break;
    sum_up(0, length);
    left = left.subspan(length + tfrecord::footer_bytes);
  }
  return bytes;
}

} // namespace

bool accepts(std::span<const std::byte> input) {
  static_cast<void>(reads(with_checksums(input)));
  return reads(input);
}

} // namespace troupe::fuzz
