// SPDX-License-Identifier: Apache-2.0
// A sidecar evaluator for a learning problem, and what it writes.
#include "tools/train/evaluator_job.hpp"

#include "actors/recording/evaluation_file.hpp"
#include "actors/recording/event_file.hpp"
#include "messages/failure.hpp"
#include "tools/run/run_directory.hpp"
#include "tools/train/job.hpp"
#include "tools/train/saved_job.hpp"

#include <climits>
#include <condition_variable>
#include <cstdio>
#include <fmt/format.h>
#include <mutex>
#include <unistd.h>

namespace troupe {

namespace {

namespace fs = std::filesystem;

constexpr auto poll_every = std::chrono::milliseconds{200};

// Beside the steps: files are written in blocks, and folders of other machines are seen late.
constexpr job_time delay_of_files = std::chrono::seconds{10};

job_time seconds(double count) {
  return std::chrono::duration_cast<job_time>(std::chrono::duration<double>{count});
}

void say(const std::string& line) {
  fmt::print(stderr, "troupe train: {}\n", line);
}

// Bytes of a run's files, but for ours: they grow as long as it is alive.
uint64_t bytes_in(const fs::path& run) {
  uint64_t bytes = 0;
  std::error_code ignored; // what vanishes while we look is gone
  for (auto entry = fs::recursive_directory_iterator{run, ignored};
       !ignored && entry != fs::recursive_directory_iterator{}; entry.increment(ignored)) {
    if (entry->path().filename() == run_directory::evaluator_folder)
      entry.disable_recursion_pending();
    std::error_code no_file;
    if (entry->is_regular_file(no_file)) bytes += entry->file_size(no_file);
  }
  return bytes;
}

// Whether the run begins in time; false also when asked to stop.
bool begins(const evaluator_surroundings& given) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock{mutex};
  auto end = std::chrono::steady_clock::now() + given.start_deadline;
  while (!run_directory::is_begun(given.run)) {
    if (given.stop.stop_requested() || std::chrono::steady_clock::now() > end) return false;
    never.wait_for(lock, given.stop, poll_every, [] { return false; });
  }
  return true;
}

/// What an evaluator leaves behind.
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
    table_.emplace(
      value_or_throw(evaluation_file::go_on(folder_ / "evaluations.csv", measure.column)));
  }

  [[nodiscard]] std::optional<uint64_t> last_step() const { return table_->last_step(); }

  // Both reach the disk at once: there may be hours until the next.
  void add(const job_snapshot& saved, double quality) {
    value_or_throw(table_->append(saved.step, saved.time, quality));
    value_or_throw(table_->flush());
    if (!curve_) curve_.emplace(value_or_throw(event_file::create(folder_, origin_of(saved))));
    const event_scalar point[] = {{curve_name_, quality}};
    value_or_throw(curve_->add(saved.step, saved.time, point));
    value_or_throw(curve_->flush());
  }

private:
  static event_origin origin_of(const job_snapshot& saved) {
    std::string host(HOST_NAME_MAX + 1, '\0');
    if (::gethostname(host.data(), HOST_NAME_MAX) != 0) host = "localhost";
    using clock = std::chrono::system_clock;
    return {clock::now() - std::chrono::duration_cast<clock::duration>(saved.time), host.c_str()};
  }

  fs::path folder_;
  std::string curve_name_;
  std::optional<evaluation_file> table_;
  std::optional<event_file> curve_;
};

sidecar_evaluator_options evaluator_of(const train_options& options,
                                       const evaluator_surroundings& given,
                                       evaluator_files& files) {
  auto patience
    = delay_of_files + seconds(2 * options.deadline_seconds + options.rejoin_patience_seconds);
  return {
    .checkpoint_dir = given.run / run_directory::checkpoint_folder,
    .evaluate =
      [&](const found_checkpoint& found) {
        auto values = value_or_throw(model_in(found, given.problem));
        return value_or_throw(given.problem.evaluate(values));
      },
    .on_result =
      [&](const found_checkpoint& found, double value) {
        files.add(found.snapshot, value);
        const auto& measure = given.problem.measure;
        fmt::print(stderr, "step {}  {} {:.3f} {}\n", found.snapshot.step, measure.held_out, value,
                   measure.unit);
      },
    .limits = {.last_step = step_count(options, given.problem),
               .after = files.last_step(),
               .patience = patience},
    // A run that is taken back has never begun, and will leave nothing.
    .is_over
    = [&] { return run_directory::is_over(given.run) || !run_directory::is_begun(given.run); },
    .progress = [&] { return bytes_in(given.run); },
    .waits_for = given.chief,
    .poll_every = poll_every,
    .on_warning = say,
    .stop = given.stop};
}

} // namespace

evaluator_report run_evaluator_job(const train_options& options,
                                   const evaluator_surroundings& given) {
  evaluator_report report;
  report.has_begun = begins(given);
  if (!report.has_begun) {
    report.is_stopped = given.stop.stop_requested();
    if (!report.is_stopped)
      report.failure
        = error{errc::deadline_exceeded,
                fmt::format("no run has begun in {}: {} has not made that folder within {:g} s",
                            given.run.string(), given.chief,
                            std::chrono::duration<double>{given.start_deadline}.count())};
    return report;
  }
  try {
    evaluator_files files{given.run, given.problem.measure};
    auto world = world::threads({.observed = false});
    static_cast<sidecar_report&>(report)
      = sidecar_evaluator{world, evaluator_of(options, given, files)}.start();
  } catch (const failure& failed) {
    report.failure = failed.reason();
  }
  report.has_begun = run_directory::is_begun(given.run);
  if (!report.has_begun && !report.failure && !report.is_stopped)
    report.failure = error{errc::unavailable,
                           fmt::format("the run in {} was given up before it had made a step; {} "
                                       "knows why",
                                       given.run.string(), given.chief)};
  return report;
}

} // namespace troupe
