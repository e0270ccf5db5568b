// SPDX-License-Identifier: Apache-2.0
// Looks for variables by name, and compares their forms.
#include "tools/job/saved_values.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string>

namespace troupe {

namespace {

std::string form_text(const shape& extents, dtype type) {
  return fmt::format("{} of {}", to_string(extents), to_string(type));
}

} // namespace

expected<std::vector<tensor>> values_in(const job_snapshot& snapshot,
                                        std::span<const variable> variables) {
  std::vector<tensor> values;
  for (const auto& variable : variables) {
    auto found = std::ranges::find(snapshot.variables, variable.name(), &variable_snapshot::name);
    if (found == snapshot.variables.end())
      return fail(errc::failed_precondition,
                  fmt::format("variable '{}' is not in the checkpoint", variable.name()));
    const auto& value = found->state.value;
    auto here = form_text(variable.extents(), variable.type());
    auto there = form_text(value.extents(), value.type());
    if (here != there)
      return fail(errc::failed_precondition,
                  fmt::format("variable '{}' has shape {} here, but {} in the checkpoint",
                              variable.name(), here, there));
    values.push_back(value);
  }
  return values;
}

} // namespace troupe
