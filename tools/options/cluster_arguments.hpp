// SPDX-License-Identifier: Apache-2.0
// The options that tell a command its cluster, and how a process speaks to the others of its job.
#pragma once

#include "strategies/cluster/cluster_flags.hpp"
#include "strategies/cluster/server.hpp"
#include "tools/options/command_options.hpp"

namespace troupe {

/// Describes the options of a cluster. @param options Gets the values; must outlive `all`.
void add_options(command_options& all, cluster_options& options);

/// Describes how a process speaks to others; to be settled once the values are stored.
/// @param options Gets the values; must outlive `all`.
void add_options(command_options& all, server_options& options);

/// Leaves TLS out if no file of it is given.
/// Errors: invalid_argument for one or two of its three files.
[[nodiscard]] expected<void> settle(server_options& options);

} // namespace troupe
