// SPDX-License-Identifier: Apache-2.0
// What `troupe sim` says about itself.
#pragma once

#include <string>

namespace troupe {

/// `troupe sim --help`: all options with their defaults, and what computing times are made of.
[[nodiscard]] std::string sim_help();

/// `troupe sim advise --help`.
[[nodiscard]] std::string advise_help();

/// `troupe sim replay --help`.
[[nodiscard]] std::string replay_help();

} // namespace troupe
