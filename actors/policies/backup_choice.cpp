// SPDX-License-Identifier: Apache-2.0
// The gain per second of each number of gradients.
#include "actors/policies/backup_choice.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {

namespace {

// The curvature as long as none is known.
constexpr double usual_curvature = 0.1;

// The bounds of a credible estimate: training with a curvature of 2 does not learn.
constexpr double curvature_min = 0.001;
constexpr double curvature_max = 1.9;

template <class List>
void keep_newest(List& list, size_t count) {
  while (list.size() > count)
    list.pop_front();
}

} // namespace

gradient_spread gradient_spread::of(const gradient_norms& norms, uint32_t count) {
  TROUPE_ASSERT(count >= 2, count);
  auto spread = std::max(0.0, norms.mean_squared - norms.squared_mean);
  auto variance = spread * count / (count - 1);
  return {std::max(0.0, norms.squared_mean - variance / count), variance};
}

uint32_t best_count(std::span<const double> gains, std::span<const double> times) {
  TROUPE_ASSERT(!gains.empty());
  TROUPE_ASSERT(gains.size() == times.size(), gains.size(), times.size());
  size_t best = gains.size() - 1;
  auto rate = [&](size_t i) { return gains[i] / std::max(times[i], 1e-9); };
  if (std::ranges::max(gains) <= 0) return static_cast<uint32_t>(gains.size());
  for (size_t i = gains.size() - 1; i-- > 0;)
    if (rate(i) > rate(best)) best = i;
  return static_cast<uint32_t>(best + 1);
}

void backup_choice::add(const step_record& step, const gradient_norms& norms) {
  arrivals_.add(step);
  auto count = static_cast<uint32_t>(step.accepted.size());
  if (options_.gain != gain_model::measured) return;
  if (count < 2) return descent_.clear();
  auto spread = gradient_spread::of(norms, count);
  if (!std::isfinite(spread.squared_norm) || !std::isfinite(spread.variance))
    return descent_.clear();
  spreads_.push_back(spread);
  keep_newest(spreads_, options_.window);
  add_descent(step, norms);
}

// Adds a step to the descent, which begins anew where a step has no loss: only consecutive steps
// show how the loss fell.
void backup_choice::add_descent(const step_record& step, const gradient_norms& norms) {
  auto count = static_cast<double>(step.accepted.size());
  double loss = 0;
  for (const auto& gradient : step.accepted)
    loss += gradient.loss / count;
  if (!std::isfinite(loss)) return descent_.clear();
  auto variance = (norms.mean_squared - norms.squared_mean) * count / (count - 1);
  descent_.push_back({loss, norms.squared_mean - variance / count, norms.squared_mean});
  keep_newest(descent_, options_.memory);
}

double backup_choice::curvature() const {
  if (options_.curvature > 0) return options_.curvature;
  if (learning_rate_ == 0 || descent_.size() < options_.window) return usual_curvature;
  std::vector<descent_step> steps{descent_.begin(), descent_.end()};
  auto estimated = estimate_curvature(steps, learning_rate_);
  return std::clamp(estimated.value_or(usual_curvature), curvature_min, curvature_max);
}

backup_estimates backup_choice::estimates() const {
  return {arrivals_.rows(), spreads_, descent_};
}

void backup_choice::restore(backup_estimates known) {
  arrivals_.restore(std::move(known.arrivals));
  spreads_ = std::move(known.spreads);
  descent_ = std::move(known.descent);
  keep_newest(spreads_, options_.window);
  keep_newest(descent_, options_.memory);
}

uint32_t backup_choice::choose(const std::vector<uint32_t>& replicas, job_time now) const {
  TROUPE_ASSERT(!replicas.empty());
  auto is_known = options_.gain != gain_model::measured || !spreads_.empty();
  if (is_empty() || !is_known) return static_cast<uint32_t>(replicas.size());
  return best_count(gains(replicas.size()), arrivals_.expected_times(replicas, now));
}

std::vector<double> backup_choice::gains(size_t count) const {
  gradient_spread mean;
  for (const auto& spread : spreads_) {
    mean.squared_norm += spread.squared_norm / static_cast<double>(spreads_.size());
    mean.variance += spread.variance / static_cast<double>(spreads_.size());
  }
  auto curvature = this->curvature();
  std::vector<double> result;
  for (uint32_t k = 1; k <= count; ++k)
    result.push_back(options_.gain == gain_model::power ? std::pow(k, options_.power)
                                                        : mean.gain(k, curvature));
  return result;
}

} // namespace troupe
