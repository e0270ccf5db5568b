// SPDX-License-Identifier: Apache-2.0
// Stops a job, logs its steps, and writes its curves.
#include "strategies/jobs/hooks.hpp"

#include "messages/errors/throw_failure.hpp"
#include "strategies/contexts/replica_function.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace troupe {

namespace {

// The mean of the losses that were reported; NaN if there is none.
double mean_loss(const step_record& step) {
  double sum = 0;
  size_t count = 0;
  for (const auto& gradient : step.accepted) {
    if (gradient.examples == 0 && std::isnan(gradient.loss)) continue; // not reported
    sum += gradient.loss;
    ++count;
  }
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
}

// A negative number has become a large one on its way here.
void check_steps(const char* name, uint64_t steps) {
  if (auto count = static_cast<int64_t>(steps); count < 1)
    throw_failure(errc::invalid_argument, "stop_at_step_hook: {} is {}; training needs at least 1",
                  name, count);
}

} // namespace

std::shared_ptr<stop_at_step_hook> stop_at_step_hook::at(uint64_t last_step) {
  check_steps("last_step", last_step);
  std::shared_ptr<stop_at_step_hook> hook{new stop_at_step_hook};
  hook->last_step_ = last_step;
  return hook;
}

std::shared_ptr<stop_at_step_hook> stop_at_step_hook::after(uint64_t num_steps) {
  check_steps("num_steps", num_steps);
  std::shared_ptr<stop_at_step_hook> hook{new stop_at_step_hook};
  hook->num_steps_ = num_steps;
  return hook;
}

void stop_at_step_hook::begin(session_plan& plan) {
  auto last = last_step_.value_or(plan.first_step + num_steps_);
  if (last < plan.first_step)
    throw_failure(errc::invalid_argument, "the job is to stop at step {}, but has made {} already",
                  last, plan.first_step);
  plan.steps = std::min(plan.steps, last - plan.first_step);
}

logging_hook::logging_hook(uint64_t every_steps, std::function<void(const std::string&)> say)
  : every_steps_(every_steps), say_(std::move(say)) {
  check_given("logging_hook", say_);
}

void logging_hook::after_step(const session_control&, const step_record& step) {
  if (every_steps_ == 0 || step.step % every_steps_ != 0) return;
  say_(fmt::format("step {}: loss {:.4g}, {} accepted, {} stale", step.step, mean_loss(step),
                   step.accepted.size(), step.stale.size()));
}

void logging_hook::end(const job_report& report) {
  say_(report.failure ? fmt::format("failed at step {}: {}", report.step, report.failure->message)
                      : fmt::format("done at step {}", report.step));
}

summary_saver_hook::summary_saver_hook(const std::filesystem::path& folder, uint64_t every_steps,
                                       const event_origin& origin)
  : every_steps_(every_steps), curves_(value_or_throw(event_file::create(folder, origin))) {
  require(every_steps > 0, "every_steps is 0; show one step of 1 or more");
}

void summary_saver_hook::after_step(const session_control&, const step_record& step) {
  if (step.step % every_steps_ == 0) value_or_throw(curves_.append(step));
}

void summary_saver_hook::end(const job_report&) {
  value_or_throw(curves_.flush());
}

void nan_stop_hook::after_step(const session_control& session, const step_record& step) {
  auto is_lost = [](const contribution& gradient) {
    return std::isinf(gradient.loss) || (gradient.examples > 0 && std::isnan(gradient.loss));
  };
  auto found = std::ranges::find_if(step.accepted, is_lost);
  if (found == step.accepted.end()) return;
  auto line
    = fmt::format("the loss of replica {} is {} at step {}; lower the learning rate, or clip "
                  "gradients",
                  found->replica, found->loss, step.step);
  if (fail_) throw failure{{errc::user_code, line}};
  session.request_stop(line);
}

profile_window_hook::profile_window_hook(uint64_t first, uint64_t last,
                                         std::function<void(const step_record&)> show)
  : first_(first), last_(last), show_(std::move(show)) {
  check_given("profile_window_hook", show_);
}

void profile_window_hook::after_step(const session_control&, const step_record& step) {
  if (step.step >= first_ && step.step <= last_) show_(step);
}

} // namespace troupe
