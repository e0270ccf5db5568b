// SPDX-License-Identifier: Apache-2.0
// The decisions of a failover client: no message is sent here.
#include "actors/replication/failover_client.hpp"
#include "messages/limits.hpp"
#include "messages/replication_message.hpp"
#include "messages/training_message.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

uint64_t flight_list::add(flight one) {
  flights_.emplace(count_, std::move(one));
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
    for (const auto& [id, one] : flights_)
      if (one.is_repetition == is_repetition) ids.push_back(id);
  return ids;
}

bool flight_list::would_overtake(uint64_t id) const {
  auto place_of = [](const auto& item) {
    return std::pair{!item.second.is_repetition, item.first};
  };
  auto one = flights_.find(id);
  return one->second.keeps_order && std::ranges::any_of(flights_, [&](const auto& other) {
           return other.second.keeps_order && place_of(other) < place_of(*one);
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
  if (!told_.is_empty() && told_.reader().getStep() > closed.step) return {};
  return news(make_taken_gradient(closed.step, closed.accepted, closed.stale));
}

msg<wire::TakenGradient> step_reports::release() {
  auto told = std::exchange(uncertain_, {});
  return told.is_empty() ? told : news(told);
}

msg<wire::TakenGradient> step_reports::news(const msg<wire::TakenGradient>& taken) {
  auto is_new = told_.is_empty() || told_.reader().getStep() < taken.reader().getStep();
  auto told = is_new ? taken : amendment(taken, told_);
  if (!told.is_empty()) told_ = is_new ? taken : amended(told_, told);
  return told;
}

void failover_client_state::find(const holder_found& news) {
  if (news.owner) holder.owner = news.owner;
  if (news.accumulator) holder.accumulator = news.accumulator;
  if (!news.owner && !news.accumulator) holder.is_sought = false; // it was there in a former life
  auto is_found = holder.owner && (holder.accumulator || !config.accumulators[place()]);
  if (is_found && now_in == phase::seeking) now_in.enter(phase::following);
}

void failover_client_state::move(uint64_t term) {
  TROUPE_ASSERT(term > holder.term, term, holder.term);
  now_in.enter(phase::seeking);
  holder = {.term = term, .is_looking = holder.is_looking};
  reports.forget_uncertain();
}

void failover_client_state::keep_limit(const msg<wire::CancelTakes>& said) {
  if (limit.is_empty() || said.reader().getAtMost() <= limit.reader().getAtMost()) limit = said;
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
