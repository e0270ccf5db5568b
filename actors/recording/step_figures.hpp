// SPDX-License-Identifier: Apache-2.0
// Plain arithmetic on the record of one step: means, rates, and which replica waited for which.
#pragma once

#include "actors/recording/records.hpp"

#include <cstdint>

namespace troupe {

/// How long the step took: from the end of the update before it to its own end.
[[nodiscard]] job_time step_duration(const step_record& step);

/// Mean over the accepted contributions that report a loss; NaN if none does.
[[nodiscard]] double mean_loss(const step_record& step);

/// Examples in the accepted contributions: those that the update learned from.
[[nodiscard]] uint64_t accepted_examples(const step_record& step);

/// `accepted_examples` over `step_duration`; NaN for a step that took no time.
/// Units: examples per second.
[[nodiscard]] double examples_per_second(const step_record& step);

/// The contribution that completed the step, and for which the others waited; null if none was
/// accepted. The result is part of `step`.
[[nodiscard]] const contribution* completing_contribution(const step_record& step);

/// From the arrival of an accepted contribution to that of the one that completed the step.
[[nodiscard]] job_time waited_for_completion(const step_record& step, const contribution& accepted);

/// From the arrival of an accepted contribution to the end of the step: until then nothing newer
/// could be computed. A replica that held a spare token worked on meanwhile, so this bounds its
/// idleness from above.
[[nodiscard]] job_time idle_until_end(const step_record& step, const contribution& accepted);

} // namespace troupe
