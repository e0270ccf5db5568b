// SPDX-License-Identifier: Apache-2.0
// Prints the outcome of a job for people, and gives its exit code for the shell.
#pragma once

#include "actors/interfaces/job_report.hpp"
#include "messages/errors/errc.hpp"
#include "strategies/cluster/resolved_cluster.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "tools/job/job_subject.hpp"
#include "tools/options/job_options.hpp"
#include "tools/run/run_folder_hook.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace troupe {

/// The exit code of a process whose job has ended with this report. @param signal_number The signal
/// that asked it to end; 0: none.
[[nodiscard]] int code_of(const job_report& report, int signal_number);

/// Prints why a job did not begin. @param otherwise The code if the reason is neither a signal nor
/// a missing process. A process that `bad_checkpoint` is given for has met the others: a
/// failed_precondition is taken to be about its checkpoint. @returns The exit code.
[[nodiscard]] int refuse_job(std::string_view program, const error& reason,
                             const resolved_cluster& cluster, int signal_number,
                             exit_code otherwise);

/// Why a job ended before its last step, in a line; empty if it did not.
[[nodiscard]] std::string early_end(std::string_view program, const job_report& report,
                                    uint64_t steps);

/// Prints the result of the last evaluation, with those of simple methods on the same data.
void print_quality(const job_subject& subject, double quality);

/// Under `tensorflow`, leftover tokens go stale. For a job with backups, prints the mean step time
/// that a simulation gives under `tensorflow` and under `latest_token`.
void print_what_if(const job_options& options, const run_folder_hook& run);

/// Draws the plots of a run, or prints the command that does; if even their scripts cannot be
/// written, prints why. @param is_wanted False: gnuplot is not started, which may take longer than
/// a launcher waits for a job that it has asked to stop.
void draw(const std::filesystem::path& folder, const job_subject& subject, plots_of plots,
          bool is_wanted);

} // namespace troupe
