// SPDX-License-Identifier: Apache-2.0
// Comparing the gradients of a step with each other.
#include "tools/report/straggler_map.hpp"

#include "actors/recording/seconds.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace troupe {

namespace {

// A cancelled gradient has no computing time.
bool is_timed(const contribution& gradient) {
  return gradient.compute > job_time{0};
}

// The middle one of several times, or the mean of the two in the middle. Puts them into another
// order.
double median_of(std::vector<double>& times) {
  auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  if (times.size() % 2 != 0) return *middle;
  return (*std::max_element(times.begin(), middle) + *middle) / 2;
}

} // namespace

void straggler_map::add(uint64_t index, const step_record& step) {
  if (index >= first_index_ + table_.columns().width()) {
    close_stretch(table_);
    totals_.resize(replicas_.size());
    for (size_t replica = 0; replica < replicas_.size(); ++replica) {
      totals_[replica].sum += replicas_[replica].sum;
      totals_[replica].count += replicas_[replica].count;
    }
    replicas_.assign(replicas_.size(), {});
    first_index_ = index;
  }
  const std::array parts{&step.accepted, &step.stale, &step.cancelled};
  times_.clear();
  for (const auto* part : parts)
    for (const auto& gradient : *part)
      if (is_timed(gradient)) times_.push_back(seconds(gradient.compute));
  if (times_.empty()) return;
  const auto median = median_of(times_);
  for (const auto* part : parts)
    for (const auto& gradient : *part) {
      if (!is_timed(gradient)) continue;
      if (gradient.replica >= replicas_.size()) replicas_.resize(gradient.replica + 1);
      replicas_[gradient.replica].sum += seconds(gradient.compute) / median;
      ++replicas_[gradient.replica].count;
    }
}

folding_table straggler_map::table() const {
  auto result = table_;
  close_stretch(result);
  return result;
}

double straggler_map::mean_of(uint32_t replica) const {
  mean all;
  for (const auto* part : {&totals_, &replicas_})
    if (replica < part->size())
      all = {all.sum + (*part)[replica].sum, all.count + (*part)[replica].count};
  return all.count > 0 ? all.sum / static_cast<double>(all.count)
                       : std::numeric_limits<double>::quiet_NaN();
}

void straggler_map::close_stretch(folding_table& into) const {
  if (replicas_.empty()) return;
  into.make_room(replicas_.size() - 1, first_index_);
  const auto width = into.rows().width();
  for (size_t first = 0; first < replicas_.size(); first += width) {
    double slowest = 0;
    for (size_t replica = first; replica < std::min<size_t>(first + width, replicas_.size());
         ++replica)
      if (const auto& one = replicas_[replica]; one.count > 0)
        slowest = std::max(slowest, one.sum / static_cast<double>(one.count));
    if (slowest > 0) into.add(first, first_index_, slowest);
  }
}

} // namespace troupe
