// SPDX-License-Identifier: Apache-2.0
// Reads records by their place, and files block by block.
#include "strategies/data/record_table.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

record_table::record_table(input_file file, std::vector<uint64_t> offsets)
  : file_(std::move(file)), offsets_(std::move(offsets)) {
  TROUPE_ASSERT(!offsets_.empty());
}

expected<std::string> record_table::read(uint64_t index) const {
  TROUPE_ASSERT(index < size(), index, size());
  const auto begin = offsets_[index];
  const auto bytes = offsets_[index + 1] - begin;
  if (bytes > record_bytes_max) {
    return fail(errc::limit_exceeded,
                fmt::format("{}: byte {}: record {} has {} bytes, {} are the most", file_.name(),
                            begin, index, bytes, record_bytes_max));
  }
  std::string record(bytes, '\0');
  auto done = file_.read_at(begin, std::as_writable_bytes(std::span{record}));
  if (!done) return tl::unexpected(done.error());
  return record;
}

expected<void>
for_each_block(const input_file& file, uint64_t offset,
               const std::function<void(uint64_t offset, std::string_view block)>& visit) {
  constexpr uint64_t block_bytes = uint64_t{1} << 20;
  std::string block;
  while (offset < file.bytes()) {
    block.resize(std::min(block_bytes, file.bytes() - offset));
    auto done = file.read_at(offset, std::as_writable_bytes(std::span{block}));
    if (!done) return done;
    visit(offset, block);
    offset += block.size();
  }
  return {};
}

} // namespace troupe
