// SPDX-License-Identifier: Apache-2.0
// What is kept, and for how long.
#include "actors/kept_gradients.hpp"

#include "messages/replication_message.hpp"
#include "messages/training_message.hpp"

#include <algorithm>

namespace troupe {

namespace {

bool is_same(const origin& one, const origin& other) {
  return one.replica == other.replica && one.iteration == other.iteration;
}

bool has(const std::vector<arrival>& arrivals, const origin& from) {
  return std::ranges::any_of(arrivals, [&](const auto& one) { return is_same(one.from, from); });
}

std::vector<arrival> without(std::vector<arrival> arrivals, const std::vector<arrival>& known) {
  std::erase_if(arrivals, [&](const auto& one) { return has(known, one.from); });
  return arrivals;
}

} // namespace

void kept_gradients::add(const msg<wire::PushGradient>& accepted, uint64_t step) {
  auto from = read_origin(accepted.reader().getOrigin());
  auto is_known = [&](const entry& one) {
    return is_same(read_origin(one.gradient.reader().getOrigin()), from);
  };
  if (std::ranges::none_of(entries_, is_known)) entries_.push_back({accepted, step});
}

void kept_gradients::forget_before(uint64_t step) {
  std::erase_if(entries_, [step](const entry& one) { return one.step < step; });
}

std::vector<msg<wire::PushGradient>> kept_gradients::all() const {
  std::vector<msg<wire::PushGradient>> gradients;
  for (const auto& one : entries_)
    gradients.push_back(one.gradient);
  return gradients;
}

std::optional<verdict> verdict_of(const closed_step& closed, const origin& from) {
  if (has(closed.accepted, from)) return verdict::accepted;
  if (has(closed.stale, from)) return verdict::stale;
  return std::nullopt;
}

msg<wire::TakenGradient> amendment(const msg<wire::TakenGradient>& report,
                                   const msg<wire::TakenGradient>& former) {
  auto now = report.reader();
  auto before = former.reader();
  auto accepted = without(read_arrivals(now.getAccepted()), read_arrivals(before.getAccepted()));
  auto stale = without(read_arrivals(now.getStale()), read_arrivals(before.getStale()));
  if (accepted.empty() && stale.empty()) return {};
  return make_taken_gradient(now.getStep(), accepted, stale, true);
}

} // namespace troupe
