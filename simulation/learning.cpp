// SPDX-License-Identifier: Apache-2.0
// Losses of slow and fast replicas, and the arithmetic of local steps.
#include "simulation/learning.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/errors/assert.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {

namespace {

constexpr uint64_t draws = 256;
constexpr double slow_factor = 1.25;

double mean_seconds(const computing_time& compute, uint32_t replica) {
  double sum = 0;
  for (uint64_t i = 0; i < draws; ++i)
    sum += seconds(compute(replica, i));
  return sum / draws;
}

// target -= rate * rows, each at its number.
template <class T>
void subtract(std::span<T> target, const indexed_slices& rows, double rate) {
  auto numbers = rows.indices.values<int64_t>();
  auto values = rows.values.contiguous();
  auto elements = values.values<T>();
  auto width = numbers.empty() ? 0 : elements.size() / numbers.size();
  for (size_t row = 0; row < numbers.size(); ++row)
    for (size_t i = 0; i < width; ++i)
      target[static_cast<size_t>(numbers[row]) * width + i]
        -= static_cast<T>(rate) * elements[row * width + i];
}

template <class T>
void subtract(std::span<T> target, const tensor& gradient, double rate) {
  auto contiguous = gradient.contiguous();
  auto elements = contiguous.values<T>();
  for (size_t i = 0; i < target.size(); ++i)
    target[i] -= static_cast<T>(rate) * elements[i];
}

template <class T>
tensor descended_by(const tensor& value, const gradient& gradient, double rate) {
  auto result = value.clone();
  auto target = result.mutable_values<T>();
  std::visit([&](const auto& form) { subtract<T>(target, form, rate); }, gradient);
  return result;
}

tensor descended(const tensor& value, const gradient& gradient, double rate) {
  return value.type() == dtype::f64 ? descended_by<double>(value, gradient, rate)
                                    : descended_by<float>(value, gradient, rate);
}

} // namespace

std::vector<uint32_t> slow_replicas(const computing_time& compute, uint32_t replicas) {
  std::vector<double> means;
  for (uint32_t replica = 0; replica < replicas; ++replica)
    means.push_back(mean_seconds(compute, replica));
  auto sorted = means;
  std::ranges::sort(sorted);
  std::vector<uint32_t> slow;
  for (uint32_t replica = 0; replica < replicas; ++replica)
    if (means[replica] > slow_factor * sorted[sorted.size() / 2]) slow.push_back(replica);
  return slow;
}

loss_point evaluate(const learning_task& task, std::span<const tensor> values, uint32_t replicas,
                    std::span<const uint32_t> slow) {
  std::vector<uint32_t> fast;
  for (uint32_t replica = 0; replica < replicas; ++replica)
    if (!std::ranges::binary_search(slow, replica)) fast.push_back(replica);
  if (slow.empty() || fast.empty()) {
    std::vector<uint32_t> all(replicas);
    std::iota(all.begin(), all.end(), 0U);
    return {.loss = task.evaluate(values, all)};
  }
  loss_point point{.slow_loss = task.evaluate(values, slow),
                   .fast_loss = task.evaluate(values, fast)};
  auto share = static_cast<double>(slow.size()) / replicas;
  point.loss = share * point.slow_loss + (1 - share) * point.fast_loss;
  return point;
}

double seconds_to(double target, std::span<const loss_point> curve) {
  for (size_t i = 0; i < curve.size(); ++i) {
    if (!(curve[i].loss <= target)) continue;
    if (i == 0) return curve[i].seconds;
    const auto& before = curve[i - 1];
    auto share = (before.loss - target) / (before.loss - curve[i].loss);
    return before.seconds + share * (curve[i].seconds - before.seconds);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::vector<tensor> descended(const std::vector<tensor>& values,
                              const std::vector<gradient>& gradients, double rate) {
  TROUPE_ASSERT(values.size() == gradients.size(), values.size(), gradients.size());
  std::vector<tensor> result;
  for (size_t i = 0; i < values.size(); ++i)
    result.push_back(descended(values[i], gradients[i], rate));
  return result;
}

std::vector<gradient> differences(const std::vector<tensor>& before,
                                  const std::vector<tensor>& after) {
  TROUPE_ASSERT(before.size() == after.size(), before.size(), after.size());
  std::vector<gradient> result;
  for (size_t i = 0; i < before.size(); ++i)
    result.emplace_back(descended(before[i], after[i], 1));
  return result;
}

} // namespace troupe
