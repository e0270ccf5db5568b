// SPDX-License-Identifier: Apache-2.0
// Reading a dataset of hostile bytes to its end.
#pragma once

#include "messages/errors/assert.hpp"
#include "strategies/data/dataset.hpp"

#include <algorithm>

namespace troupe::fuzz {

/// Reads up to a thousand elements and copies their tensors. @returns Whether all could be read.
[[nodiscard]] inline bool reads(const expected<dataset>& source) {
  if (!source) {
    TROUPE_ASSERT(!source.error().message.empty());
    return false;
  }
  constexpr uint64_t elements_max = 1000;
  auto iterator = source->iterate();
  bool are_all_read = true;
  for (uint64_t i = 0; i < std::min(source->size(), elements_max); ++i) {
    auto element = iterator.next();
    are_all_read = are_all_read && element;
    if (!element) continue;
    TROUPE_ASSERT(element->has_value(), i, source->size());
    auto stacked = stack({&**element, 1});
    TROUPE_ASSERT(stacked.has_value(), i);
  }
  return are_all_read;
}

} // namespace troupe::fuzz
