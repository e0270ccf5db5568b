// SPDX-License-Identifier: Apache-2.0
// How often a job may be restarted, for the launcher that counts and the trainer that reads.
#pragma once

#include <cstdint>

namespace troupe {

/// The most restarts of a job: each attempt has a run folder of its own.
inline constexpr uint32_t restarts_max = 1'000'000;

} // namespace troupe
