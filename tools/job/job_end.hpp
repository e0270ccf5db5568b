// SPDX-License-Identifier: Apache-2.0
// What a job says in the end, to people and to the shell.
#pragma once

#include "actors/interfaces/job_report.hpp"
#include "messages/errc.hpp"
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

/// The exit code of a process after its job has ended so. @param signal_number That has asked it to
/// end; 0: none.
[[nodiscard]] int code_of(const job_report& report, int signal_number);

/// Says what kept a job from beginning. @param otherwise The code, if that is neither a signal nor
/// others that are missing. @returns The exit code.
[[nodiscard]] int refuse_job(std::string_view program, const error& reason,
                             const resolved_cluster& cluster, int signal_number,
                             exit_code otherwise);

/// Why a job ended before its last step, in a line; empty if it did not.
[[nodiscard]] std::string early_end(std::string_view program, const job_report& report,
                                    uint64_t steps);

/// Prints the result of the last evaluation, and what others need for the same.
void print_quality(const job_subject& subject, double quality);

/// Under `tensorflow` leftover tokens go stale; a user of backups should hear what that costs.
void print_what_if(const job_options& options, const run_folder_hook& run);

/// Draws the run, or says how.
void draw(const std::filesystem::path& folder, const job_subject& subject, plots_of what);

} // namespace troupe
