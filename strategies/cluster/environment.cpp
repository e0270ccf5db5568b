// SPDX-License-Identifier: Apache-2.0
// The environment of the process, and that of a table.
#include "strategies/cluster/environment.hpp"

#include <cstdlib>

namespace troupe {

environment_reader process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str()); // NOLINT(concurrency-mt-unsafe): see the header
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

environment_reader fixed_environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

} // namespace troupe
