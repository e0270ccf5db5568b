// SPDX-License-Identifier: Apache-2.0
// Batch sizes and extents of elements by their stages, and the stage of a file.
#include "strategies/data/dataset_stage.hpp"

#include "messages/errors/throw_failure.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

bool all_equal(const std::vector<uint64_t>& numbers) {
  return std::ranges::all_of(numbers, [&](uint64_t one) { return one == numbers.front(); });
}

// How a `map` is seen: its function may make other batches, and hardly ever does.
enum class maps : uint8_t { hide_sizes, keep_rows };

int64_t batch_size(const dataset& batches, maps behind);

// The inputs go on side by side or one after the other.
int64_t common_batch_size(const std::vector<dataset>& inputs, maps behind) {
  auto common = batch_size(inputs.front(), behind);
  for (const auto& one : inputs) {
    const auto size = batch_size(one, behind);
    if (size == 0) return 0;
    if (size != common) common = unknown_batch_size;
  }
  return common;
}

int64_t batch_size(const dataset& batches, maps behind) {
  const auto& stage = batches.made_by();
  switch (stage.kind) {
  case stage_kind::source:
  case stage_kind::file:
    return stage.gives_examples ? 0 : unknown_batch_size;
  case stage_kind::batch:
    return static_cast<int64_t>(stage.numbers.front());
  case stage_kind::rebatch:
    return all_equal(stage.numbers) ? static_cast<int64_t>(stage.numbers.front())
                                    : unknown_batch_size;
  case stage_kind::files:
    return !stage.inputs.empty() && common_batch_size(stage.inputs, behind) == 0
             ? 0
             : unknown_batch_size;
  case stage_kind::zip:
  case stage_kind::concatenate:
    return common_batch_size(stage.inputs, behind);
  case stage_kind::legacy_rebatch:
    return unknown_batch_size;
  case stage_kind::map:
    if (behind == maps::hide_sizes) return unknown_batch_size;
    [[fallthrough]];
  default:
    return batch_size(stage.inputs.front(), behind);
  }
}

// Whether batches of equal size divide their inputs without a rest.
bool divides(const dataset& batches, uint64_t piece) {
  const auto size = batch_size_of(batches);
  return has_fixed_extents(batches) && size > 0 && static_cast<uint64_t>(size) % piece == 0;
}

} // namespace

void require_not_negative(std::string_view argument, uint64_t value) {
  if (auto count = static_cast<int64_t>(value); count < 0)
    throw_failure(errc::invalid_argument, "{} is {}; it must not be negative", argument, count);
}

dataset records_of_file(uint64_t size, element_reader read, bool gives_examples) {
  return {size,
          [read = std::move(read)] { return read; },
          {.kind = stage_kind::file, .gives_examples = gives_examples}};
}

int64_t batch_size_of(const dataset& batches) {
  return batch_size(batches, maps::hide_sizes);
}

bool come_of_examples(const dataset& elements) {
  return batch_size(elements, maps::keep_rows) == 0;
}

bool has_fixed_extents(const dataset& elements) {
  const auto& stage = elements.made_by();
  switch (stage.kind) {
  case stage_kind::source:
    return stage.gives_equal_extents;
  case stage_kind::batch:
    return stage.drop_remainder;
  case stage_kind::rebatch:
    if (!all_equal(stage.numbers)) return false;
    return stage.drop_remainder || divides(stage.inputs.front(), stage.numbers.front());
  case stage_kind::legacy_rebatch:
    return divides(stage.inputs.front(), stage.numbers.front());
  case stage_kind::map:
    return batch_size(stage.inputs.front(), maps::keep_rows) > 0
           && has_fixed_extents(stage.inputs.front());
  default:
    return std::ranges::all_of(stage.inputs, has_fixed_extents);
  }
}

} // namespace troupe
