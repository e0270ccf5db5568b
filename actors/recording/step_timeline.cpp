// SPDX-License-Identifier: Apache-2.0
// Spans, arrows and instants out of step records.
#include "actors/recording/step_timeline.hpp"

#include <algorithm>

namespace troupe {

namespace {

using kind = timeline_event::kind;

constexpr size_t step_ends_max = 256; // a token older than so many steps gets no arrow

// A moment inside a span, near its end: viewers tie arrows to the span around them.
job_time just_before(job_time end, job_time duration) {
  return end - std::min<job_time>(duration / 2, std::chrono::microseconds{1});
}

// A moment inside a span, near its beginning.
job_time just_after(job_time start, job_time duration) {
  return start + std::min<job_time>(duration / 2, std::chrono::microseconds{1});
}

// Cuts events to the time of the job: by another clock some may have begun before it.
void cut_before_job(std::vector<timeline_event>& events) {
  for (auto& event : events) {
    auto before = std::max(job_time{0} - event.start, job_time{0});
    event.start += before;
    event.duration = std::max(event.duration - before, job_time{0});
  }
}

timeline_event instant_of(const contribution& gradient, const char* verdict) {
  return {.what = kind::instant,
          .actor = replica_track(gradient.replica),
          .name = verdict,
          .start = gradient.arrived,
          .step = gradient.local_step};
}

} // namespace

std::string replica_track(uint32_t replica) {
  return "replica " + std::to_string(replica);
}

std::string owner_track(const std::string& variable) {
  return "owner " + variable;
}

std::vector<timeline_event> step_timeline::events_of(const step_record& step) {
  std::vector<timeline_event> events;
  add_chief(step, events);
  for (const auto& gradient : step.accepted) {
    add_compute(gradient, step, events);
    add_gradient_arrow(gradient, step, events);
  }
  for (const auto& gradient : step.stale) {
    add_compute(gradient, step, events);
    events.push_back(instant_of(gradient, "stale"));
  }
  for (const auto& gradient : step.cancelled)
    events.push_back(instant_of(gradient, "cancelled"));
  step_ends_[step.step] = step.ended;
  if (step_ends_.size() > step_ends_max) step_ends_.erase(step_ends_.begin());
  cut_before_job(events);
  return events;
}

void step_timeline::add_chief(const step_record& step, std::vector<timeline_event>& events) const {
  events.push_back({.actor = "chief",
                    .name = "step",
                    .start = step.began,
                    .duration = step.ended - step.began,
                    .step = step.step});
  events.push_back({.actor = "chief",
                    .name = "update",
                    .start = step.ended - step.apply,
                    .duration = step.apply,
                    .step = step.step});
  for (const auto& update : step.updates)
    events.push_back({.actor = owner_track(update.variable),
                      .name = "apply",
                      .start = update.ended - update.took,
                      .duration = update.took,
                      .step = step.step});
}

void step_timeline::add_compute(const contribution& gradient, const step_record& step,
                                std::vector<timeline_event>& events) {
  auto began = gradient.arrived - gradient.compute;
  if (gradient.waited > job_time{0})
    events.push_back({.actor = replica_track(gradient.replica),
                      .name = "wait for token",
                      .start = began - gradient.waited,
                      .duration = gradient.waited,
                      .step = gradient.local_step});
  events.push_back({.actor = replica_track(gradient.replica),
                    .name = "compute",
                    .start = began,
                    .duration = gradient.compute,
                    .step = gradient.local_step});
  add_token_arrow(gradient, step, events);
}

void step_timeline::add_gradient_arrow(const contribution& gradient, const step_record& step,
                                       std::vector<timeline_event>& events) {
  timeline_event arrow{.what = kind::flow_start,
                       .actor = replica_track(gradient.replica),
                       .name = "gradient",
                       .start = just_before(gradient.arrived, gradient.compute),
                       .flow = ++flows_,
                       .step = step.step};
  events.push_back(arrow);
  arrow.what = kind::flow_end;
  arrow.actor = "chief";
  arrow.start = just_before(step.ended, step.apply);
  events.push_back(arrow);
}

// A token of the step before leaves the chief at the beginning of this step: an arrow needs a span
// where it starts, and a timeline that was full does not show all steps.
void step_timeline::add_token_arrow(const contribution& gradient, const step_record& step,
                                    std::vector<timeline_event>& events) {
  auto made = step_ends_.find(gradient.local_step);
  if (made == step_ends_.end()) return;
  auto taken = just_after(gradient.arrived - gradient.compute, gradient.compute);
  auto given = just_before(made->second, std::chrono::microseconds{2});
  if (gradient.local_step + 1 == step.step)
    given = std::min(just_after(step.began, step.ended - step.began), taken);
  timeline_event arrow{.what = kind::flow_start,
                       .actor = "chief",
                       .name = "token",
                       .start = given,
                       .flow = ++flows_,
                       .step = gradient.local_step};
  events.push_back(arrow);
  arrow.what = kind::flow_end;
  arrow.actor = replica_track(gradient.replica);
  arrow.start = taken;
  events.push_back(arrow);
}

} // namespace troupe
