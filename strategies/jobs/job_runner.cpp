// SPDX-License-Identifier: Apache-2.0
// The phases of a job, one after the other.
#include "strategies/jobs/job_runner.hpp"

#include "messages/errors/failure.hpp"

#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <stop_token>

namespace troupe {

job_report job_runner::run() {
  try {
    for (auto now = phase::gathering; now != phase::over;)
      now = pass(now);
    return *report_;
  } catch (...) {
    auto report = abandon(std::current_exception());
    report.has_begun = has_begun_;
    return report;
  }
}

void job_runner::warn(const std::string& line) {
  std::lock_guard guard{warning_};
  hooks_.call("on_warning", nullptr, [&] { // warnings come to the end
    if (options_.on_warning) return options_.on_warning(line);
    std::fprintf(stderr, "warning: %s\n", line.c_str());
  });
}

void job_runner::warn_of_evaluation(uint64_t step) {
  warn(fmt::format("the evaluation at step {} has failed, and training goes on: {}", step,
                   reason_of(std::current_exception()).message));
}

job_runner::phase job_runner::pass(phase now) {
  switch (now) {
  case phase::gathering:
    report_ = gather();
    has_begun_ = !report_;
    return has_begun_ ? phase::preparing : phase::leaving;
  case phase::preparing:
    begin();
    return phase::training;
  case phase::training:
    report_ = play();
    return phase::leaving;
  case phase::leaving:
    report_ = leave(*report_);
    report_->has_begun = has_begun_;
    return phase::over;
  case phase::over:
    break;
  }
  return phase::over;
}

void job_runner::begin() {
  session_plan plan{.world = world_,
                    .first_step = restore(),
                    .steps = options_.steps,
                    .replicas = strategy_.num_replicas_in_sync()};
  show_tasks(plan);
  hooks_.begin(plan);
  prepare(plan);
}

job_report job_runner::play() {
  hooks_.after_create_session();
  std::stop_callback on_stop{options_.stop, [this] { control_.request_stop("asked to stop"); }};
  auto report = train();
  hooks_.end(report);
  if (!report.failure) report.failure = hooks_.failure();
  return report;
}

} // namespace troupe
