// SPDX-License-Identifier: Apache-2.0
// Adds the steps of a run to curves, tables and totals.
#include "tools/report/run_view.hpp"

#include "actors/recording/seconds.hpp"
#include "actors/recording/step_figures.hpp"

#include <cmath>
#include <utility>

namespace troupe {

void run_view::expect(uint32_t count) {
  totals_.expect(count);
  slow_downs_.expect(count);
  make_rows(count);
}

void run_view::add(const step_record& step) {
  if (step_count() == 0) {
    first_step_ = step.step - 1;
    began_ = step.began;
  }
  slow_downs_.add(step_count(), step);
  totals_.add(step);
  last_loss_ = mean_loss(step);
  losses_.add(step.step, last_loss_);
  step_seconds_.add(step.step, seconds(step_duration(step)));
  add_gradients(step);
  last_ = {.step = step.step,
           .began = step.began,
           .ended = step.ended,
           .apply = step.apply,
           .needed = step.needed,
           .live = step.live};
}

void run_view::add_evaluation(uint64_t step, double value) {
  if (!std::isfinite(value)) return;
  last_evaluation_ = value;
  evaluations_.add(step, value);
}

void run_view::add_notice(run_notice notice) {
  notices_.push_back(std::move(notice));
  if (notices_.size() > notices_max) notices_.pop_front();
}

// All tables have the same rows, whether or not a step has waited for a replica.
void run_view::make_rows(size_t count) {
  if (count <= last_steps_.size()) return;
  last_steps_.resize(count);
  arrivals_.make_room(count - 1, 0);
  waits_.make_room(count - 1, count - 1);
}

void run_view::add_gradients(const step_record& step) {
  for (const auto* part : {&step.accepted, &step.stale, &step.cancelled})
    for (const auto& gradient : *part) {
      make_rows(size_t{gradient.replica} + 1);
      last_steps_[gradient.replica] = step.step;
    }
  const auto* last = completing_contribution(step);
  for (size_t k = 0; k < step.accepted.size(); ++k) {
    const auto& gradient = step.accepted[k];
    arrivals_.add(gradient.replica, k, 1);
    if (gradient.replica != last->replica)
      waits_.add(gradient.replica, last->replica, seconds(waited_for_completion(step, gradient)));
  }
}

} // namespace troupe
