// SPDX-License-Identifier: Apache-2.0
// Gathering the replicas of a run, waking them, and ending a run before its time.
#include "actors/training/rendezvous.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/errors/failure.hpp"
#include "messages/mapped.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace troupe {

namespace {

using rendezvous_pointer = observed_pointer<rendezvous_actor, rendezvous_state>;
using whereabouts = rendezvous_state::whereabouts;

std::exception_ptr thrown(const error& reason) {
  return std::make_exception_ptr(failure{reason});
}

void wake_member(rendezvous_pointer self, rendezvous_state::member& member, wake content) {
  member.where = whereabouts::computing;
  --self->state.waiting;
  self->send(std::exchange(member.arrival, {}).handle, std::move(content));
}

// Ends the wait of all replicas, and of those that arrive later, with a reason.
void end_run(rendezvous_pointer self, error reason) {
  auto& state = self->state;
  if (state.why_it_ended) return;
  state.why_it_ended = std::move(reason);
  for (auto& member : state.members)
    if (member.where == whereabouts::waiting) {
      member.told_to_stop = true;
      wake_member(self, member, {nullptr, thrown(*state.why_it_ended)});
    }
}

// A replica that was told to stop failed for that: it is the culprit only if no other failed.
run_outcome outcome_of(const rendezvous_state& state) {
  run_outcome outcome;
  for (auto is_secondary : {false, true})
    for (uint32_t i = 0; i < state.members.size() && !outcome.thrown; ++i)
      if (state.members[i].told_to_stop == is_secondary && state.members[i].thrown)
        outcome = {.thrown = state.members[i].thrown, .culprit = i};
  if (!outcome.thrown) outcome.results = mapped(state.members, &rendezvous_state::member::result);
  return outcome;
}

error mismatch(const rendezvous_state& state) {
  const auto& first = state.members.front().arrival;
  auto base = state.config.first_replica;
  for (uint32_t i = 1; i < state.members.size(); ++i) {
    const auto& other = state.members[i].arrival.site;
    auto number = state.members[i].calls;
    if (other.function != first.site.function || other.address != first.site.address)
      return {errc::failed_precondition,
              fmt::format("replica {} is in another merge_call than replica {}: its call number {} "
                          "is with another function; all replicas have to make the same calls in "
                          "the same order",
                          base + i, base, number)};
    if (other.structure != first.site.structure)
      return {errc::failed_precondition,
              fmt::format("replica {} brings {} to merge_call number {}, replica {} brings {}; the "
                          "arguments of all replicas must have one structure",
                          base + i, other.structure, number, base, first.site.structure)};
  }
  return {};
}

void gather(rendezvous_pointer self) {
  auto& state = self->state;
  if (auto wrong = mismatch(state); wrong.code != errc::none)
    return end_run(self, std::move(wrong));
  state.merging = true;
  auto arguments = std::make_shared<gathered_arguments>();
  arguments->reserve(state.members.size());
  for (auto& member : state.members)
    arguments->push_back(std::move(member.arrival.arguments));
  wake_member(self, state.members.front(), {std::move(arguments), nullptr});
}

void settle(rendezvous_pointer self) {
  auto& state = self->state;
  auto count = state.members.size();
  if (state.gone == count) {
    state.config.on_over(outcome_of(state));
    return self->quit();
  }
  if (state.merging || state.waiting == 0 || state.waiting + state.gone < count) return;
  if (state.gone == 0) return gather(self);
  end_run(self,
          {errc::failed_precondition,
           fmt::format("Some replicas made a different number of merge_call() calls: {} "
                       "returned, while {} {} in a merge_call",
                       state.names_of(whereabouts::gone), state.names_of(whereabouts::waiting),
                       state.waiting == 1 ? "waits" : "wait")});
}

void on_arrival(rendezvous_pointer self, merge_arrival arrival) {
  auto& state = self->state;
  auto& member = state.members[arrival.replica];
  member.where = whereabouts::waiting;
  ++member.calls;
  member.arrival = std::move(arrival);
  ++state.waiting;
  if (state.why_it_ended) {
    member.told_to_stop = true;
    return wake_member(self, member, {nullptr, thrown(*state.why_it_ended)});
  }
  settle(self);
}

// Replica 0 has the result already. A replica that does not wait was told that the run is over.
void on_merged(rendezvous_pointer self, const merge_result& merged) {
  auto& state = self->state;
  state.merging = false;
  for (auto& member : state.members)
    if (member.where == whereabouts::waiting)
      wake_member(self, member, {merged.value, merged.thrown});
}

void on_departure(rendezvous_pointer self, const departure& leaving) {
  auto& state = self->state;
  auto& member = state.members[leaving.replica];
  member.where = whereabouts::gone;
  member.result = leaving.result;
  member.thrown = leaving.thrown;
  ++state.gone;
  if (leaving.thrown)
    end_run(self, {errc::cancelled, fmt::format("replica {} failed: {}",
                                                state.config.first_replica + leaving.replica,
                                                reason_of(leaving.thrown).message)});
  settle(self);
}

void on_give_up(rendezvous_pointer self) {
  auto& state = self->state;
  if (state.gave_up) {
    auto outcome = outcome_of(state);
    auto is_secondary = !outcome.thrown || state.members[outcome.culprit].told_to_stop;
    state.config.on_over({.thrown = is_secondary ? thrown(*state.why_it_ended) : outcome.thrown,
                          .culprit = outcome.culprit});
    return self->quit();
  }
  state.gave_up = true;
  auto in_call = state.waiting == 0
                   ? std::string{}
                   : fmt::format("; in a merge_call: {}", state.names_of(whereabouts::waiting));
  auto missing
    = state.merging
        ? fmt::format("the merge function of replica {} is not over", state.config.first_replica)
        : fmt::format("still computing: {}{}", state.names_of(whereabouts::computing), in_call);
  end_run(self, {errc::deadline_exceeded,
                 fmt::format("a run on {} replicas is not over after {:.1f} s: {}",
                             state.members.size(), seconds(state.config.timeout), missing)});
}

} // namespace

std::string rendezvous_state::names_of(whereabouts where) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < members.size(); ++i)
    if (members[i].where == where)
      names.push_back(fmt::format("replica {}", config.first_replica + i));
  constexpr size_t shown = 8;
  auto more = names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "";
  names.resize(std::min(names.size(), shown));
  return names.empty() ? "none" : fmt::format("{}{}", fmt::join(names, ", "), more);
}

rendezvous_actor::behavior_type rendezvous(rendezvous_pointer self, rendezvous_config config) {
  self->state.members.resize(config.replicas);
  self->state.config = std::move(config);
  return {
    [self](merge_arrival& arrival) { on_arrival(self, std::move(arrival)); },
    [self](const merge_result& merged) { on_merged(self, merged); },
    [self](const departure& leaving) { on_departure(self, leaving); },
    [self](give_up) { on_give_up(self); },
  };
}

} // namespace troupe
