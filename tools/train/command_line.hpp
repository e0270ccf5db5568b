// SPDX-License-Identifier: Apache-2.0
// Reads the command line of `troupe train` into checked options.
#pragma once

#include "messages/errors/errc.hpp"
#include "tools/options/job_command.hpp"
#include "tools/train/train_options.hpp"

namespace troupe {

/// The arguments of `troupe train`, as parsed.
struct train_command : job_command {
  train_options options;
};

/// Reads the arguments after `troupe train`, and the file that --config names. For each option, the
/// command line beats the file, and the file beats the default. Nothing is written, and no file but
/// that of --config is looked at.
/// @param argument_count, arguments As of main: the first argument is the command's own name.
/// Errors: one line, without the program's name, for everything that exits with `exit_code::usage`.
[[nodiscard]] expected<train_command> parse_train_options(int argument_count,
                                                          const char* const* arguments);

} // namespace troupe
