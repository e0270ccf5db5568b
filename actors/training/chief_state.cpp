// SPDX-License-Identifier: Apache-2.0
// What the chief makes of what it knows: no message is sent here.
#include "actors/recording/seconds.hpp"
#include "actors/training/chief.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace troupe {

namespace {

using chief_phase = chief_state::phase;

// Deadlines may be as far away as time goes.
job_time after(job_time begin, job_time patience) {
  return patience > job_time::max() - begin ? job_time::max() : begin + patience;
}

// One replica that is left may give all that a step needs, or a step needs what there is.
bool needs_any_replica(const sync_options& sync) {
  auto may_repeat = traits_of(sync.policy).repeats && !sync.one_gradient_per_replica;
  return may_repeat || sync.dynamic.has_value();
}

} // namespace

bool may_lose_replicas(const sync_options& sync) {
  if (needs_any_replica(sync)) return sync.total_num_replicas > 1;
  return sync.total_num_replicas > sync.replicas_to_aggregate;
}

step_record chief_state::close_books(job_time now) {
  step_record record{.step = step + 1,
                     .began = step_began,
                     .ended = now,
                     .apply = now - ledger.last_arrival(),
                     .needed = needed,
                     .live = static_cast<uint32_t>(live.size()),
                     .updates = applied};
  ledger.close(record);
  if (!traits_of(config.sync.policy).cancels()) return record;
  auto lapsed = live;
  for (const auto& accepted : record.accepted)
    lapsed.erase(accepted.replica);
  for (const auto& [index, replica] : lapsed)
    record.cancelled.push_back({.replica = index, .local_step = step, .arrived = now});
  return record;
}

bool chief_state::enough_live() const {
  if (needs_any_replica(config.sync)) return !is_deserted();
  return left_count() >= config.sync.replicas_to_aggregate;
}

void chief_state::give_up(uint32_t replica) {
  expected -= static_cast<uint32_t>(awaited.erase(replica));
  given_up.insert(replica);
}

void chief_state::await_nobody() {
  while (!awaited.empty())
    give_up(awaited.begin()->first);
}

std::string chief_state::prospects() const {
  auto there = left_count() - awaited.size();
  auto of_all = fmt::format("{} of {} replicas", there, config.sync.total_num_replicas);
  if (awaited.empty()) return "the job goes on with " + of_all;
  auto patience = seconds(config.rejoin_patience);
  if (there >= needed)
    return fmt::format("the job goes on with {}, and awaits it for {:.1f} s", of_all, patience);
  return fmt::format("it is awaited for {:.1f} s, since step {} needs {} gradients and {} are left",
                     patience, step + 1, needed, of_all);
}

std::optional<uint32_t> chief_state::stranger_in(wire::TakenGradient::Reader report) const {
  for (auto arrivals : {report.getAccepted(), report.getStale()})
    for (auto arrival : arrivals)
      if (auto replica = arrival.getOrigin().getReplica();
          replica >= config.sync.total_num_replicas)
        return replica;
  return std::nullopt;
}

gradient_norms chief_state::all_norms() const {
  gradient_norms sum;
  for (const auto& [variable, of_variable] : norms) {
    sum.squared_mean += of_variable.squared_mean;
    sum.mean_squared += of_variable.mean_squared;
  }
  return sum;
}

uint32_t chief_state::choose_needed() const {
  auto usual = config.sync.replicas_to_aggregate;
  if (!choice) return usual;
  if (step == config.first_step || live.empty())
    return std::min(usual, static_cast<uint32_t>(std::max<size_t>(left_count(), 1)));
  std::vector<uint32_t> replicas;
  for (const auto& [index, replica] : live)
    replicas.push_back(index);
  return choice->choose(replicas, config.world->now());
}

std::vector<std::string> chief_state::not_applied() const {
  std::vector<std::string> names;
  for (const auto& name : config.variables)
    if (std::ranges::find(applied, name, &variable_update::variable) == applied.end())
      names.push_back(name);
  return names;
}

std::optional<error> chief_state::silent_owners(job_time now) const {
  if (taken_back && now_in == chief_phase::collecting
      && now - *stop_asked > config.stop_patience + config.deadline)
    return error{errc::deadline_exceeded,
                 fmt::format("step {} is to be taken back, but only {} of {} accumulators have "
                             "answered",
                             step + 1, *taken_back, config.accumulators.size())};
  if (now_in == chief_phase::applying && now - step_began > config.deadline)
    return error{errc::deadline_exceeded,
                 fmt::format("step {} is not over after {:.1f} s; not updated yet: {}", step + 1,
                             seconds(now - step_began), fmt::join(not_applied(), ", "))};
  return std::nullopt;
}

job_time chief_state::first_deadline(job_time now) const {
  auto first = job_time::max();
  auto keep = [&](job_time due) {
    if (due >= now) first = std::min(first, due);
  };
  if (now_in == chief_phase::collecting && !warned) keep(after(step_began, config.deadline / 6));
  if (now_in == chief_phase::collecting || now_in == chief_phase::applying)
    keep(after(step_began, config.deadline));
  if (now_in == chief_phase::saving) keep(after(phase_began, config.deadline));
  if (now_in == chief_phase::ending) keep(after(phase_began, config.leave_deadline));
  if (stop_asked) keep(after(*stop_asked, config.stop_patience));
  if (taken_back) keep(after(after(*stop_asked, config.stop_patience), config.deadline));
  for (const auto& [index, since] : awaited)
    keep(after(since, config.rejoin_patience));
  auto period = config.watch_period;
  return first > job_time::max() - period ? job_time::max() : (first / period + 1) * period;
}

job_time chief_state::look_after(job_time now) const {
  auto period = config.watch_period;
  auto next = (now / period + 1) * period;
  if (!config.world->computes_in_place() || suspects_stall) return next;
  auto quiet = (now - std::max(step_began, phase_began)) / period * period;
  return std::min(std::max(next, now / period * period + quiet), first_deadline(now));
}

bool chief_state::finds_stall(const std::set<uint32_t>& waiting) {
  auto waits = [&waiting](const auto& one) { return waiting.contains(one.first); };
  auto everybody_waits = expected == 0 && std::ranges::all_of(live, waits);
  return std::exchange(suspects_stall, everybody_waits) && everybody_waits;
}

std::vector<uint32_t>
chief_state::lost_parts(std::span<const accumulator_progress> progress) const {
  if (!traits_of(config.sync.policy).is_asynchronous() || report.lost.empty()) return {};
  std::vector<uint64_t> had;
  for (const auto& one : progress)
    had.push_back((one.step - std::min(one.step, step)) * needed + one.gradients);
  auto most = had.empty() ? 0 : std::ranges::max(had);
  if (has_lost_owners) most = std::max<uint64_t>(most, needed);
  if (most < needed) return {};
  std::vector<uint32_t> lacking;
  for (auto one : had)
    lacking.push_back(static_cast<uint32_t>(most - one));
  return lacking;
}

open_step chief_state::not_over() const {
  return {step + 1, static_cast<uint32_t>(live.size()), needed};
}

error chief_state::stall(uint32_t tokens) const {
  const auto* why = live.empty()  ? ""
                    : tokens == 0 ? ", all of them wait for a token, and no token is left"
                                  : ", and all of them have given the one that counts";
  return {errc::stalled,
          fmt::format("step {} cannot end: it needs {} gradients, {} of {} replicas are live{}",
                      step + 1, needed, live.size(), config.sync.total_num_replicas, why)};
}

std::string chief_state::missing(const std::set<uint32_t>& waiting) const {
  std::vector<std::string> names;
  for (const auto& [index, replica] : live)
    if (!waiting.contains(index)) names.push_back(fmt::format("replica {}", index));
  for (uint32_t index = 0;
       live.size() < config.sync.total_num_replicas && index < config.sync.total_num_replicas;
       ++index)
    if (!live.contains(index)) names.push_back(fmt::format("replica {} (not there)", index));
  return names.empty() ? "nobody" : fmt::format("{}", fmt::join(names, ", "));
}

} // namespace troupe
