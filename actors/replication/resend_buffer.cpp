// SPDX-License-Identifier: Apache-2.0
// Keeping and forgetting gradients, and amending reports of steps.
#include "actors/replication/resend_buffer.hpp"

#include "messages/mapped.hpp"
#include "messages/replication_message.hpp"
#include "messages/training_message.hpp"

#include <algorithm>

namespace troupe {

namespace {

origin origin_of(const msg<wire::PushGradient>& gradient) {
  return read_origin(gradient.reader().getOrigin());
}

bool is_same(const origin& left, const origin& right) {
  return left.replica == right.replica && left.iteration == right.iteration;
}

bool has(const std::vector<arrival>& arrivals, const origin& from) {
  return std::ranges::any_of(arrivals, [&](const auto& each) { return is_same(each.from, from); });
}

bool has(std::span<const gradient_id> latest, const origin& from) {
  return std::ranges::any_of(latest, [&](const gradient_id& each) {
    return each.replica == from.replica && each.iteration >= from.iteration;
  });
}

std::vector<arrival> joined(std::vector<arrival> arrivals, const std::vector<arrival>& more) {
  arrivals.insert(arrivals.end(), more.begin(), more.end());
  return arrivals;
}

std::vector<arrival> without(std::vector<arrival> arrivals, const std::vector<arrival>& known) {
  std::erase_if(arrivals, [&](const auto& one) { return has(known, one.from); });
  return arrivals;
}

} // namespace

void resend_buffer::add(const msg<wire::PushGradient>& accepted, uint64_t step) {
  auto from = origin_of(accepted);
  auto known = std::ranges::find_if(
    entries_, [&](const entry& one) { return is_same(origin_of(one.gradient), from); });
  if (known == entries_.end())
    entries_.push_back({accepted, step});
  else
    known->step = step;
}

void resend_buffer::forget(const origin& from) {
  std::erase_if(entries_, [&](const entry& one) { return is_same(origin_of(one.gradient), from); });
}

void resend_buffer::forget_before(uint64_t step) {
  std::erase_if(entries_, [step](const entry& one) { return one.step < step; });
}

void resend_buffer::forget_through(std::span<const gradient_id> latest) {
  std::erase_if(entries_, [&](const entry& one) { return has(latest, origin_of(one.gradient)); });
}

std::vector<msg<wire::PushGradient>> resend_buffer::give_again() {
  for (auto& one : entries_)
    one.step = unknown;
  return all();
}

std::vector<msg<wire::PushGradient>> resend_buffer::all() const {
  return mapped(entries_, &entry::gradient);
}

std::optional<verdict> verdict_of(const closed_step& closed, const origin& from) {
  if (has(closed.accepted, from)) return verdict::accepted;
  if (has(closed.stale, from)) return verdict::stale;
  if (has(closed.latest, from)) return verdict::accepted; // of an earlier step
  return std::nullopt;
}

std::optional<uint64_t> step_with(const closed_step& closed, const origin& from) {
  if (!has(closed.latest, from)) return std::nullopt;
  return has(closed.accepted, from) ? closed.step + 1 : closed.step;
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

msg<wire::TakenGradient> amended(const msg<wire::TakenGradient>& report,
                                 const msg<wire::TakenGradient>& amendment) {
  auto before = report.reader();
  auto more = amendment.reader();
  auto accepted = joined(read_arrivals(before.getAccepted()), read_arrivals(more.getAccepted()));
  auto stale = joined(read_arrivals(before.getStale()), read_arrivals(more.getStale()));
  return make_taken_gradient(before.getStep(), accepted, stale);
}

} // namespace troupe
