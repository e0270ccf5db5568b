// SPDX-License-Identifier: Apache-2.0
// Turns step records into samples of progress.
#include "tools/run/progress_hook.hpp"

#include "actors/recording/step_figures.hpp"
#include "tools/system/terminal.hpp"

#include <cstdio>
#include <string>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace {

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

} // namespace

progress_hook::progress_hook(quality_measure measure)
  : measure_(measure), progress_({.terminal = is_terminal(STDERR_FILENO),
                                  .loss_unit = std::string{measure.loss_unit}}) {}

void progress_hook::begin(session_plan& plan) {
  std::lock_guard guard{mutex_};
  step_count_ = plan.first_step + plan.steps;
}

void progress_hook::after_step(const session_control&, const step_record& step) {
  std::lock_guard guard{mutex_};
  count_dropped(step);
  examples_ += accepted_examples(step);
  progress_.fit(terminal_width(STDERR_FILENO)); // its window may have changed
  print(progress_.update({.step = step.step,
                          .step_count = step_count_,
                          .loss = mean_loss(step) / measure_.nats,
                          .examples = examples_,
                          .examples_per_second = examples_per_second(step),
                          .live = step.live,
                          .needed = step.needed,
                          .dropped = dropped_},
                         step.ended));
}

void progress_hook::count_dropped(const step_record& step) {
  for (const auto& gradient : step.cancelled)
    stopped_.add(gradient);
  dropped_ += step.cancelled.size();
  for (const auto& gradient : step.stale)
    if (!stopped_.take(gradient)) ++dropped_;
}

void progress_hook::end(const job_report&) {
  finish();
}

// Calls `keep_` without the lock: it may have a line to show.
void progress_hook::say(std::string_view line) {
  show(line);
  std::unique_lock lock{mutex_};
  auto keep = keep_;
  lock.unlock();
  if (keep) keep(line);
}

void progress_hook::show(std::string_view line) {
  std::lock_guard guard{mutex_};
  print(progress_.message(line));
}

void progress_hook::keep_by(std::function<void(std::string_view line)> keep) {
  std::lock_guard guard{mutex_};
  keep_ = std::move(keep);
}

void progress_hook::finish() {
  std::lock_guard guard{mutex_};
  print(progress_.finish());
}

} // namespace troupe
