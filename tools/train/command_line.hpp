// SPDX-License-Identifier: Apache-2.0
// The command line of `troupe train`: from argv to checked options.
#pragma once

#include "messages/errc.hpp"
#include "strategies/cluster/cluster_flags.hpp"
#include "strategies/cluster/server.hpp"
#include "tools/options/option_origin.hpp"
#include "tools/train/train_options.hpp"

#include <string>

namespace troupe {

/// What the user asked for.
struct train_command {
  train_options options;
  option_origins origins;
  cluster_options cluster; ///< Not of the run's configuration: it may go on elsewhere.
  server_options server;   ///< Not of it either; its `replicas` are those of `options`.
  /// If not empty, the user asked for a text (--help, --dump-config): print it on standard output
  /// and exit with 0, without a run.
  std::string answer;
};

/// Reads the arguments after `troupe train`, and the file that --config names. Of an option that is
/// given several times the command line beats the file, the file beats the default. Nothing is
/// written, and no file but that of --config is looked at.
/// @param argument_count, arguments As of main: the first argument is the command's own name.
/// Errors: one line, without the program's name, for everything that exits with `exit_code::usage`.
[[nodiscard]] expected<train_command> parse_train_options(int argument_count,
                                                          const char* const* arguments);

} // namespace troupe
