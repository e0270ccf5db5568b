// SPDX-License-Identifier: Apache-2.0
// Where environment variables come from: the process, or a table in a test.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace troupe {

/// The value of a variable; nothing if it is not set. It is read anew on every call, so that
/// nothing is remembered that has changed.
using environment_reader = std::function<std::optional<std::string>(const std::string& name)>;

/// The variables of this process. Thread: as `getenv`, none may set variables meanwhile.
[[nodiscard]] environment_reader process_environment();

/// The variables of a table, and no others.
[[nodiscard]] environment_reader fixed_environment(std::map<std::string, std::string> variables);

} // namespace troupe
