// SPDX-License-Identifier: Apache-2.0
// Where the warnings and the failure of a job go.
#include "strategies/jobs/job_lines.hpp"

#include <cstdio>

namespace troupe {

void tell_warning(const training_options& options, const std::string& line) {
  if (options.on_warning) return options.on_warning(line);
  std::fprintf(stderr, "warning: %s\n", line.c_str());
}

job_report tell_failure(const training_options& options, job_report report) {
  if (!report.failure) return report;
  if (options.on_failure)
    options.on_failure(*report.failure);
  else
    std::fprintf(stderr, "training failed: %s\n", report.failure->message.c_str());
  return report;
}

} // namespace troupe
