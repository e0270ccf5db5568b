// SPDX-License-Identifier: Apache-2.0
// The chief's decisions: no message is sent here.
#include "actors/policies/asynchronous_rule.hpp"
#include "actors/policies/backup_arrays.hpp"
#include "actors/policies/step_rules.hpp"
#include "actors/recording/seconds.hpp"
#include "actors/training/chief.hpp"
#include "messages/mapped.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace troupe {

namespace {

// The sum of two times, but no more than the greatest: a timeout may be without end.
job_time after(job_time begin, job_time timeout) {
  return timeout > job_time::max() - begin ? job_time::max() : begin + timeout;
}

// Cuts times of arrival to `now`: the chief has heard of these gradients, but the clock of another
// process may be ahead.
void let_arrive_by(job_time now, std::vector<contribution>& gradients) {
  for (auto& gradient : gradients)
    gradient.arrived = std::min(gradient.arrived, now);
}

std::string describe(const lost_replica& lost) {
  return fmt::format("replica {}: {}", lost.replica, lost.reason.message);
}

// The end of a job that cannot go on after a loss.
error end_for(const lost_replica& lost, const std::string& line) {
  return {lost.reason.code, fmt::format("{}; lost {}", line, describe(lost))};
}

} // namespace

bool may_lose_replicas(const sync_options& sync, uint32_t min_replicas) {
  return sync.total_num_replicas > std::max(fewest_replicas(sync), min_replicas);
}

gradient_norms step_progress::all_norms() const {
  gradient_norms sum;
  for (const auto& [position, norm] : norms) {
    sum.squared_mean += norm.squared_mean;
    sum.mean_squared += norm.mean_squared;
  }
  return sum;
}

std::vector<std::string>
step_progress::not_applied(std::span<const collected_variables> collected) const {
  std::vector<std::string> names;
  for (const auto& each : collected)
    if (std::ranges::find(applied, each.name, &variable_update::variable) == applied.end())
      names.push_back(each.name);
  return names;
}

chief_state::chief_state(chief_config from)
  : config(std::move(from)), step(config.first_step),
    ledger(config.collected.size(), asynchronous_rule::updates_awaited(config.sync)),
    roster(config.sync.total_num_replicas, config.absent), handles(config.sync.total_num_replicas) {
  TROUPE_ASSERT(config.owners.size() == config.variables.size(), config.variables.size());
  for (auto* callback : {&config.on_warning, &config.on_trouble})
    if (!*callback) *callback = [](const std::string&) {};
  if (!config.on_open_step) config.on_open_step = [](const open_step&) {};
  if (!config.sync.dynamic) return;
  choice.emplace(*config.sync.dynamic, config.learning_rate);
  choice->restore(std::exchange(config.backups, {}));
}

void chief_state::enter(phase next) {
  now_in.enter(next);
  phase_began = config.world->now();
}

void chief_state::begin_step() {
  TROUPE_ASSERT(!is_last() || now_in == phase::starting, step);
  now_in.enter(phase::collecting);
  open = {.needed = choose_needed(), .began = config.world->now()};
  config.on_open_step(not_over());
}

void chief_state::open_snapshot() {
  saving = {.is_taken_back = now_in == phase::taking_back};
  enter(phase::saving);
  saving.taken = {.step = step, .time = phase_began, .seed = config.world->seed()};
  for (const auto& name : config.variables)
    saving.taken.variables.push_back({name, {}});
  if (choice) saving.taken.backups = to_arrays(choice->estimates());
}

step_record chief_state::close_books() {
  TROUPE_ASSERT(now_in == phase::applying);
  auto now = config.world->now();
  step_record record{.step = step + 1,
                     .began = open.began,
                     .ended = now,
                     .apply = std::max(now - ledger.last_arrival(), job_time{0}),
                     .needed = open.needed,
                     .live = live_count(),
                     .updates = open.applied};
  ledger.close(record);
  let_arrive_by(now, record.accepted);
  let_arrive_by(now, record.stale);
  if (traits_of(config.sync.policy).cancels())
    record.cancelled = cancelled_by(record, roster.live());
  if (choice) choice->add(record, open.all_norms());
  ++step;
  return record;
}

job_snapshot chief_state::close_snapshot() {
  TROUPE_ASSERT(now_in == phase::saving);
  TROUPE_ASSERT(saving.missing == 0, saving.missing);
  auto done = std::exchange(saving, {});
  std::ranges::sort(done.taken.replicas, {}, &replica_progress::replica);
  // All tokens of a step that is taken back are put again when the job goes on. A replica that has
  // just come back may have seen the new variables already, without a token of the step. Its step
  // is then their count of updates, which may be more than the job has made.
  auto waits_for_token = done.is_taken_back || traits_of(config.sync.policy).is_synchronous();
  auto newest = waits_for_token && step > 0 ? step - 1 : step;
  for (auto& replica : done.taken.replicas)
    replica.local_step = std::min(replica.local_step, newest);
  return std::move(done.taken);
}

bool chief_state::enough_live() const {
  return roster.left() >= std::max(fewest_replicas(config.sync), config.min_replicas);
}

void chief_state::note_join(uint32_t replica, replica_actor handle) {
  auto is_expected = roster.expects(replica);
  roster.join(replica);
  handles[replica] = std::move(handle);
  config.on_open_step(not_over());
  if (is_expected || !is_training()) return;
  config.on_warning(fmt::format("replica {} joins after step {}; the job goes on with {} of {} "
                                "replicas",
                                replica, step, live_count(), roster.size()));
}

void chief_state::note_departure(uint32_t replica) const {
  config.on_open_step(not_over());
  config.on_warning(fmt::format("replica {} leaves after step {}, as its process is asked to; {}",
                                replica, step, prospects()));
}

const lost_replica& chief_state::note_loss(uint32_t replica, error reason) {
  auto is_asked = reason.code == errc::cancelled;
  if (is_asked) reason = {errc::unavailable, "its process was asked to stop"};
  if (reason.code == errc::none)
    reason = {errc::user_code, "its function returned before the job was over"};
  if (reason.code == errc::unavailable && config.rejoin_timeout > job_time{0})
    roster.await(replica, config.world->now(), is_asked);
  config.on_open_step(not_over());
  const auto& lost = end.report.lost.emplace_back(lost_replica{replica, std::move(reason)});
  config.on_trouble("lost " + describe(lost));
  auto is_short = is_asked && !enough_live();
  if (!end.reason && (config.stops_on_loss || is_short)) {
    end.reason = is_short ? want_of_replicas(lost)
                          : error{lost.reason.code,
                                  fmt::format("lost {}; the job stops for that", describe(lost))};
    end.ask(config.world->now());
  }
  return lost;
}

std::optional<error> chief_state::give_up(uint32_t replica) {
  roster.give_up(replica);
  if (end.reason || enough_live()) return std::nullopt;
  auto is_asked = roster.left_as_asked(replica);
  auto why = fmt::format("was awaited for {:.1f} s after its {}", seconds(config.rejoin_timeout),
                         is_asked ? "process was asked to stop" : "node was gone");
  auto reason = want_of_replicas({replica, {errc::unavailable, std::move(why)}});
  if (!is_asked) return reason;
  if (!end.asked) end.reason = std::move(reason);
  end.ask(config.world->now());
  return std::nullopt;
}

void chief_state::note_late_failure(uint32_t replica, error reason) {
  constexpr errc codes_of_end[] = {errc::none,    errc::failed_precondition, errc::cancelled,
                                   errc::stalled, errc::deadline_exceeded,   errc::unavailable};
  if (std::ranges::find(codes_of_end, reason.code) != std::end(codes_of_end)) return;
  const auto& lost = end.report.lost.emplace_back(lost_replica{replica, std::move(reason)});
  config.on_warning(fmt::format("lost {}; the job ends without it", describe(lost)));
}

void chief_state::warn_of(const lost_replica& lost) const {
  config.on_warning(fmt::format("lost {}; {}", describe(lost), prospects()));
}

std::string chief_state::prospects() const {
  auto awaited = roster.count(replica_roster::presence::awaited);
  auto present = roster.left() - awaited;
  auto replicas = fmt::format("{} of {} replicas", present, roster.size());
  if (awaited == 0) return "the job goes on with " + replicas;
  auto timeout = seconds(config.rejoin_timeout);
  if (present >= open.needed)
    return fmt::format("the job goes on with {}, and awaits it for {:.1f} s", replicas, timeout);
  return fmt::format("it is awaited for {:.1f} s, since step {} needs {} gradients and {} are left",
                     timeout, step + 1, open.needed, replicas);
}

error chief_state::want_of_replicas(const lost_replica& lost) const {
  if (roster.left() >= fewest_replicas(config.sync))
    return end_for(lost,
                   fmt::format("the job needs {} replicas (min_replicas), but {} of {} are left",
                               config.min_replicas, roster.left(), roster.size()));
  return end_for(lost, fmt::format("step {} needs {} gradients, but {} of {} replicas are left",
                                   step + 1, open.needed, roster.left(), roster.size()));
}

std::optional<error> chief_state::stranger_in(wire::TakenGradient::Reader report) const {
  for (auto arrivals : {report.getAccepted(), report.getStale()})
    for (auto arrival : arrivals)
      if (auto replica = arrival.getOrigin().getReplica(); !roster.has(replica))
        return error{errc::malformed,
                     fmt::format("step {} was given a gradient of replica {}; there are {}",
                                 step + 1, replica, roster.size())};
  return std::nullopt;
}

uint32_t chief_state::choose_needed() const {
  auto usual = config.sync.replicas_to_aggregate;
  if (!choice) return usual;
  return troupe::choose_needed(*choice, usual,
                               {.expected = roster.all_expected(), .left = roster.left()},
                               config.world->now());
}

bool chief_state::lowers_needed() {
  auto left = roster.left();
  if (!choice || !is_collecting() || left == 0 || open.needed <= left) return false;
  open.needed = left;
  config.on_open_step(not_over());
  return true;
}

std::optional<error> chief_state::overdue(job_time now) const {
  auto too_late = [](std::string line) { return error{errc::deadline_exceeded, std::move(line)}; };
  if (now_in == phase::taking_back
      && now > after(after(*end.asked, config.stop_timeout), config.deadline))
    return too_late(fmt::format("step {} is to be taken back, but only {} of {} accumulators have "
                                "answered",
                                step + 1, open.cancelled, config.collected.size()));
  if (now_in == phase::applying && now - open.began > config.deadline)
    return too_late(fmt::format("step {} is not over after {:.1f} s; not updated yet: {}", step + 1,
                                seconds(now - open.began),
                                fmt::join(open.not_applied(config.collected), ", ")));
  if (now_in == phase::saving && now - phase_began > config.deadline)
    return too_late(fmt::format("{} of those asked for a checkpoint of step {} did not answer",
                                saving.missing, step));
  return std::nullopt;
}

std::optional<error> chief_state::lateness(const std::set<uint32_t>& waiting, job_time now) {
  auto late = now - open.began;
  if (late <= config.deadline / 6) return std::nullopt;
  if (late > config.deadline)
    return error{errc::deadline_exceeded,
                 fmt::format("step {} is not over after {:.1f} s; still missing: {}", step + 1,
                             seconds(late), missing(waiting))};
  if (!std::exchange(open.warned, true))
    config.on_warning(fmt::format("step {} takes {:.1f} s so far; still waiting for {}", step + 1,
                                  seconds(late), missing(waiting)));
  return std::nullopt;
}

job_time chief_state::first_deadline(job_time now) const {
  auto first = job_time::max();
  auto keep = [&](job_time due) {
    if (due >= now) first = std::min(first, due);
  };
  if (is_collecting() && !open.warned) keep(after(open.began, config.deadline / 6));
  if (is_collecting() || now_in == phase::applying) keep(after(open.began, config.deadline));
  if (now_in == phase::saving) keep(after(phase_began, config.deadline));
  if (now_in == phase::ending) keep(after(phase_began, config.leave_deadline));
  if (end.asked) keep(after(*end.asked, config.stop_timeout));
  if (now_in == phase::taking_back)
    keep(after(after(*end.asked, config.stop_timeout), config.deadline));
  for (auto replica : roster.awaited())
    keep(after(roster.since(replica), config.rejoin_timeout));
  auto period = config.watch_period;
  return first > job_time::max() - period ? job_time::max() : (first / period + 1) * period;
}

job_time chief_state::look_after(job_time now) const {
  auto period = config.watch_period;
  auto next = (now / period + 1) * period;
  if (!config.world->computes_in_place() || open.suspects_stall) return next;
  auto quiet = (now - std::max(open.began, phase_began)) / period * period;
  return std::min(std::max(next, now / period * period + quiet), first_deadline(now));
}

bool chief_state::finds_stall(const std::set<uint32_t>& waiting) {
  auto waits = [&waiting](uint32_t index) { return waiting.contains(index); };
  auto all_wait = roster.left() == live_count() && std::ranges::all_of(roster.live(), waits);
  return std::exchange(open.suspects_stall, all_wait) && all_wait;
}

std::vector<uint32_t>
chief_state::lost_parts(std::span<const accumulator_progress> progress) const {
  if (!traits_of(config.sync.policy).is_asynchronous() || end.report.lost.empty()) return {};
  std::vector<uint64_t> received; // gradients for this step and later ones, by accumulator
  for (const auto& accumulator : progress)
    received.push_back((accumulator.step - std::min(accumulator.step, step)) * open.needed
                       + accumulator.gradients);
  auto most = received.empty() ? 0 : std::ranges::max(received);
  if (has_lost_owners) most = std::max<uint64_t>(most, open.needed);
  if (most < open.needed) return {};
  return mapped(received, [&](auto count) { return static_cast<uint32_t>(most - count); });
}

std::vector<std::string>
chief_state::lacking_variables(std::span<const accumulator_progress> progress) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < progress.size(); ++i)
    if (progress[i].step <= step) names.push_back(fmt::format("'{}'", config.collected[i].name));
  return names.size() < progress.size() ? names : std::vector<std::string>{};
}

error chief_state::stall(uint32_t tokens, std::span<const accumulator_progress> progress) const {
  auto why = to_error({.step = step + 1,
                       .needed = open.needed,
                       .live = live_count(),
                       .replicas = roster.size(),
                       .tokens = tokens,
                       .lacking = lacking_variables(progress)});
  const auto& lost = end.report.lost;
  auto is_missed = [&](const lost_replica& one) {
    return traits_of(config.sync.policy).counts_tokens() || !roster.expects(one.replica);
  };
  auto last = std::ranges::find_if(lost.rbegin(), lost.rend(), is_missed);
  return last == lost.rend() ? why : end_for(*last, why.message);
}

std::string chief_state::missing(const std::set<uint32_t>& waiting) const {
  std::vector<std::string> names;
  auto live = roster.live();
  for (auto index : live)
    if (!waiting.contains(index)) names.push_back(fmt::format("replica {}", index));
  for (uint32_t index = 0; index < roster.size(); ++index)
    if (!std::ranges::binary_search(live, index))
      names.push_back(fmt::format("replica {} (not there)", index));
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

} // namespace troupe
