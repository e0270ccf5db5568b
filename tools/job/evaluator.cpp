// SPDX-License-Identifier: Apache-2.0
// Waits for a run, evaluates its checkpoints and writes the results.
#include "tools/job/evaluator.hpp"

#include "actors/recording/evaluation_file.hpp"
#include "actors/recording/event_file.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "tools/run/run_directory.hpp"
#include "tools/run/run_folder_hook.hpp"
#include "tools/system/standard_streams.hpp"

#include <condition_variable>
#include <cstdio>
#include <fmt/format.h>
#include <mutex>

namespace troupe {

namespace {

namespace fs = std::filesystem;

constexpr auto poll_every = std::chrono::milliseconds{200};

// Files are written in blocks, and changes in folders of other machines are seen late.
constexpr job_time file_delay_max = std::chrono::seconds{10};

// Bytes of a run's files, but for the evaluator's own: they grow as long as the run is alive.
uint64_t bytes_in(const fs::path& run) {
  uint64_t bytes = 0;
  std::error_code ignored; // a file may vanish meanwhile
  for (auto entry = fs::recursive_directory_iterator{run, ignored};
       !ignored && entry != fs::recursive_directory_iterator{}; entry.increment(ignored)) {
    if (entry->path().filename() == run_directory::evaluator_folder)
      entry.disable_recursion_pending();
    std::error_code no_file;
    if (entry->is_regular_file(no_file)) bytes += entry->file_size(no_file);
  }
  return bytes;
}

// Waits until the run has begun. @returns Whether it has; false if it is late, or if the evaluator
// is asked to stop.
bool wait_for_begin(const evaluator_options& options) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock{mutex};
  auto end = std::chrono::steady_clock::now() + options.start_deadline;
  while (!run_directory::is_begun(options.run)) {
    if (options.stop.stop_requested() || std::chrono::steady_clock::now() > end) return false;
    never.wait_for(lock, options.stop, poll_every, [] { return false; });
  }
  return true;
}

/// The files that an evaluator writes into the run's folder `eval`.
class evaluator_files {
public:
  evaluator_files(const fs::path& run, const quality_measure& measure)
    : folder_(run / run_directory::evaluator_folder),
      curve_name_(fmt::format("evaluation/{}", measure.column)) {
    std::error_code refused;
    fs::create_directory(folder_, refused);
    if (refused)
      throw failure{
        {errc::resource, fmt::format("cannot make {}: {}", folder_.string(), refused.message())}};
    table_.emplace(value_or_throw(
      evaluation_file::go_on(run_directory::at(folder_).evaluations(), measure.column)));
  }

  [[nodiscard]] std::optional<uint64_t> last_step() const { return table_->last_step(); }

  // Table and curve reach the disk at once: the next evaluation may be hours away.
  void add(const job_snapshot& saved, double quality) {
    value_or_throw(table_->append(saved.step, saved.time, quality));
    value_or_throw(table_->flush());
    if (!curve_)
      curve_.emplace(value_or_throw(event_file::create(folder_, curve_origin(saved.time))));
    const event_scalar point[] = {{curve_name_, quality}};
    value_or_throw(curve_->add(saved.step, saved.time, point));
    value_or_throw(curve_->flush());
  }

private:
  fs::path folder_;
  std::string curve_name_;
  std::optional<evaluation_file> table_;
  std::optional<event_file> curve_;
};

sidecar_evaluator_options sidecar_options(const evaluator_options& options,
                                          evaluator_files& files) {
  auto warn = [&](const std::string& line) {
    print_if_possible(stderr, "{}: {}\n", options.program, line);
  };
  return {
    .checkpoint_dir = options.run / run_directory::checkpoint_folder,
    .evaluate = options.evaluate,
    .on_result =
      [&](const found_checkpoint& found, double value) {
        files.add(found.snapshot, value);
        print_if_possible(stderr, "step {}  {} {:.3f} {}\n", found.snapshot.step,
                          options.measure.held_out, value, options.measure.unit);
      },
    .limits = {.last_step = options.last_step,
               .after = files.last_step(),
               .timeout = file_delay_max + options.timeout},
    // A run that took its folder back has never begun, and leaves nothing.
    .is_over
    = [&] { return run_directory::is_over(options.run) || !run_directory::is_begun(options.run); },
    .progress = [&] { return bytes_in(options.run); },
    .waits_for = options.chief,
    .poll_every = poll_every,
    .on_warning = warn,
    .stop = options.stop};
}

} // namespace

evaluator_report run_evaluator(const evaluator_options& options) {
  evaluator_report report;
  report.has_begun = wait_for_begin(options);
  if (!report.has_begun) {
    report.is_stopped = options.stop.stop_requested();
    if (!report.is_stopped)
      report.failure
        = error{errc::deadline_exceeded,
                fmt::format("no run has begun in {}: {} has not made that folder within {:g} s",
                            options.run.string(), options.chief,
                            std::chrono::duration<double>{options.start_deadline}.count())};
    return report;
  }
  try {
    evaluator_files files{options.run, options.measure};
    auto world = world::threads({.observed = false});
    static_cast<sidecar_report&>(report)
      = sidecar_evaluator{world, sidecar_options(options, files)}.start();
  } catch (const failure& failed) {
    report.failure = failed.reason();
  }
  report.has_begun = run_directory::is_begun(options.run);
  if (!report.has_begun && !report.failure && !report.is_stopped)
    report.failure = error{errc::unavailable,
                           fmt::format("the run in {} was given up before it had made a step; {} "
                                       "knows why",
                                       options.run.string(), options.chief)};
  return report;
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

} // namespace troupe
