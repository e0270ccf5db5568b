// SPDX-License-Identifier: Apache-2.0
// How long a silent peer is waited for.
#pragma once

#include <chrono>

namespace troupe {

/// A peer that says nothing for so long is gone, unless a network is told otherwise.
constexpr std::chrono::milliseconds default_silence_timeout{2500};

/// How finely silence is measured, and how often a node with nothing to say says so: shares of the
/// timeout.
constexpr int ticks_in_timeout = 10;

} // namespace troupe
