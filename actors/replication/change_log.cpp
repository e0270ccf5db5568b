// SPDX-License-Identifier: Apache-2.0
// Logging changed rows, as long as they are fewer than half of the variable's rows.
#include "actors/replication/change_log.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

void sort_distinct(std::vector<int64_t>& rows) {
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
}

} // namespace

void change_log::add_all() {
  ++revision_;
  changes_.clear();
  logged_ = 0;
}

void change_log::add_rows(std::span<const gradient> gradients) {
  std::vector<int64_t> rows;
  for (const auto& sparse : gradients) {
    auto indices = std::get<indexed_slices>(sparse).indices.values<int64_t>();
    rows.insert(rows.end(), indices.begin(), indices.end());
  }
  sort_distinct(rows);
  ++revision_;
  logged_ += rows.size();
  changes_.push_back(std::move(rows));
  for (; 2 * logged_ > static_cast<size_t>(rows_) && !changes_.empty(); changes_.pop_front())
    logged_ -= changes_.front().size();
}

std::optional<std::vector<int64_t>> change_log::rows_since(uint64_t revision) const {
  if (revision > revision_ || revision_ - revision > changes_.size()) return std::nullopt;
  std::vector<int64_t> rows;
  for (auto change = changes_.end() - static_cast<ptrdiff_t>(revision_ - revision);
       change != changes_.end(); ++change)
    rows.insert(rows.end(), change->begin(), change->end());
  sort_distinct(rows);
  return rows;
}

} // namespace troupe
