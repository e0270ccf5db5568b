// SPDX-License-Identifier: Apache-2.0
// Makes the learning problems of `troupe sim --train`.
#pragma once

#include "messages/errors/errc.hpp"
#include "simulation/learning.hpp"
#include "tools/sim/options.hpp"

#include <cstdint>
#include <functional>

namespace troupe {

/// The task that the run of a seed learns; empty without --train.
/// Errors: invalid_argument and not_found, naming the option and how to mend it.
[[nodiscard]] expected<std::function<learning_options(uint64_t seed)>>
learning_of(const sim_options& options);

} // namespace troupe
