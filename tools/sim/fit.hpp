// SPDX-License-Identifier: Apache-2.0
// `troupe sim fit TRACE`: finds the distribution that measured computing times have.
#pragma once

#include "messages/errors/errc.hpp"
#include "simulation/fitting/trace_fit.hpp"

#include <string>

namespace troupe {

/// The command line of `troupe sim fit`.
struct fit_command {
  std::string trace;  ///< The file.
  std::string json;   ///< File for the report, "-" for standard output; empty: none.
  std::string plots;  ///< Folder for the picture and its numbers; empty: none.
  std::string answer; ///< To be printed instead, if not empty.
};

/// The report in words, and as one JSON object.
[[nodiscard]] std::string fit_text(const fit_command& command, const trace_table& table,
                                   const trace_fit& fit);
[[nodiscard]] std::string fit_json(const fit_command& command, const trace_table& table,
                                   const trace_fit& fit);

/// Runs the command; `arguments[0]` is "fit". @returns The exit code of the process.
int fit_command_main(int argument_count, const char* const* arguments);

} // namespace troupe
