// SPDX-License-Identifier: Apache-2.0
// A job as the command line of its program asks for it.
#pragma once

#include <functional>
#include <string>

namespace troupe {

class command_options;
struct job_command;
struct job_options;

/// The options and the command of a job, read and checked. They outlive the job.
struct job_request {
  std::string program; ///< Begins lines: "troupe train".
  job_command& command;
  job_options& options;             ///< Fitted to the cluster.
  const command_options& described; ///< All options that files may hold, with their values.
  /// The run's config.toml, without its folder.
  std::function<std::string()> config;
};

} // namespace troupe
