// SPDX-License-Identifier: Apache-2.0
// The exit codes in words.
#include "strategies/jobs/exit_codes.hpp"

#include "messages/errors/failure.hpp"
#include "messages/errors/printable.hpp"

#include <cstdio>
#include <fmt/format.h>

namespace troupe {

exit_code exit_code_of(errc failure) {
  switch (failure) {
  case errc::none:
    return exit_code::finished;
  case errc::unavailable:
    return exit_code::lost_peer;
  case errc::deadline_exceeded:
  case errc::stalled:
    return exit_code::stalled;
  default:
    return exit_code::user_error;
  }
}

exit_code exit_code_of_join(errc failure) {
  auto has_come = failure == errc::unavailable; // since then it is gone
  return is_about_others(failure) && !has_come ? exit_code::no_cluster : exit_code_of(failure);
}

bool is_about_others(errc failure) {
  return failure == errc::deadline_exceeded || failure == errc::failed_precondition
         || failure == errc::unavailable;
}

exit_code exit_code_of(const job_report& report) {
  if (!report.failure) return exit_code::finished;
  auto is_formed = report.has_begun || !is_about_others(report.failure->code);
  return is_formed ? exit_code_of(report.failure->code) : exit_code::no_cluster;
}

int run_main(const std::function<int()>& body, std::string_view program) {
  try {
    return body();
  } catch (const failure& failed) {
    auto line = fmt::format("{}{}{}\n", program, program.empty() ? "" : ": ",
                            printable_line(failed.what()));
    std::fputs(line.c_str(), stderr);
    return static_cast<int>(exit_code_of(failed.reason().code));
  }
}

std::string exit_codes_text() {
  return "Exit codes:\n"
         "  0      finished: all steps were done\n"
         "  1      the trainer, the model or the disk failed; the message says where\n"
         "  2      an option, a file or a folder is invalid; nothing was done\n"
         "  3      the cluster did not form: processes were missing, or of another job\n"
         "  4      a replica or node was lost that the job cannot go on without\n"
         "  5      stalled: a deadline passed without another step\n"
         "  6      a checkpoint is missing, damaged, or of another model\n"
         "  128+n  stopped by signal n, cleanly: 130 for Ctrl-C, 143 for SIGTERM,\n"
         "         129 for SIGHUP, as of a terminal that was closed\n";
}

} // namespace troupe
