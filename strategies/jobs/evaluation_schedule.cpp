// SPDX-License-Identifier: Apache-2.0
// Decides by the checkpoints that are there, and by the time since the last news.
#include "strategies/jobs/evaluation_schedule.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

bool evaluation_schedule::has_all() const {
  if (limits_.max_evaluations > 0 && count_ >= limits_.max_evaluations) return true;
  return limits_.last_step && done_up_to_ && *done_up_to_ >= *limits_.last_step;
}

evaluation_schedule::decision evaluation_schedule::next(const sight& seen) {
  if (has_all()) return {action::finish};
  auto fresh = std::ranges::find_if(
    seen.steps, [this](uint64_t step) { return !done_up_to_ || step > *done_up_to_; });
  if (fresh != seen.steps.end()) return {action::evaluate, *fresh};
  if (seen.is_over) return {action::finish};
  if (std::exchange(progress_, seen.progress) != seen.progress) news_at_ = seen.now;
  return {seen.now - news_at_ > limits_.timeout ? action::give_up : action::wait};
}

void evaluation_schedule::on_done(uint64_t step, bool counts, job_time now) {
  done_up_to_ = step;
  news_at_ = now;
  if (!counts) return;
  last_evaluated_ = step;
  ++count_;
}

} // namespace troupe
