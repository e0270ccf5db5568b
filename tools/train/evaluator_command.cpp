// SPDX-License-Identifier: Apache-2.0
// Finding the run's folder, and what to say in the end.
#include "tools/train/evaluator_command.hpp"

#include "strategies/jobs/exit_codes.hpp"
#include "tools/options/help.hpp"
#include "tools/run/restart.hpp"
#include "tools/run/run_directory.hpp"
#include "tools/system/signal_watch.hpp"
#include "tools/train/evaluator_job.hpp"

#include <cstdio>
#include <fmt/format.h>

namespace troupe {

namespace {

// "chief 0 (10.0.0.1:2222)"
std::string chief_text(const resolved_cluster& cluster) {
  const auto& chief = cluster.tasks[cluster.chief()];
  if (chief.address.empty()) return to_string(chief);
  return fmt::format("{} ({})", to_string(chief), chief.address);
}

std::string end_text(const evaluator_report& report) {
  if (report.failure) return report.failure->message;
  auto last
    = report.last_step ? fmt::format(", the last of step {}", *report.last_step) : std::string{};
  return fmt::format("{}; {} checkpoints evaluated{}",
                     report.is_stopped ? "asked to stop" : "the run has ended", report.evaluations,
                     last);
}

int code_of(const evaluator_report& report, int signal_number) {
  if (report.is_stopped) return exit_code_of_signal(signal_number);
  if (!report.failure) return static_cast<int>(exit_code::finished);
  if (!report.has_begun) return static_cast<int>(exit_code::no_cluster);
  auto is_of_another_job = report.failure->code == errc::failed_precondition;
  return static_cast<int>(is_of_another_job ? exit_code::bad_checkpoint
                                            : exit_code_of(report.failure->code));
}

} // namespace

int evaluator_command(const train_command& command, const resolved_cluster& cluster,
                      const learning_problem& problem) {
  const auto& options = command.options;
  auto attempt = find_attempt(options.run_dir, true, process_environment());
  if (!attempt) return refuse("troupe train", attempt.error());
  const auto& folder = attempt->own;
  if (folder.empty())
    return refuse("troupe train",
                  {errc::invalid_argument,
                   "an evaluator finds the run by its folder: give all tasks the same --run-dir"});
  if (options.checkpoint_every == 0)
    return refuse(
      "troupe train",
      {errc::invalid_argument,
       "an evaluator evaluates checkpoints, but --checkpoint-every 0 makes none: leave it "
       "out"});
  signal_watch signals;
  fmt::print(stderr, "evaluates {}/{}\n", folder, run_directory::checkpoint_folder);
  auto report = run_evaluator_job(options, {.problem = problem,
                                            .run = folder,
                                            .chief = chief_text(cluster),
                                            .start_deadline = command.server.start_deadline,
                                            .stop = signals.token()});
  fmt::print(stderr, "troupe train: {}\n", end_text(report));
  return code_of(report, signals.signal_number());
}

} // namespace troupe
