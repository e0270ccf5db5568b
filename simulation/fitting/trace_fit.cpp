// SPDX-License-Identifier: Apache-2.0
// Slow replicas and slow periods of a trace, and the distribution of its other times.
#include "simulation/fitting/trace_fit.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/mapped.hpp"
#include "simulation/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>
#include <map>
#include <utility>

namespace troupe {

namespace {

constexpr double slow_replica_factor = 1.25;
constexpr double slow_step_factor = 1.25;
constexpr double slow_draw_factor = 1.5;
constexpr double chance = 0.01;
constexpr int looks = 4; // each without the periods that those before have found

using series = std::vector<double>;

// The value that this share of all are below.
double quantile_of(series values, double share) {
  auto place = static_cast<ptrdiff_t>(share * static_cast<double>(values.size()));
  std::ranges::nth_element(values, values.begin() + place);
  return values[static_cast<size_t>(place)];
}

double median_of(series values) {
  return quantile_of(std::move(values), 0.5);
}

series medians_of(const trace_table& table) {
  return mapped(table.seconds, median_of);
}

// Whether more times lie above a limit than half of them do by chance.
bool is_surely_above(const series& times, double limit) {
  auto count = static_cast<double>(times.size());
  auto above = static_cast<double>(
    std::ranges::count_if(times, [limit](double time) { return time > limit; }));
  return above - count / 2 > 4 * std::sqrt(count) / 2;
}

std::vector<slow_replica_fit> slow_replicas_of(const trace_table& table, const series& medians,
                                               double typical) {
  std::vector<slow_replica_fit> slow;
  for (size_t i = 0; i < medians.size(); ++i)
    if (medians[i] > slow_replica_factor * typical && is_surely_above(table.seconds[i], typical))
      slow.push_back({static_cast<uint32_t>(i), medians[i] / typical, medians[i]});
  return slow;
}

// A run of `share`-likely draws this long comes up in `count` draws with a small chance.
uint64_t surprising_length(double share, double count) {
  if (share <= 0) return 2;
  return static_cast<uint64_t>(
    std::max(2.0, std::ceil(std::log(chance / count) / std::log(share))));
}

/// Series of draws in units of what is usual, and which of them lie in a slow period.
struct marked_series {
  std::vector<series> ratios;
  std::vector<std::vector<bool>> in_period;
};

// Marks every run that is surprisingly long by what is not marked yet.
void mark(marked_series& marked, double factor) {
  double usual = 0;
  double longer = 0;
  for (size_t i = 0; i < marked.ratios.size(); ++i)
    for (size_t k = 0; k < marked.ratios[i].size(); ++k) {
      if (marked.in_period[i][k]) continue;
      ++usual;
      longer += marked.ratios[i][k] > factor ? 1 : 0;
    }
  // If most draws are long, long is what is usual.
  auto share = usual > 0 ? longer / usual : 1;
  if (share > 0.5) return;
  auto length = surprising_length(share, usual);
  for (size_t i = 0; i < marked.ratios.size(); ++i) {
    const auto& ratios = marked.ratios[i];
    for (size_t first = 0; first < ratios.size();) {
      auto end = first;
      while (end < ratios.size() && ratios[end] > factor)
        ++end;
      if (end - first >= length)
        std::fill(marked.in_period[i].begin() + static_cast<ptrdiff_t>(first),
                  marked.in_period[i].begin() + static_cast<ptrdiff_t>(end), true);
      first = std::max(end, first + 1);
    }
  }
}

// The marked runs, and by how much their draws are longer on average. @param typical_seconds Each
// series' seconds for a ratio of 1.
slow_periods periods_of(const marked_series& marked, const series& typical_seconds) {
  slow_periods result;
  double slow_sum = 0;
  double usual_sum = 0;
  uint64_t slow_draws = 0;
  for (size_t i = 0; i < marked.ratios.size(); ++i) {
    bool goes_on = false;
    for (size_t k = 0; k < marked.ratios[i].size(); ++k) {
      auto ratio = marked.ratios[i][k];
      auto is_slow = marked.in_period[i][k];
      (is_slow ? slow_sum : usual_sum) += ratio;
      if (is_slow && !goes_on) result.list.push_back({static_cast<uint32_t>(i), k});
      if (is_slow) {
        ++slow_draws;
        ++result.list.back().draw_count;
        result.list.back().seconds += ratio * typical_seconds[i];
      } else {
        ++result.usual_draws;
      }
      goes_on = is_slow;
    }
  }
  if (!result.list.empty() && result.usual_draws > 0)
    result.factor = slow_sum / static_cast<double>(slow_draws)
                    / (usual_sum / static_cast<double>(result.usual_draws));
  return result;
}

slow_periods look_for_periods(marked_series& marked, double factor, const series& typical_seconds) {
  for (const auto& ratios : marked.ratios)
    marked.in_period.emplace_back(ratios.size(), false);
  for (int i = 0; i < looks; ++i)
    mark(marked, factor);
  return periods_of(marked, typical_seconds);
}

// The ratio that three of four replicas exceed at each draw: several that are slow by themselves
// at one time do not make all slow. Empty if replicas do not make steps together.
series step_ratios(const trace_table& table, const series& medians) {
  constexpr size_t replicas_min = 3;
  auto draws = table.seconds.front().size();
  auto is_of_steps
    = std::ranges::all_of(table.seconds, [=](const auto& times) { return times.size() == draws; });
  if (!is_of_steps || table.seconds.size() < replicas_min) return {};
  series ratios;
  for (size_t draw = 0; draw < draws; ++draw) {
    series step;
    for (size_t i = 0; i < medians.size(); ++i)
      step.push_back(table.seconds[i][draw] / medians[i]);
    ratios.push_back(quantile_of(std::move(step), 0.25));
  }
  auto usual = median_of(ratios);
  if (usual <= 0) return {};
  for (double& ratio : ratios)
    ratio /= usual;
  return ratios;
}

} // namespace

std::string slow_periods::expression() const {
  uint64_t draws = 0;
  for (const auto& one : list)
    draws += one.draw_count;
  auto count = static_cast<double>(list.size());
  auto enter = std::min(0.5, count / static_cast<double>(std::max<uint64_t>(1, usual_draws)));
  auto leave = std::min(0.5, count / static_cast<double>(draws));
  return fmt::format("on_off({:.3g}, {:.3g}, {:.3g})", enter, leave, factor);
}

double slow_periods::seconds() const {
  double sum = 0;
  for (const auto& one : list)
    sum += one.seconds;
  return sum;
}

std::string trace_fit::expression() const {
  auto text = families.front().expression;
  if (!of_all.list.empty()) text += fmt::format(" * common({})", of_all.expression());
  if (!of_one.list.empty()) text += fmt::format(" * {}", of_one.expression());
  std::map<std::string, std::vector<uint32_t>> replicas; // by their factor
  for (const auto& one : slow)
    replicas[fmt::format("{:.3g}", one.factor)].push_back(one.replica);
  for (const auto& [factor, numbers] : replicas)
    text += fmt::format(" slow={{{}}}*{}", fmt::join(numbers, ","), factor);
  return text;
}

trace_fit fit_trace(const trace_table& table) {
  trace_fit fit;
  auto medians = medians_of(table);
  fit.time_count = table.time_count(table.seconds.size());
  fit.median_seconds = median_of(medians);
  // Without a usual time nothing is longer than usual.
  auto can_compare = std::ranges::min(medians) > 0;
  if (can_compare) fit.slow = slow_replicas_of(table, medians, fit.median_seconds);

  marked_series steps;
  if (can_compare) steps.ratios = {step_ratios(table, medians)};
  fit.of_all = look_for_periods(steps, slow_step_factor, {fit.median_seconds});
  auto is_slow_step = [&](size_t draw) {
    return !steps.in_period.empty() && draw < steps.in_period[0].size() && steps.in_period[0][draw];
  };

  marked_series draws;
  for (size_t i = 0; i < table.seconds.size() && can_compare; ++i) {
    auto& ratios = draws.ratios.emplace_back();
    for (size_t k = 0; k < table.seconds[i].size(); ++k)
      ratios.push_back(table.seconds[i][k] / medians[i]
                       / (is_slow_step(k) ? fit.of_all.factor : 1));
  }
  fit.of_one = look_for_periods(draws, slow_draw_factor, medians);

  auto factors = series(table.seconds.size(), 1.0);
  for (const auto& one : fit.slow)
    factors[one.replica] = one.factor;
  for (size_t i = 0; i < table.seconds.size(); ++i)
    for (size_t k = 0; k < table.seconds[i].size(); ++k)
      if (!is_slow_step(k) && !(can_compare && draws.in_period[i][k]))
        fit.usual.push_back(table.seconds[i][k] / factors[i]);
  std::ranges::sort(fit.usual);
  fit.families = fit_families(fit.usual);
  return fit;
}

step_comparison compare_steps(const trace_table& table, const distribution& compute) {
  constexpr uint64_t drawn_max = 200'000; // of all replicas together
  auto replicas = table.seconds.size();
  auto longest_of = [&](uint64_t draws, const auto& seconds_of) {
    series longest(draws, 0);
    for (size_t draw = 0; draw < draws; ++draw)
      for (size_t replica = 0; replica < replicas; ++replica)
        longest[draw] = std::max(longest[draw], seconds_of(replica, draw));
    return longest;
  };
  auto half_of = [](const series& longest) {
    return error_of({batch_means(longest, short_batch_count)}).half_width();
  };
  auto measured = longest_of(
    table.draw_count(), [&](size_t replica, size_t draw) { return table.seconds[replica][draw]; });
  auto times = compute.times(0);
  auto fitted = longest_of(std::max<uint64_t>(drawn_max / replicas, batch_count),
                           [&](size_t replica, size_t draw) {
                             return seconds(times(static_cast<uint32_t>(replica), draw));
                           });
  step_comparison result{estimate_of(measured).mean, estimate_of(fitted).mean};
  auto difference = std::abs(result.fitted_seconds - result.measured_seconds);
  result.is_different = difference > 0.1 * result.measured_seconds
                        && difference > half_of(measured) + half_of(fitted);
  return result;
}

} // namespace troupe
