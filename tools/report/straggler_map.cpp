// SPDX-License-Identifier: Apache-2.0
// Compares the gradients of a step with each other.
#include "tools/report/straggler_map.hpp"

#include "actors/recording/seconds.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace troupe {

namespace {

// A cancelled gradient has no computing time.
bool is_timed(const contribution& gradient) {
  return gradient.compute > job_time{0};
}

// The middle one of several times, or the mean of the two in the middle. Reorders them.
double median_of(std::vector<double>& times) {
  auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  if (times.size() % 2 != 0) return *middle;
  return (*std::max_element(times.begin(), middle) + *middle) / 2;
}

} // namespace

void straggler_map::expect(uint32_t count) {
  if (count > open_.size()) open_.resize(count);
}

void straggler_map::add(uint64_t index, const step_record& step) {
  if (index >= first_index_ + table_.columns().width()) {
    add_open_stretch(table_);
    closed_.resize(open_.size());
    for (size_t replica = 0; replica < open_.size(); ++replica)
      closed_[replica] += std::exchange(open_[replica], {});
    first_index_ = index;
  }
  const std::array parts{&step.accepted, &step.stale, &step.cancelled};
  times_.clear();
  for (const auto* part : parts)
    for (const auto& gradient : *part)
      if (is_timed(gradient)) times_.push_back(seconds(gradient.compute));
  if (times_.empty()) return;
  has_times_ = true;
  const auto median = median_of(times_);
  for (const auto* part : parts)
    for (const auto& gradient : *part) {
      if (!is_timed(gradient)) continue;
      if (gradient.replica >= open_.size()) open_.resize(gradient.replica + 1);
      open_[gradient.replica].add(seconds(gradient.compute) / median);
    }
}

folding_table straggler_map::table() const {
  auto result = table_;
  add_open_stretch(result);
  return result;
}

double straggler_map::mean_of(uint32_t replica) const {
  folding_table::cell all;
  for (const auto* part : {&closed_, &open_})
    if (replica < part->size()) all += (*part)[replica];
  return all.mean();
}

void straggler_map::add_open_stretch(folding_table& table) const {
  if (!has_times_) return;
  table.make_room(open_.size() - 1, first_index_);
  const auto width = table.rows().width();
  for (size_t first = 0; first < open_.size(); first += width) {
    const auto count = std::min<size_t>(width, open_.size() - first);
    double slowest = 0;
    for (const auto& replica : std::span{open_}.subspan(first, count))
      if (replica.count > 0) slowest = std::max(slowest, replica.mean());
    if (slowest > 0) table.add(first, first_index_, slowest);
  }
}

} // namespace troupe
