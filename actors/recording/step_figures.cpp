// SPDX-License-Identifier: Apache-2.0
// The arithmetic on one step's record.
#include "actors/recording/step_figures.hpp"

#include "actors/recording/seconds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe {

namespace {

// The time between two moments, not below 0: clocks of different actors may disagree by a little.
job_time between(job_time from, job_time to) {
  return std::max(to - from, job_time{0});
}

} // namespace

job_time step_duration(const step_record& step) {
  return between(step.began, step.ended);
}

double mean_loss(const step_record& step) {
  double sum = 0;
  uint32_t count = 0;
  for (const auto& gradient : step.accepted) {
    if (std::isnan(gradient.loss)) continue;
    sum += gradient.loss;
    ++count;
  }
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / count;
}

uint64_t accepted_examples(const step_record& step) {
  uint64_t sum = 0;
  for (const auto& gradient : step.accepted)
    sum += gradient.examples;
  return sum;
}

double examples_per_second(const step_record& step) {
  const auto took = step_duration(step);
  if (took <= job_time{0}) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(accepted_examples(step)) / seconds(took);
}

const contribution* completing_contribution(const step_record& step) {
  return step.accepted.empty() ? nullptr : &step.accepted.back();
}

job_time waited_for_completion(const step_record& step, const contribution& accepted) {
  const auto* last = completing_contribution(step);
  return last == nullptr ? job_time{0} : between(accepted.arrived, last->arrived);
}

job_time idle_until_end(const step_record& step, const contribution& accepted) {
  return between(accepted.arrived, step.ended);
}

} // namespace troupe
