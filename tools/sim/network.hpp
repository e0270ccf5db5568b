// SPDX-License-Identifier: Apache-2.0
// Reads the networks and faults of options and scenario files.
#pragma once

#include "messages/errors/errc.hpp"
#include "simulation/faults/fault.hpp"
#include "simulation/network/network_options.hpp"
#include "tools/sim/options.hpp"

#include <functional>
#include <string_view>
#include <toml++/toml.h>

namespace troupe {

/// The network in the run of a seed; empty, if the options ask for none.
/// @param variable_bytes The size of the learnt model, or of the preset's; 0: unknown. Options
/// override it.
/// Errors: invalid_argument, naming the option and how to mend it.
[[nodiscard]] expected<std::function<network_options(uint64_t seed)>>
network_of(const sim_options& options, uint64_t variable_bytes = 0);

/// The faults, and the time after which replicas repeat a request.
struct faults_and_repeats {
  fault_plan plan;
  job_time ask_again_after{0};
};

/// The faults that options and scenario file ask for. Errors: as `network_of`.
[[nodiscard]] expected<faults_and_repeats> faults_of(const sim_options& options);

/// Refuses so many faults and repeats that the simulation of a step would not end.
/// @param compute How long replicas compute. Errors: as `network_of`.
[[nodiscard]] expected<void> check_event_counts(const sim_options& options,
                                                const distribution& compute,
                                                const fault_rates& rates);

/// Reads "crash=1000/20,freeze=500/10,wave=600*4,swizzle=100/10,lost=0.01,down=3,permanent=0.1,
/// warm-up=60" into a plan.
/// Errors: invalid_argument.
[[nodiscard]] expected<fault_plan> parse_fault_rates(std::string_view text);

/// Reads a `[[fault]]` of a scenario file: `at`, `kind`, `who`, and the keys of that kind:
/// `for`, `other`, `one-way`, `factor`, `ahead`, `rate`, `message`, `lost`, `doubled`, `late`,
/// `how`. Nodes are "replica 3", "replica 3-9", "ps 0" or "chief". Errors: invalid_argument, with
/// `path` and the line; a key that has no meaning for that kind is one.
[[nodiscard]] expected<fault> read_fault(const toml::table& table, std::string_view path);

} // namespace troupe
