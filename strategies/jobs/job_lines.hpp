// SPDX-License-Identifier: Apache-2.0
// What a job says to people: to the caller's functions, or on standard error.
#pragma once

#include "strategies/jobs/training.hpp"

#include <string>

namespace troupe {

/// Tells a warning of a job, which goes on. Thread: any.
void tell_warning(const training_options& options, const std::string& line);

/// Tells why a job has failed, if it has.
/// @returns The report.
[[nodiscard]] job_report tell_failure(const training_options& options, job_report report);

} // namespace troupe
