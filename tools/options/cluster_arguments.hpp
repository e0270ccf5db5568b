// SPDX-License-Identifier: Apache-2.0
// Options that describe a cluster, and how a process speaks to the others of its job.
#pragma once

#include "strategies/cluster/cluster_flags.hpp"
#include "strategies/cluster/server.hpp"
#include "tools/options/command_options.hpp"

namespace troupe {

/// Adds the options of a cluster. @param options Gets the values; must outlive `all`.
void add_options(command_options& all, cluster_options& options);

/// Adds the options of how a process speaks to others. `settle` completes the values once they are
/// stored. @param options Gets the values; must outlive `all`.
void add_options(command_options& all, server_options& options);

/// Leaves TLS out if no file of it is given.
/// Errors: invalid_argument for one or two of its three files.
[[nodiscard]] expected<void> settle(server_options& options);

} // namespace troupe
