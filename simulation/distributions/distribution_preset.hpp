// SPDX-License-Identifier: Apache-2.0
// Computing times by name: fitted to what was measured elsewhere.
#pragma once

#include <span>
#include <string_view>

namespace troupe {

/// An expression with a name.
struct distribution_preset {
  std::string_view name;
  std::string_view expression;
  std::string_view source; ///< Where the numbers come from, in a few words.
  double model_bytes = 0;  ///< Size of the model that takes so long; 0: unknown.
};

/// All of them, in the order in which messages list them.
[[nodiscard]] std::span<const distribution_preset> distribution_presets();

/// The preset of that name; null if there is none.
[[nodiscard]] const distribution_preset* find_distribution_preset(std::string_view name);

} // namespace troupe
