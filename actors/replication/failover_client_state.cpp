// SPDX-License-Identifier: Apache-2.0
// The failover client's decisions: no message is sent here.
#include "actors/replication/failover_client.hpp"
#include "messages/checks/limits.hpp"
#include "messages/replication_message.hpp"
#include "messages/training_message.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

uint64_t flight_list::add(flight request) {
  flights_.emplace(count_, std::move(request));
  return count_++;
}

flight* flight_list::find(uint64_t id, uint32_t attempt) {
  auto found = flights_.find(id);
  auto is_due = found != flights_.end() && found->second.attempts == attempt;
  return is_due ? &found->second : nullptr;
}

flight flight_list::take(uint64_t id) {
  auto taken = flights_.extract(id);
  TROUPE_ASSERT(!taken.empty(), id);
  return std::move(taken.mapped());
}

std::vector<uint64_t> flight_list::in_order() const {
  std::vector<uint64_t> ids;
  for (auto is_repetition : {true, false})
    for (const auto& [id, request] : flights_)
      if (request.is_repetition == is_repetition) ids.push_back(id);
  return ids;
}

bool flight_list::would_overtake(uint64_t id) const {
  auto place_of = [](const auto& item) {
    return std::pair{!item.second.is_repetition, item.first};
  };
  auto found = flights_.find(id);
  return found->second.keeps_order && std::ranges::any_of(flights_, [&](const auto& other) {
           return other.second.keeps_order && place_of(other) < place_of(*found);
         });
}

bool flight_list::any_failed() const {
  return std::ranges::any_of(flights_,
                             [](const auto& item) { return item.second.failed.has_value(); });
}

bool flight_list::any_waits() const {
  auto is_early = [](const auto& item) { return item.second.is_early; };
  return any_failed() || std::ranges::any_of(flights_, is_early);
}

void change_numbers::ask_later_ones(bool is_lost) {
  auto may_ask = [&] { return client > 0 && has_room(); };
  while (!later.empty() && (is_lost || may_ask())) {
    auto ask = std::move(later.front());
    later.pop_front();
    ask();
  }
}

msg<wire::TakenGradient> step_reports::add(const msg<wire::TakenGradient>& taken) {
  if (are_certain_ || taken.reader().getStep() < next_) return news(taken);
  uncertain_ = taken;
  return {};
}

msg<wire::TakenGradient> step_reports::add_closed(const closed_step& closed) {
  if (!reported_.is_empty() && reported_.reader().getStep() > closed.step) return {};
  return news(make_taken_gradient(closed.step, closed.accepted, closed.stale));
}

msg<wire::TakenGradient> step_reports::release() {
  auto certain = std::exchange(uncertain_, {});
  return certain.is_empty() ? certain : news(certain);
}

msg<wire::TakenGradient> step_reports::news(const msg<wire::TakenGradient>& taken) {
  auto is_new = reported_.is_empty() || reported_.reader().getStep() < taken.reader().getStep();
  auto report = is_new ? taken : amendment(taken, reported_);
  if (!report.is_empty()) reported_ = is_new ? taken : amended(reported_, report);
  return report;
}

void failover_client_state::find(const holder_found& found) {
  if (found.owner) holder.owner = found.owner;
  if (found.accumulator) holder.accumulator = found.accumulator;
  if (!found.owner && !found.accumulator) holder.is_sought = false; // of a former life only
  auto is_found = holder.owner && (holder.accumulator || !config.accumulators[place()]);
  if (is_found && now_in == phase::seeking) now_in.enter(phase::following);
}

void failover_client_state::move(uint64_t term) {
  TROUPE_ASSERT(term > holder.term, term, holder.term);
  now_in.enter(phase::seeking);
  holder = {.term = term, .is_looking = holder.is_looking};
  reports.forget_uncertain();
}

void failover_client_state::keep_limit(const msg<wire::CancelTakes>& other) {
  if (limit.is_empty() || other.reader().getAtMost() <= limit.reader().getAtMost()) limit = other;
}

void failover_client_state::forget_counted(const std::optional<closed_step>& closed) {
  if (!config.asynchronous)
    kept.forget_before(collected(closed));
  else if (closed)
    kept.forget_through(closed->latest);
}

std::optional<error> failover_client_state::behind(const std::optional<closed_step>& closed) const {
  if (!config.closes_steps || collected(closed) >= reports.next()) return std::nullopt;
  return error{errc::unavailable,
               fmt::format("the owner of '{}' is gone, and its mirror has come to step {} only, "
                           "the job to step {}",
                           config.name, collected(closed), reports.next())};
}

} // namespace troupe
