// SPDX-License-Identifier: Apache-2.0
// Arrivals of a run's gradients, and their quantiles.
#include "simulation/reports/arrival_profile.hpp"

#include "messages/mapped.hpp"
#include "simulation/statistics.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

void arrival_profile::add(const step_record& step) {
  if (count_++ % stride_ != 0) return;
  auto& kept = steps_.emplace_back();
  kept.reserve(step.accepted.size());
  for (const auto& gradient : step.accepted)
    kept.push_back(std::chrono::duration<float>(gradient.arrived - step.began).count());
  values_ += kept.size();
  if (values_ <= values_max || steps_.size() < 2) return;
  stride_ *= 2;
  size_t half = 0;
  values_ = 0;
  for (size_t i = 0; i < steps_.size(); i += 2, ++half) {
    if (i != half) steps_[half] = std::move(steps_[i]);
    values_ += steps_[half].size();
  }
  steps_.resize(half);
}

std::vector<arrival_figures> arrival_profile::figures() const {
  if (steps_.empty()) return {};
  auto reached = std::ranges::min(steps_, {}, &std::vector<float>::size).size();
  std::vector<arrival_figures> figures;
  for (size_t k = 0; k < reached; ++k) {
    auto times = mapped<double>(steps_, [&](const auto& step) { return step[k]; });
    auto mean = estimate_of(times).mean;
    sorted_values sorted{std::move(times)};
    figures.push_back({static_cast<uint32_t>(k + 1), mean, sorted.quantile(0.1),
                       sorted.quantile(0.5), sorted.quantile(0.9)});
  }
  return figures;
}

} // namespace troupe
