// SPDX-License-Identifier: Apache-2.0
// Names of jobs, and how people misspell them.
#include "strategies/cluster/task_types.hpp"

#include "messages/text.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

bool is_task_type(std::string_view name) {
  return std::ranges::find(task_types, name) != task_types.end();
}

std::string meant_task_type(std::string_view name) {
  // Beginnings suffice: ps_hosts, workers, worker_hosts, parameter_server, master, evaluation.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> beginnings{{
    {"chief", "chief"},
    {"master", "chief"},
    {"coordinator", "chief"},
    {"ps", "ps"},
    {"param", "ps"},
    {"server", "ps"},
    {"worker", "worker"},
    {"slave", "worker"},
    {"eval", "evaluator"},
  }};
  auto small = lower_case(name);
  for (const auto& [beginning, type] : beginnings)
    if (small.starts_with(beginning)) return std::string{type};
  return {};
}

} // namespace troupe
