// SPDX-License-Identifier: Apache-2.0
// Passing each record on to every file.
#include "tools/run/run_recorder.hpp"

#include "actors/recording/replica_table.hpp"
#include "actors/recording/step_figures.hpp"
#include "tools/system/terminal.hpp"

#include <chrono>
#include <climits>
#include <cstdio>
#include <fmt/format.h>
#include <numbers>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace {

constexpr std::chrono::seconds unflushed_max{5};

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

// What the events of a job that has gone on for some time are dated and named by.
event_origin here_and_now(job_time began) {
  std::string host(HOST_NAME_MAX + 1, '\0');
  if (::gethostname(host.data(), HOST_NAME_MAX) != 0) host = "localhost";
  using clock = std::chrono::system_clock;
  return {clock::now() - std::chrono::duration_cast<clock::duration>(began), host.c_str()};
}

std::vector<std::string> tracks_of(const run_recorder_options& options) {
  std::vector<std::string> tracks{"chief"};
  for (uint32_t i = 0; i < options.replica_count; ++i)
    tracks.push_back(replica_track(i));
  for (const auto& variable : options.variables)
    tracks.push_back(owner_track(variable));
  return tracks;
}

} // namespace

expected<std::unique_ptr<run_recorder>> run_recorder::create(const run_directory& directory,
                                                             run_recorder_options options) {
  auto metrics = metrics_file::create(directory.metrics());
  if (!metrics) return tl::unexpected<error>(metrics.error());
  auto evaluations = evaluation_file::create(directory.evaluations(), options.measure.column);
  if (!evaluations) return tl::unexpected<error>(evaluations.error());
  auto ledger = ledger_file::create(directory.ledger());
  if (!ledger) return tl::unexpected<error>(ledger.error());
  auto notices = notice_file::create(directory.notices());
  if (!notices) return tl::unexpected<error>(notices.error());
  auto timeline
    = timeline_file::create(directory.timeline(), {.job = "troupe train",
                                                   .tracks = tracks_of(options),
                                                   .file_bytes_max = options.timeline_bytes_max});
  if (!timeline) return tl::unexpected<error>(timeline.error());
  auto curves = event_file::create(directory.path(), here_and_now(options.began));
  if (!curves) return tl::unexpected<error>(curves.error());
  files files{std::move(*metrics), std::move(*evaluations), std::move(*ledger),
              std::move(*notices), std::move(*timeline),    std::move(*curves)};
  return std::unique_ptr<run_recorder>{
    new run_recorder(directory, std::move(options), std::move(files))};
}

run_recorder::run_recorder(const run_directory& directory, run_recorder_options options,
                           files files)
  : directory_(directory), options_(std::move(options)), files_(std::move(files)),
    progress_({.terminal = is_terminal(STDERR_FILENO),
               .width = terminal_width(STDERR_FILENO),
               .loss_unit = std::string{options_.measure.loss_unit}}),
    computing_times_(options_.replica_count) {}

void run_recorder::on_step(const step_record& step) {
  std::lock_guard guard{mutex_};
  last_step_ = step.step;
  summary_.add(step);
  keep_computing_times(step);
  tell_once(files_.metrics.append(step));
  tell_once(files_.ledger.append(step));
  write_curves(step);
  tell_once(files_.timeline.append(step.step, events_.events_of(step)));
  show_progress(step);
  flush_now_and_then();
}

void run_recorder::on_evaluation(uint64_t step, job_time when, double quality) {
  std::lock_guard guard{mutex_};
  tell_once(files_.evaluations.append(step, when, quality));
  const auto name = fmt::format("evaluation/{}", options_.measure.column);
  const event_scalar curve[] = {{name, quality}};
  tell_once(files_.curves.add(step, when, curve));
}

void run_recorder::say(std::string_view line) {
  std::lock_guard guard{mutex_};
  print(progress_.message(line));
  keep(line);
}

void run_recorder::keep_notice(std::string_view line) {
  std::lock_guard guard{mutex_};
  keep(line);
}

void run_recorder::finish() {
  std::lock_guard guard{mutex_};
  print(progress_.finish());
  tell_once(files_.metrics.flush());
  tell_once(files_.evaluations.flush());
  tell_once(files_.ledger.flush());
  tell_once(files_.timeline.flush());
  tell_once(files_.curves.flush());
  tell_once(write_replica_table(directory_.replicas(), summary_));
}

void run_recorder::keep(std::string_view line) {
  tell_once(files_.notices.append(last_step_, line));
}

// Blocks of lines fill slowly where steps take long.
void run_recorder::flush_now_and_then() {
  auto now = std::chrono::steady_clock::now();
  if (now - flushed_ < unflushed_max) return;
  flushed_ = now;
  tell_once(files_.metrics.flush());
  tell_once(files_.evaluations.flush());
  tell_once(files_.ledger.flush());
}

void run_recorder::write_curves(const step_record& step) {
  tell_once(files_.curves.append(step));
  const event_scalar rate[] = {{"learning_rate", options_.learning_rate(step.step)}};
  tell_once(files_.curves.add(step.step, step.ended, rate));
}

void run_recorder::keep_computing_times(const step_record& step) {
  for (const auto* part : {&step.accepted, &step.stale})
    for (const auto& gradient : *part)
      if (gradient.replica < computing_times_.size())
        computing_times_[gradient.replica].push_back(gradient.compute);
}

void run_recorder::show_progress(const step_record& step) {
  auto total = summary_.total();
  print(progress_.update({.step = step.step,
                          .step_count = options_.step_count,
                          .loss = mean_loss(step) / std::numbers::ln2,
                          .examples_per_second = examples_per_second(step),
                          .live = step.live,
                          .needed = step.needed,
                          .dropped = total.stale + total.cancelled},
                         step.ended));
}

void run_recorder::tell_once(const expected<void>& written) {
  if (written || std::exchange(told_, true)) return;
  print(progress_.message(
    fmt::format("troupe train: {}; the run goes on without it", written.error().message)));
}

} // namespace troupe
