// SPDX-License-Identifier: Apache-2.0
// Slurm's short forms for many hosts and how many tasks each has.
#pragma once

#include "messages/errors/errc.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The most hosts, tasks or ranks that a launcher may tell of: a typing mistake must not fill the
/// memory.
inline constexpr uint64_t launcher_number_max = 100'000;

/// "n[9-10,12],login" is n9, n10, n12, login: in this order, with equal hosts as often as they
/// stand there. Numbers keep the zeros of the first one: "n[08-10]" is n08, n09, n10. There may be
/// several brackets, the last one counts fastest.
/// Errors: invalid_argument, naming the part that is malformed; a comma stands between two.
[[nodiscard]] expected<std::vector<std::string>> expand_hostlist(std::string_view text);

/// "2(x3),1" is 2, 2, 2, 1. Errors: invalid_argument.
[[nodiscard]] expected<std::vector<uint64_t>> expand_tasks_per_node(std::string_view text);

} // namespace troupe
