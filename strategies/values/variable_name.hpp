// SPDX-License-Identifier: Apache-2.0
// Checks the names of variables.
#pragma once

#include <string>

namespace troupe {

/// Refuses a name that checkpoints, metrics and terminals could not show as it is.
/// Errors: throws `failure` with invalid_argument for a name that is empty, not UTF-8, has control
/// characters, or is reserved in checkpoints.
void check_variable_name(const std::string& name);

} // namespace troupe
