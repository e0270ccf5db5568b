// SPDX-License-Identifier: Apache-2.0
// Reports of processes, and the sights that are made of them.
#include "actors/observing/task_view.hpp"

#include "messages/mapped.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace troupe {

namespace {

// No process lives longer, and as many times as a job has actors can be added up.
constexpr job_time longest_time = std::chrono::hours{24 * 366};

// Launchers know a process by its type and number; where it listens does not tell it from others.
std::string without_address(const std::string& name) {
  return name.substr(0, name.find(' '));
}

actor_report report_of(const actor_sight& actor) {
  actor_report report{.name = actor.name.substr(0, reported_name_bytes_max),
                      .actor = actor.actor,
                      .doing = static_cast<uint8_t>(actor.doing),
                      .since = actor.since,
                      .mailbox_depth = actor.mailbox_depth,
                      .received = actor.received,
                      .handled = actor.handled,
                      .errors = actor.errors,
                      .timed = actor.timed,
                      .timed_total = actor.timed_total};
  for (const auto& seen : actor.messages)
    report.messages.push_back({.when = seen.when,
                               .kind = seen.kind != nullptr ? seen.kind->name : "",
                               .sender = seen.sender,
                               .step = seen.step});
  return report;
}

std::string printable(std::string name) {
  name.resize(std::min(name.size(), reported_name_bytes_max));
  std::ranges::replace_if(
    name, [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return name;
}

const message_kind* kind_called(std::string_view name) {
  auto kinds = message_kinds();
  auto found = std::ranges::find(kinds, name, &message_kind::name);
  return found != kinds.end() ? &*found : nullptr;
}

actor_doing doing_of(uint8_t number) {
  return number <= static_cast<uint8_t>(actor_doing::ended) ? static_cast<actor_doing>(number)
                                                            : actor_doing::waiting;
}

/// Times of one clock on another.
struct clock_change {
  job_time theirs{0}; ///< At the moment that is `ours` here.
  job_time ours{0};

  [[nodiscard]] job_time operator()(job_time when) const {
    auto age = when < theirs ? theirs - std::max(when, job_time{0}) : job_time{0};
    return ours - std::min(age, longest_time);
  }
};

actor_sight sight_of(const actor_report& report, const clock_change& here) {
  actor_sight actor{.name = printable(report.name),
                    .actor = report.actor,
                    .doing = doing_of(report.doing),
                    .since = here(report.since),
                    .mailbox_depth = report.mailbox_depth,
                    .received = report.received,
                    .handled = report.handled,
                    .errors = report.errors,
                    .timed = report.timed,
                    .timed_total = std::clamp(report.timed_total, job_time{0}, longest_time),
                    .last = {},
                    .messages = {}};
  auto first
    = report.messages.size() - std::min(report.messages.size(), observation::messages_kept);
  for (auto i = first; i < report.messages.size(); ++i) {
    const auto& message = report.messages[i];
    actor.messages.push_back({.when = here(message.when),
                              .kind = kind_called(message.kind),
                              .sender = message.sender,
                              .step = message.step});
  }
  if (!actor.messages.empty()) actor.last = actor.messages.back();
  return actor;
}

} // namespace

task_sight look_here(const observatory& observed, const std::string& task, size_t messages) {
  return {.task = task,
          .is_lost = false,
          .seen = observed.now(),
          .process = look_at_process(),
          .left_out = 0,
          .actors = observed.look(messages)};
}

task_report report_here(const observatory& observed, size_t messages) {
  auto here = look_here(observed, {}, std::min(messages, observation::messages_kept));
  auto has_ended = [](const actor_sight& actor) { return actor.doing == actor_doing::ended; };
  std::ranges::stable_sort(here.actors, {}, has_ended);
  task_report report{.clock = *here.seen,
                     .resident_bytes = here.process.resident_bytes,
                     .cpu_seconds = here.process.cpu_seconds,
                     .actors = {},
                     .left_out = 0};
  auto count = std::min(here.actors.size(), reported_actors_max);
  for (size_t i = 0; i < count; ++i)
    report.actors.push_back(report_of(here.actors[i]));
  report.left_out = static_cast<uint32_t>(here.actors.size() - count);
  return report;
}

task_sight sight_of(const task_report& report, const std::string& task, job_time now) {
  auto is_number = std::isfinite(report.cpu_seconds) && report.cpu_seconds >= 0;
  task_sight sight{.task = task,
                   .is_lost = false,
                   .seen = now,
                   .process = {.resident_bytes = report.resident_bytes,
                               .cpu_seconds = is_number ? report.cpu_seconds : 0},
                   .left_out = report.left_out,
                   .actors = {}};
  clock_change here{.theirs = report.clock, .ours = now};
  auto count = std::min(report.actors.size(), reported_actors_max);
  for (size_t i = 0; i < count; ++i)
    sight.actors.push_back(sight_of(report.actors[i], here));
  return sight;
}

names_by_actor names_in(const task_sight& task) {
  names_by_actor names;
  for (const auto& actor : task.actors)
    names[actor.actor] = actor.name;
  return names;
}

task_view::task_view(std::string here, std::map<uint32_t, std::string> others)
  : here_(without_address(here)), names_(std::move(others)) {
  for (auto& [member, name] : names_) {
    name = without_address(name);
    sights_[member].task = name;
  }
}

void task_view::enter(uint32_t member) {
  std::lock_guard guard{mutex_};
  sights_.at(member).is_lost = false;
}

void task_view::fold(uint32_t member, const task_report& report, job_time now) {
  auto sight = sight_of(report, name_of(member), now);
  std::lock_guard guard{mutex_};
  sights_.at(member) = std::move(sight);
}

void task_view::lose(uint32_t member) {
  std::lock_guard guard{mutex_};
  sights_.at(member).is_lost = true;
}

std::vector<task_sight> task_view::look() const {
  std::lock_guard guard{mutex_};
  return mapped(sights_, [](const auto& task) { return task.second; });
}

} // namespace troupe
