// SPDX-License-Identifier: Apache-2.0
// Passes each record on to every file.
#include "tools/run/run_folder_hook.hpp"

#include "actors/recording/replica_table.hpp"
#include "actors/recording/step_figures.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/contexts/strategy.hpp"
#include "tools/run/run_directory.hpp"

#include <chrono>
#include <climits>
#include <cmath>
#include <fmt/format.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace {

constexpr std::chrono::seconds unflushed_max{5};

std::vector<std::string> tracks_of(const strategy& strategy) {
  std::vector<std::string> tracks{"chief"};
  for (uint32_t i = 0; i < strategy.num_replicas_in_sync(); ++i)
    tracks.push_back(replica_track(i));
  for (const auto& variable : strategy.variables())
    tracks.push_back(owner_track(variable.name()));
  return tracks;
}

} // namespace

event_origin curve_origin(job_time elapsed) {
  std::string host(HOST_NAME_MAX + 1, '\0');
  if (::gethostname(host.data(), HOST_NAME_MAX) != 0) host = "localhost";
  using clock = std::chrono::system_clock;
  return {clock::now() - std::chrono::duration_cast<clock::duration>(elapsed), host.c_str()};
}

run_folder_hook::files run_folder_hook::create(const strategy& strategy,
                                               const std::filesystem::path& folder,
                                               const run_folder_options& options) {
  std::error_code ignored; // the first file reports it
  std::filesystem::create_directories(folder, ignored);
  const auto names = run_directory::at(folder);
  return {value_or_throw(metrics_file::create(names.metrics())),
          value_or_throw(evaluation_file::create(names.evaluations(), options.measure.column)),
          value_or_throw(ledger_file::create(names.ledger(), options.ledger_bytes_max)),
          value_or_throw(notice_file::create(names.notices())),
          value_or_throw(timeline_file::create(names.timeline(),
                                               {.job = options.program,
                                                .tracks = tracks_of(strategy),
                                                .file_bytes_max = options.timeline_bytes_max})),
          value_or_throw(event_file::create(folder, curve_origin(options.began)))};
}

run_folder_hook::run_folder_hook(const strategy& strategy, const std::filesystem::path& folder,
                                 run_folder_options options)
  : folder_(folder), options_(std::move(options)), files_(create(strategy, folder, options_)),
    computing_times_(strategy.num_replicas_in_sync()) {
  summary_.expect(strategy.num_replicas_in_sync());
}

void run_folder_hook::after_step(const session_control&, const step_record& step) {
  std::lock_guard guard{mutex_};
  last_step_ = step.step;
  summary_.add(step);
  has_losses_ = has_losses_ || std::isfinite(mean_loss(step));
  keep_computing_times(step);
  warn_once(files_.metrics.append(step));
  warn_once(files_.ledger.append(step));
  write_curves(step);
  warn_once(files_.timeline.append(step.step, events_.events_of(step)));
  flush_if_due();
}

void run_folder_hook::on_trouble(const std::string&) {
  std::lock_guard guard{mutex_};
  flush_all();
}

void run_folder_hook::end(const job_report&) {
  finish();
}

void run_folder_hook::on_evaluation(uint64_t step, job_time when, double quality) {
  std::lock_guard guard{mutex_};
  warn_once(files_.evaluations.append(step, when, quality));
  const auto name = fmt::format("evaluation/{}", options_.measure.column);
  const event_scalar point[] = {{name, quality}};
  warn_once(files_.curves.add(step, when, point));
}

void run_folder_hook::keep_notice(std::string_view line) {
  std::lock_guard guard{mutex_};
  warn_once(files_.notices.append(last_step_, line));
  flush_all();
}

void run_folder_hook::finish() {
  std::lock_guard guard{mutex_};
  flush_all();
  warn_once(write_replica_table(run_directory::at(folder_).replicas(), summary_));
}

void run_folder_hook::flush_all() {
  flushed_ = std::chrono::steady_clock::now();
  warn_once(files_.metrics.flush());
  warn_once(files_.evaluations.flush());
  warn_once(files_.ledger.flush());
  warn_once(files_.timeline.flush());
  warn_once(files_.curves.flush());
}

// Blocks of lines fill slowly where steps take long.
void run_folder_hook::flush_if_due() {
  if (std::chrono::steady_clock::now() - flushed_ >= unflushed_max) flush_all();
}

void run_folder_hook::write_curves(const step_record& step) {
  if (!event_file::has_points(step.step)) return;
  warn_once(files_.curves.append(step));
  if (!options_.learning_rate) return;
  const event_scalar rate[] = {{"learning_rate", options_.learning_rate(step.step)}};
  warn_once(files_.curves.add(step.step, step.ended, rate));
}

void run_folder_hook::keep_computing_times(const step_record& step) {
  for (const auto* part : {&step.accepted, &step.stale})
    for (const auto& gradient : *part) {
      if (gradient.replica >= computing_times_.size()) continue;
      auto& times = computing_times_[gradient.replica];
      if (times.size() == 2 * computing_times_min)
        times.erase(times.begin(), times.begin() + computing_times_min);
      times.push_back(gradient.compute);
    }
}

void run_folder_hook::warn_once(const expected<void>& written) {
  if (written || !reported_failures_.insert(written.error().message).second) return;
  const auto line
    = fmt::format("{}: {}; the run goes on without it", options_.program, written.error().message);
  if (options_.on_warning) options_.on_warning(line);
  warn_once(files_.notices.append(last_step_, line)); // a failure of it is reported once, too
}

} // namespace troupe
