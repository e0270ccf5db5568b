// SPDX-License-Identifier: Apache-2.0
// The rendezvous: which replicas wait for others, and what ends a run before its time.
#include "actors/training/rendezvous.hpp"

#include "messages/failure.hpp"

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

std::string describe(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& failed) {
    return failed.what();
  } catch (...) {
    return "threw something that is no std::exception";
  }
}

void wake_one(rendezvous_pointer self, rendezvous_state::member& member, wake content) {
  member.is = whereabouts::computing;
  --self->state.waiting;
  self->send(std::exchange(member.arrival, {}).who, std::move(content));
}

// No replica waits from now on; one that comes later is told the same.
void end_run(rendezvous_pointer self, error reason) {
  auto& state = self->state;
  if (state.why_it_ended) return;
  state.why_it_ended = std::move(reason);
  for (auto& member : state.members)
    if (member.is == whereabouts::waiting) {
      member.told_to_stop = true;
      wake_one(self, member, {nullptr, thrown(*state.why_it_ended)});
    }
}

// A replica that failed because the run was over already is no culprit, unless no other is.
run_outcome outcome_of(const rendezvous_state& state) {
  run_outcome outcome;
  for (auto is_secondary : {false, true})
    for (uint32_t i = 0; i < state.members.size() && !outcome.thrown; ++i)
      if (state.members[i].told_to_stop == is_secondary && state.members[i].thrown)
        outcome = {.thrown = state.members[i].thrown, .culprit = i};
  if (!outcome.thrown)
    for (const auto& member : state.members)
      outcome.results.push_back(member.result);
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
  auto brought = std::make_shared<gathered_arguments>();
  brought->reserve(state.members.size());
  for (auto& member : state.members)
    brought->push_back(std::move(member.arrival.arguments));
  wake_one(self, state.members.front(), {std::move(brought), nullptr});
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
  end_run(self, {errc::failed_precondition,
                 fmt::format("Some replicas made a different number of merge_call() calls: {} "
                             "returned, while {} {} in a merge_call",
                             state.who(whereabouts::gone), state.who(whereabouts::waiting),
                             state.waiting == 1 ? "waits" : "wait")});
}

void on_arrival(rendezvous_pointer self, merge_arrival arrival) {
  auto& state = self->state;
  auto& member = state.members[arrival.replica];
  member.is = whereabouts::waiting;
  ++member.calls;
  member.arrival = std::move(arrival);
  ++state.waiting;
  if (state.why_it_ended) {
    member.told_to_stop = true;
    return wake_one(self, member, {nullptr, thrown(*state.why_it_ended)});
  }
  settle(self);
}

// Replica 0 has the result already. One that does not wait any more was told that the run is over.
void on_merged(rendezvous_pointer self, const merge_result& merged) {
  auto& state = self->state;
  state.merging = false;
  for (auto& member : state.members)
    if (member.is == whereabouts::waiting) wake_one(self, member, {merged.value, merged.thrown});
}

void on_departure(rendezvous_pointer self, const departure& leaving) {
  auto& state = self->state;
  auto& member = state.members[leaving.replica];
  member.is = whereabouts::gone;
  member.result = leaving.result;
  member.thrown = leaving.thrown;
  ++state.gone;
  if (leaving.thrown)
    end_run(self, {errc::cancelled, fmt::format("replica {} failed: {}",
                                                state.config.first_replica + leaving.replica,
                                                describe(leaving.thrown))});
  settle(self);
}

void on_give_up(rendezvous_pointer self) {
  auto& state = self->state;
  if (state.gave_up) {
    auto outcome = outcome_of(state);
    auto is_told = !outcome.thrown || state.members[outcome.culprit].told_to_stop;
    state.config.on_over({.thrown = is_told ? thrown(*state.why_it_ended) : outcome.thrown,
                          .culprit = outcome.culprit});
    return self->quit();
  }
  state.gave_up = true;
  auto others = state.waiting == 0
                  ? std::string{}
                  : fmt::format("; in a merge_call: {}", state.who(whereabouts::waiting));
  auto missing
    = state.merging
        ? fmt::format("the merge function of replica {} is not over", state.config.first_replica)
        : fmt::format("still computing: {}{}", state.who(whereabouts::computing), others);
  auto seconds = std::chrono::duration<double>(state.config.timeout).count();
  end_run(self, {errc::deadline_exceeded,
                 fmt::format("a run on {} replicas is not over after {:.1f} s: {}",
                             state.members.size(), seconds, missing)});
}

} // namespace

std::string rendezvous_state::who(whereabouts is) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < members.size(); ++i)
    if (members[i].is == is) names.push_back(fmt::format("replica {}", config.first_replica + i));
  constexpr size_t shown = 8;
  auto more = names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "";
  names.resize(std::min(names.size(), shown));
  return names.empty() ? "nobody" : fmt::format("{}{}", fmt::join(names, ", "), more);
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
