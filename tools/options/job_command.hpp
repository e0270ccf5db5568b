// SPDX-License-Identifier: Apache-2.0
// The command line of a program that runs a job.
#pragma once

#include "messages/errors/errc.hpp"
#include "strategies/cluster/cluster_flags.hpp"
#include "strategies/cluster/server.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/job_options.hpp"
#include "tools/options/option_origin.hpp"

#include <string>

namespace troupe {

/// The options of a command line that files may not hold.
struct job_command {
  option_origins origins;
  cluster_options cluster;   ///< No part of the run's configuration: it may go on elsewhere.
  server_options server;     ///< No part of it either; its `replicas` are those of `job_options`.
  std::string config;        ///< The file that --config names; empty: none.
  bool dumps_config = false; ///< Whether --dump-config was given.
  /// If not empty, the user asked for a text (--help, --dump-config): print it on standard output
  /// and exit with 0, without a run.
  std::string answer;
};

/// Options of a program that runs a job: none yet, and a help that ends with signals and exit
/// codes.
/// @param introduction, sample As `command_options` takes them.
[[nodiscard]] command_options options_of_job(std::string introduction, std::string sample);

/// Adds the options of cluster, server, files and help to those of `all`. Reads the arguments, and
/// the file that --config names or that of the run that --resume names. For each option, the
/// command line beats the file, and the file beats the default.
/// @param command Gets the values; must outlive `all`.
/// Errors: invalid_argument, not_found; the line names the culprit.
[[nodiscard]] expected<void> read_job_command(command_options& all, job_command& command,
                                              int argument_count, const char* const* arguments);

/// Sets the options that follow from the strategy, and those of the server that follow from the
/// cluster. Comes after the values are stored, and before `check`. Errors: as `fit_strategy`, and
/// as `settle` of a server.
[[nodiscard]] expected<void> settle(job_command& command, job_options& options);

} // namespace troupe
