// SPDX-License-Identifier: Apache-2.0
// Counts the shards of a variable.
#include "strategies/values/partitioner.hpp"

#include "messages/errors/throw_failure.hpp"

#include <algorithm>

namespace troupe {

namespace {

void check_positive(const char* name, int64_t value) {
  if (value < 1)
    throw_failure(errc::invalid_argument, "{} is {}; it must be at least 1", name, value);
}

int64_t rows_of(const shape& extents) {
  if (extents.dims().empty())
    throw_failure(errc::invalid_argument, "a scalar has no rows, so it cannot be cut into shards");
  return extents.dims().front();
}

// Shards along axis 0, at least one and at most one for each row.
std::vector<int64_t> along_rows(const shape& extents, int64_t shards) {
  auto rows = rows_of(extents);
  std::vector<int64_t> partitions(extents.rank(), 1);
  partitions[0] = std::max<int64_t>(1, std::min(shards, rows));
  return partitions;
}

int64_t bytes_of_row(const shape& extents, dtype type) {
  auto rows = std::max<int64_t>(1, rows_of(extents));
  return extents.element_count() / rows * static_cast<int64_t>(element_bytes(type));
}

} // namespace

partitioner fixed_shards_partitioner(int64_t num_shards) {
  check_positive("num_shards", num_shards);
  return [=](const shape& extents, dtype) { return along_rows(extents, num_shards); };
}

partitioner min_size_partitioner(int64_t min_shard_bytes, int64_t max_shards) {
  check_positive("min_shard_bytes", min_shard_bytes);
  check_positive("max_shards", max_shards);
  return [=](const shape& extents, dtype type) {
    auto row = std::max<int64_t>(1, bytes_of_row(extents, type));
    auto rows_of_shard = (min_shard_bytes - 1) / row + 1; // in the smallest shard, too
    return along_rows(extents, std::min(max_shards, rows_of(extents) / rows_of_shard));
  };
}

partitioner max_size_partitioner(int64_t max_shard_bytes, std::optional<int64_t> max_shards) {
  check_positive("max_shard_bytes", max_shard_bytes);
  if (max_shards) check_positive("max_shards", *max_shards);
  return [=](const shape& extents, dtype type) {
    auto row = std::max<int64_t>(1, bytes_of_row(extents, type));
    auto rows_of_shard = std::max<int64_t>(1, max_shard_bytes / row);
    auto shards = (rows_of(extents) + rows_of_shard - 1) / rows_of_shard;
    return along_rows(extents, std::min(shards, max_shards.value_or(shards)));
  };
}

std::vector<int64_t> shard_offsets(int64_t rows, int64_t shards) {
  std::vector<int64_t> offsets{0};
  for (int64_t i = 0; i < shards; ++i)
    offsets.push_back(offsets.back() + rows / shards + (i < rows % shards ? 1 : 0));
  return offsets;
}

} // namespace troupe
