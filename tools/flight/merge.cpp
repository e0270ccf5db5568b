// SPDX-License-Identifier: Apache-2.0
// Reads JSON lines, finds the replica that fell behind, and lays messages out as a table.
#include "tools/flight/merge.hpp"

#include "actors/recording/readable.hpp"
#include "actors/recording/records.hpp"
#include "tools/system/json_fields.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <tuple>

namespace troupe {

namespace {

using json = nlohmann::json;

// Adds a line to the record. The first line is about the task, the others are about actors and
// their messages. @returns Whether it is a line of a record.
bool read_line(const json& line, flight_task& record) {
  if (!line.is_object()) return false;
  if (line.contains("task")) {
    auto lost = line.find("lost");
    record.task = text_at(line, "task");
    record.reason = text_at(line, "reason");
    record.is_lost = lost != line.end() && lost->is_boolean() && lost->get<bool>();
    record.seconds = number_at(line, "seconds");
    return !record.task.empty();
  }
  auto actor = text_at(line, "actor");
  if (record.task.empty() || actor.empty()) return false;
  if (line.contains("state")) {
    record.actors.push_back({.name = actor,
                             .state = text_at(line, "state"),
                             .since = number_at(line, "since").value_or(0),
                             .step = std::nullopt,
                             .handled = count_at(line, "handled").value_or(0)});
    return true;
  }
  auto seconds = number_at(line, "seconds");
  if (!seconds || record.actors.empty() || record.actors.back().name != actor) return false;
  flight_message message{.seconds = *seconds,
                         .actor = actor,
                         .message = text_at(line, "message"),
                         .step = count_at(line, "step"),
                         .from = text_at(line, "from")};
  ++record.actors.back().listed;
  auto& newest = record.actors.back().step;
  if (message.step) newest = std::max(newest.value_or(0), *message.step);
  record.messages.push_back(std::move(message));
  return true;
}

/// A replica, and the step that it is at.
struct placed_replica {
  const flight_task* task;
  const flight_actor* actor;
  std::optional<uint64_t> known_step; ///< Nothing: the first step that it makes.

  [[nodiscard]] bool computes() const { return actor->state == "computing"; }

  [[nodiscard]] uint64_t step() const { return known_step.value_or(0); }

  /// The first in ascending order is the furthest behind.
  [[nodiscard]] auto rank() const { return std::tuple{step(), !computes(), actor->since}; }
};

// The newest step of all messages up to a moment.
std::optional<uint64_t> step_at(std::span<const flight_task> tasks, double moment) {
  std::optional<uint64_t> newest;
  for (const auto& task : tasks)
    for (const auto& message : task.messages)
      if (message.step && message.seconds <= moment) newest = std::max(newest, message.step);
  return newest;
}

// Whether an actor is a replica that computes a step that is not known. Its token is known only if
// all its messages are listed; a lost task has often left only the last one.
bool computes_unknown_step(const flight_actor& actor) {
  return actor.name.starts_with("replica ") && actor.state == "computing" && !actor.step
         && actor.listed < actor.handled;
}

// A replica that computes and has had no token yet is at the step that the job was at when it
// began: the job's first, or a later one if it has joined late or again.
std::vector<placed_replica> replicas_of(std::span<const flight_task> tasks) {
  std::vector<placed_replica> replicas;
  for (const auto& task : tasks)
    for (const auto& actor : task.actors)
      if (actor.name.starts_with("replica ") && actor.state != "ended"
          && (actor.step || actor.state == "computing") && !computes_unknown_step(actor))
        replicas.push_back({&task, &actor, actor.step ? actor.step : step_at(tasks, actor.since)});
  std::ranges::sort(replicas, {}, &placed_replica::rank);
  return replicas;
}

// "replica 3 has been computing for 12.5 s".
std::string state_text(const flight_task& task, const flight_actor& actor) {
  auto moment = task.seconds.value_or(actor.since);
  return fmt::format("{} has been {} for {}", actor.name, actor.state,
                     readable::duration(moment - actor.since));
}

std::string finding_of(const placed_replica& last, uint64_t furthest) {
  return fmt::format("{} fell behind: {}, at {}; the furthest replica is at step {}",
                     last.task->task, state_text(*last.task, *last.actor),
                     last.known_step ? fmt::format("step {}", *last.known_step) : "its first step",
                     furthest);
}

std::vector<std::string> findings_of_unknown_steps(std::span<const flight_task> tasks) {
  std::vector<std::string> findings;
  for (const auto& task : tasks)
    for (const auto& actor : task.actors)
      if (computes_unknown_step(actor))
        findings.push_back(
          fmt::format("{}: {}, at a step that is not known", task.task, state_text(task, actor)));
  return findings;
}

/// A message, and its task.
struct task_message {
  const flight_task* task;
  const flight_message* message;
};

std::vector<task_message> messages_by_time(std::span<const flight_task> tasks) {
  std::vector<task_message> all;
  for (const auto& task : tasks)
    for (const auto& message : task.messages)
      all.push_back({&task, &message});
  std::ranges::stable_sort(all, {}, [](const auto& one) { return one.message->seconds; });
  return all;
}

std::string table(std::span<const task_message> messages) {
  size_t task_width = 4;
  size_t actor_width = 5;
  for (const auto& [task, message] : messages) {
    task_width = std::max(task_width, task->task.size());
    actor_width = std::max(actor_width, message->actor.size());
  }
  auto line = [&](std::string_view seconds, std::string_view task, std::string_view actor,
                  std::string_view message, std::string_view step, std::string_view from) {
    auto text = fmt::format("{:>14}  {:{}}  {:{}}  {:18}  {:>8}  {}", seconds, task, task_width,
                            actor, actor_width, message, step, from);
    text.resize(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  auto text = line("seconds", "task", "actor", "message", "step", "from");
  for (const auto& [task, message] : messages)
    text
      += line(fmt::format("{:.6f}", message->seconds), task->task, message->actor, message->message,
              message->step ? std::to_string(*message->step) : "-", message->from);
  return text;
}

} // namespace

expected<flight_task> read_flight_task(std::string_view text, const std::string& file) {
  flight_task task;
  for (size_t number = 1; !text.empty(); ++number) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!read_line(json::parse(line, nullptr, false), task))
      return fail(errc::malformed,
                  fmt::format("{}:{}: not a line of a flight record", file, number));
  }
  if (task.task.empty()) return fail(errc::malformed, file + ": an empty flight record");
  return task;
}

std::vector<std::string> flight_findings(std::span<const flight_task> tasks) {
  std::vector<std::string> findings;
  for (const auto& task : tasks) {
    if (!task.is_lost) continue;
    findings.push_back(task.seconds ? fmt::format("{} is lost; it reported last at {:.3f} s",
                                                  task.task, *task.seconds)
                                    : fmt::format("{} did not answer", task.task));
  }
  auto unknown = findings_of_unknown_steps(tasks);
  findings.insert(findings.end(), unknown.begin(), unknown.end());
  auto replicas = replicas_of(tasks);
  if (replicas.empty()) return findings;
  const auto& last = replicas.front();
  auto furthest = std::ranges::max(replicas, {}, &placed_replica::step).step();
  auto is_alone = last.computes() && !std::ranges::all_of(replicas, &placed_replica::computes);
  if (last.step() < furthest || is_alone)
    findings.push_back(finding_of(last, furthest));
  else
    findings.push_back(unknown.empty() ? "no task fell behind"
                                       : "none of the other replicas fell behind");
  return findings;
}

std::string flight_page(std::span<const flight_task> tasks, size_t messages_max) {
  auto messages = messages_by_time(tasks);
  auto page = fmt::format("flight records of {} tasks: {}\n", tasks.size(), tasks.front().reason);
  for (const auto& finding : flight_findings(tasks))
    page += finding + "\n";
  auto shown = std::min(messages_max, messages.size());
  if (shown == 0) return page;
  page += fmt::format("\nthe last {} of {} messages\n\n", shown, readable::count(messages.size()));
  return page + table(std::span{messages}.last(shown));
}

} // namespace troupe
