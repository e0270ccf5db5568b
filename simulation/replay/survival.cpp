// SPDX-License-Identifier: Apache-2.0
// The estimate of Kaplan and Meier, with an exponential tail.
#include "simulation/replay/survival.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

constexpr double unlike_errors = 3;    // standard errors
constexpr uint64_t completed_min = 10; // times of a replica that tell of itself
constexpr double tail_share = 0.1;     // of the completed times
constexpr size_t tail_min = 10;

// A time above another by what a clock of nanoseconds can tell.
job_time just_above(job_time time) {
  return time + job_time{1};
}

job_time sum_of(double nanoseconds, job_time time) {
  constexpr double most = 1e18; // as nanoseconds, that is 32 years
  return time + job_time{static_cast<int64_t>(std::min(nanoseconds, most))};
}

// The mean time that gradients last beyond the time that a tenth of the completed ones exceed.
double tail_mean_of(const std::vector<recorded_time>& sorted, uint64_t completed) {
  auto in_tail
    = std::max<size_t>(tail_min, static_cast<size_t>(tail_share * static_cast<double>(completed)));
  size_t seen = 0;
  job_time begin{0};
  for (size_t i = sorted.size(); i-- > 0 && seen <= in_tail;) {
    if (sorted[i].at_least) continue;
    ++seen;
    begin = sorted[i].time;
  }
  if (seen <= in_tail) begin = job_time{0};
  double exposure = 0;
  double count = 0;
  for (const auto& one : sorted) {
    if (one.time <= begin) continue;
    exposure += static_cast<double>((one.time - begin).count());
    count += one.at_least ? 0 : 1;
  }
  return count == 0 ? 0 : exposure / count;
}

} // namespace

survival_estimate::survival_estimate(std::vector<recorded_time> times) {
  // A completed time comes before equal ones that are not: those lasted longer.
  std::ranges::sort(times, [](const recorded_time& a, const recorded_time& b) {
    return a.time != b.time ? a.time < b.time : a.at_least < b.at_least;
  });
  double surviving = 1;
  double hazard = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i].at_least) continue;
    ++completed_;
    longest_ = times[i].time;
    auto at_risk = static_cast<double>(times.size() - i);
    surviving *= 1 - 1 / at_risk;
    hazard += 1 / at_risk;
    if (!points_.empty() && points_.back().time == times[i].time)
      points_.back() = {times[i].time, surviving, hazard};
    else
      points_.push_back({times[i].time, surviving, hazard});
  }
  tail_mean_ = tail_mean_of(times, completed_);
}

job_time survival_estimate::longer_than(job_time least, double uniform, bool beyond) const {
  auto target = surviving(least) * uniform;
  auto found = std::ranges::lower_bound(points_, -target, {}, [](const point& one) {
    return -one.surviving; // ascending
  });
  if (found != points_.end() && found->time > least) return found->time;
  auto begin = std::max(longest_, just_above(least));
  if (!beyond) return begin;
  auto left = points_.empty() ? 1 : points_.back().surviving;
  auto is_past = least >= longest_ || left <= 0;
  return sum_of(tail_mean_ * -std::log(is_past ? uniform : target / left), begin);
}

double survival_estimate::hazard_until(job_time time) const {
  const auto* last = last_until(time);
  return last == nullptr ? 0 : last->hazard;
}

double survival_estimate::surviving(job_time time) const {
  const auto* last = last_until(time);
  return last == nullptr ? 1 : last->surviving;
}

const survival_estimate::point* survival_estimate::last_until(job_time time) const {
  auto next = std::ranges::upper_bound(points_, time, {}, &point::time);
  return next == points_.begin() ? nullptr : &*std::prev(next);
}

survival_groups survival_groups_of(std::span<const std::vector<recorded_time>> replicas) {
  auto pool_of = [&](const std::vector<bool>& is_alike) {
    std::vector<recorded_time> all;
    for (size_t i = 0; i < replicas.size(); ++i)
      if (is_alike[i]) all.insert(all.end(), replicas[i].begin(), replicas[i].end());
    return survival_estimate{std::move(all)};
  };
  std::vector<bool> all_alike(replicas.size(), true);
  survival_groups groups{.pool = pool_of(all_alike),
                         .own = {},
                         .is_alike = all_alike,
                         .is_unknown = std::vector<bool>(replicas.size(), false)};
  for (const auto& times : replicas)
    groups.own.emplace_back(times);
  auto look = [&] {
    for (size_t i = 0; i < replicas.size(); ++i) {
      double predicted = 0;
      for (const auto& one : replicas[i])
        predicted += groups.pool.hazard_until(one.time);
      auto completed = static_cast<double>(groups.own[i].completed_count());
      groups.is_alike[i] = std::abs(completed - predicted) <= unlike_errors * std::sqrt(predicted);
    }
  };
  look(); // against all, and then against those that are alike
  if (std::ranges::count(groups.is_alike, true) > 0) {
    groups.pool = pool_of(groups.is_alike);
    look();
  }
  for (size_t i = 0; i < replicas.size(); ++i)
    groups.is_unknown[i] = !groups.is_alike[i] && groups.own[i].completed_count() < completed_min;
  return groups;
}

} // namespace troupe
