// SPDX-License-Identifier: Apache-2.0
// The jobs that a cluster may have.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace troupe {

/// All types of tasks, in the order in which tasks are listed.
inline constexpr std::array<std::string_view, 4> task_types{"chief", "ps", "worker", "evaluator"};

/// Whether a job may have this name.
[[nodiscard]] bool is_task_type(std::string_view name);

/// The task type that "ps_hosts", "Workers" or "master" was to mean; empty if it is not known.
[[nodiscard]] std::string meant_task_type(std::string_view name);

} // namespace troupe
