// SPDX-License-Identifier: Apache-2.0
// The exit codes of a trainer.
#pragma once

#include "actors/interfaces/job_report.hpp"
#include "messages/errors/errc.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace troupe {

/// Schedulers and scripts see nothing of a job but this number, so each stands for one reaction of
/// theirs. `troupe` ends with one, and so does a program if its `main` returns it:
/// `static_cast<int>(exit_code_of(report))`, or the result of `run_main`.
enum class exit_code : uint8_t {
  finished = 0,       ///< The job did all its steps.
  user_error = 1,     ///< Code of the trainer or the model failed, or the disk.
  usage = 2,          ///< An option, a file or a folder is invalid; nothing was done.
  no_cluster = 3,     ///< The cluster did not form: others were missing or refused.
  lost_peer = 4,      ///< A replica or node was lost that the job cannot go on without.
  stalled = 5,        ///< A deadline passed without another step.
  bad_checkpoint = 6, ///< A checkpoint is missing, damaged, or of another model.
  skipped = 77,       ///< A test found no device to run on.
};

/// Ended by signal `number`, as shells report it: 128 + number.
[[nodiscard]] constexpr int exit_code_of_signal(int number) {
  return 128 + number;
}

/// The code for a job that ended with this failure. Before its start, the caller knows whether an
/// error of another kind than `user_code` and `resource` is `usage` or `bad_checkpoint`.
[[nodiscard]] exit_code exit_code_of(errc failure);

/// The code for a process that `server::join` has failed in: `no_cluster` if the chief's process
/// did not come, or the two refused each other. A process that was asked to stop (cancelled) ends
/// as its program answers that, with `exit_code_of_signal` for example.
[[nodiscard]] exit_code exit_code_of_join(errc failure);

/// Whether a job that cannot begin for this reason is neither wrong nor lost: others are missing.
[[nodiscard]] bool is_about_others(errc failure);

/// The code for a job that has ended: `no_cluster` if it had not begun for want of others.
[[nodiscard]] exit_code exit_code_of(const job_report& report);

/// For a `main` that may meet a `failure`: runs `body`, and says on one line of standard error why
/// it failed.
/// @param program Begins the line, "NAME: "; without a name the line is the reason alone.
/// @returns For `main`: the result of `body`, or the code of the `failure` that it threw.
/// Errors: any other exception passes.
[[nodiscard]] int run_main(const std::function<int()>& body, std::string_view program = {});

/// The table of exit codes, one line each, for `--help`.
[[nodiscard]] std::string exit_codes_text();

} // namespace troupe
