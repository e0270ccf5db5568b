// SPDX-License-Identifier: Apache-2.0
// Transfers whose speeds change whenever another one begins or ends.
#include "simulation/network/fair_share.hpp"

#include "actors/recording/seconds.hpp"
#include "simulation/network/end_of_time.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

constexpr double nanoseconds_max = 1e18; // as long as a draw may be

job_time duration_of(double bytes, double speed) {
  auto nanoseconds = std::ceil(bytes / speed * 1e9);
  return job_time{static_cast<int64_t>(std::min(nanoseconds, nanoseconds_max))};
}

} // namespace

uint64_t fair_share::begin(uint32_t from, uint32_t to, double bytes, double factor, job_time now) {
  auto number = begun_++;
  transfers_[number] = {from, to, bytes, 0, factor, now, 0};
  sending_[from].insert(number);
  receiving_[to].insert(number);
  unsettled_.insert(sending_[from].begin(), sending_[from].end());
  unsettled_.insert(receiving_[to].begin(), receiving_[to].end());
  return number;
}

std::vector<uint64_t> fair_share::give_up(uint32_t card, job_time now) {
  settle(now);
  auto given_up = sending_[card];
  given_up.insert(receiving_[card].begin(), receiving_[card].end());
  for (auto number : given_up)
    end(number);
  return {given_up.begin(), given_up.end()};
}

std::vector<uint64_t> fair_share::sent_by(uint32_t card) const {
  auto found = sending_.find(card);
  if (found == sending_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

void fair_share::give_up_one(uint64_t number, job_time now) {
  settle(now);
  end(number);
}

std::vector<uint64_t> fair_share::finish(job_time now) {
  settle(now);
  std::vector<uint64_t> over;
  while (!ends_.empty() && (is_void(ends_.top()) || ends_.top().time <= now)) {
    if (!is_void(ends_.top())) {
      over.push_back(ends_.top().transfer);
      ++transfers_[over.back()].turn;
    }
    ends_.pop();
  }
  std::ranges::sort(over);
  for (auto number : over)
    end(number);
  return over;
}

std::optional<job_time> fair_share::next_end(job_time now) {
  settle(now);
  while (!ends_.empty() && is_void(ends_.top()))
    ends_.pop();
  return ends_.empty() ? std::nullopt : std::optional{ends_.top().time};
}

// The transfers that shared a card with this one have more of it now.
void fair_share::end(uint64_t number) {
  auto found = transfers_.find(number);
  auto& sending = sending_[found->second.from];
  auto& receiving = receiving_[found->second.to];
  sending.erase(number);
  receiving.erase(number);
  unsettled_.insert(sending.begin(), sending.end());
  unsettled_.insert(receiving.begin(), receiving.end());
  unsettled_.erase(number);
  transfers_.erase(found);
}

void fair_share::settle(job_time now) {
  for (auto number : unsettled_) {
    auto& [from, to, bytes, speed, factor, seen, turn] = transfers_[number];
    bytes = std::max(0.0, bytes - speed * seconds(now - seen));
    auto sharers = std::max(sending_[from].size(), receiving_[to].size());
    speed = bytes_per_second_ * factor / static_cast<double>(sharers);
    seen = now;
    ends_.push({later(now, duration_of(bytes, speed)), number, ++turn});
  }
  unsettled_.clear();
}

bool fair_share::is_void(const planned_end& end) const {
  auto found = transfers_.find(end.transfer);
  return found == transfers_.end() || found->second.turn != end.turn;
}

} // namespace troupe
