// SPDX-License-Identifier: Apache-2.0
// Spans of replicas' time, out of step records, and the slow ones among them.
#include "simulation/reports/replica_spans.hpp"

#include "actors/recording/seconds.hpp"
#include "simulation/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace troupe {

namespace {

using kind = replica_state_kind;

bool is_computing(kind state) {
  return state <= kind::cancelled;
}

bool by_replica_and_time(const replica_span& left, const replica_span& right) {
  return std::tie(left.replica, left.start, left.end, left.what)
         < std::tie(right.replica, right.start, right.end, right.what);
}

} // namespace

void replica_spans::add(const step_record& step) {
  last_step_ = step.step;
  look_at(step);
  trips_.forget_before(is_behind() ? job_time::max() : step.began);
}

void replica_spans::look_at(const step_record& step) {
  if (step.step < window_.first || step.step >= window_end() + steps_awaited) return;
  if (step.step < window_end() && step.step == next_step()) {
    if (bounds_.empty()) bounds_.push_back(step.began);
    bounds_.push_back(step.ended);
  }
  if (bounds_.empty()) return; // a run that was resumed behind the window
  for (const auto& gradient : step.accepted)
    add(gradient, kind::accepted);
  for (const auto& gradient : step.stale)
    add(gradient, kind::stale);
  // A replica that is told to stop has worked since the step began: a token takes no time to come.
  for (const auto& gradient : step.cancelled)
    keep(
      {gradient.replica, kind::cancelled, step.began, gradient.arrived, gradient.local_step + 1});
}

void replica_spans::add(const delivery& delivery) {
  if (!is_behind()) trips_.add(delivery);
}

void replica_spans::add(const contribution& gradient, kind verdict) {
  auto trip = trips_.take(gradient.replica, gradient.arrived);
  auto computed = trip ? trip->sent : gradient.arrived;
  auto began = computed - gradient.compute;
  auto token = trip ? std::min(trip->asked, began) : began;
  auto put = [&, step = gradient.local_step + 1](kind state, job_time start, job_time end) {
    keep({gradient.replica, state, start, end, step});
  };
  put(kind::waiting, token - gradient.waited, token);
  put(kind::reading, token, began);
  put(verdict, began, computed);
  put(kind::sending, computed, gradient.arrived);
}

void replica_spans::keep(replica_span span) {
  auto is_open = bounds_.size() <= window_.count;
  if (span.end <= span.start || span.end <= bounds_.front()) return;
  if (!is_open && span.start >= bounds_.back()) return;
  spans_.push_back(span);
}

std::vector<replica_span> replica_spans::spans() const {
  if (bounds_.empty()) return {};
  auto sorted = spans_;
  std::ranges::sort(sorted, by_replica_and_time);
  std::vector<replica_span> result;
  auto next = sorted.begin();
  for (uint32_t replica = 0; replica < replicas_; ++replica) {
    auto at = bounds_.front();
    for (; next != sorted.end() && next->replica == replica; ++next) {
      auto start = std::max(next->start, at);
      auto end = std::min(next->end, bounds_.back());
      if (end <= start) continue; // beyond the window, or told twice
      if (start > at) {
        auto waits_for_answer = next->what == kind::waiting && !result.empty()
                                && result.back().what == kind::sending && result.back().end == at;
        auto state = waits_for_answer ? kind::waiting : gap(at, start);
        result.push_back({replica, state, at, start, next->step});
      }
      result.push_back({replica, next->what, start, end, next->step});
      at = end;
    }
    if (at < bounds_.back()) result.push_back({replica, kind::absent, at, bounds_.back(), 0});
  }
  return result;
}

// It is unknown how long a replica has waited for the token of a gradient that was cancelled.
replica_state_kind replica_spans::gap(job_time start, job_time end) const {
  auto step_end = std::ranges::upper_bound(bounds_, start);
  return step_end != bounds_.end() && end <= *step_end ? kind::waiting : kind::absent;
}

slow_down_map slow_down_of(const replica_spans& spans) {
  slow_down_map map{.first_step = spans.first_step()};
  const auto& bounds = spans.bounds();
  if (bounds.empty()) return map;
  map.replicas_per_row
    = (spans.replica_count() + slow_down_map::rows_max - 1) / slow_down_map::rows_max;
  auto rows = (spans.replica_count() + map.replicas_per_row - 1) / map.replicas_per_row;
  map.rows.assign(rows,
                  std::vector<float>(bounds.size() - 1, std::numeric_limits<float>::quiet_NaN()));
  std::vector<double> lengths;
  for (const auto& span : spans.all())
    if (span.what == kind::accepted || span.what == kind::stale)
      lengths.push_back(seconds(span.end - span.start));
  map.usual_seconds = sorted_values{std::move(lengths)}.quantile(0.5);
  for (const auto& span : spans.all()) {
    if (!is_computing(span.what)) continue;
    auto times = static_cast<float>(seconds(span.end - span.start) / map.usual_seconds);
    auto first
      = std::max<ptrdiff_t>(std::ranges::upper_bound(bounds, span.start) - bounds.begin() - 1, 0);
    auto& row = map.rows[span.replica / map.replicas_per_row];
    for (auto i = static_cast<size_t>(first); i + 1 < bounds.size() && bounds[i] < span.end; ++i)
      if (std::isnan(row[i]) || times > std::abs(row[i]))
        row[i] = span.what == kind::cancelled ? -times : times;
  }
  return map;
}

} // namespace troupe
