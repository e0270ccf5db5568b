// SPDX-License-Identifier: Apache-2.0
// "Did you mean ...?": finds the known name that a misspelt one is closest to.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace troupe {

/// The least number of letters to insert, delete, replace or swap with a neighbour that makes `b`
/// of `a`. Cost: a.size() * b.size(). Source: optimal string alignment; Damerau, CACM 7(3), 1964.
[[nodiscard]] size_t edit_distance(std::string_view a, std::string_view b);

/// The name with the least distance to `unknown`, the first of several; empty if there are no
/// names.
[[nodiscard]] std::string_view nearest_name(std::string_view unknown,
                                            std::span<const std::string_view> names);

} // namespace troupe
