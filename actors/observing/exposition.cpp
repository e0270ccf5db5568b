// SPDX-License-Identifier: Apache-2.0
// The figures of a running job in Prometheus' text format, and its actors in JSON.
#include "actors/observing/exposition.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/text.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace troupe {

namespace {

std::string spelled(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

/// Families of samples, one after the other.
class exposition {
public:
  /// Begins a family.
  void family(std::string_view name, std::string_view kind, std::string_view help) {
    name_ = name;
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, kind);
  }

  /// One sample. @param labels As they stand between the braces; may be empty.
  template <class Number>
  void sample(Number value, std::string_view labels = {}, std::string_view suffix = {}) {
    text_ += fmt::format("{}{}", name_, suffix);
    if (!labels.empty()) text_ += fmt::format("{{{}}}", labels);
    text_ += fmt::format(" {}\n", spelled_or_count(value));
  }

  template <class Number>
  void single(std::string_view name, std::string_view kind, std::string_view help, Number value) {
    family(name, kind, help);
    sample(value);
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

private:
  static std::string spelled_or_count(double value) { return spelled(value); }

  static std::string spelled_or_count(uint64_t value) { return fmt::format("{}", value); }

  std::string name_;
  std::string text_;
};

void write_verdicts(exposition& out, const verdict_counts& counts, const std::string& labels) {
  out.sample(counts.accepted, labels + "verdict=\"accepted\"");
  out.sample(counts.stale, labels + "verdict=\"stale\"");
  out.sample(counts.cancelled, labels + "verdict=\"cancelled\"");
}

void write_step_seconds(exposition& out, const job_figures& job) {
  out.family("troupe_step_seconds", "histogram", "Time from one update to the next.");
  uint64_t count = 0;
  for (size_t i = 0; i < job.step_seconds_bounds.size(); ++i) {
    count += job.step_seconds_counts[i];
    out.sample(count, fmt::format("le=\"{}\"", job.step_seconds_bounds[i]), "_bucket");
  }
  count += job.step_seconds_counts.back();
  out.sample(count, "le=\"+Inf\"", "_bucket");
  out.sample(job.step_seconds_total, {}, "_sum");
  out.sample(count, {}, "_count");
}

void write_job(exposition& out, const job_figures& job) {
  out.single("troupe_global_step", "gauge", "Updates made so far.", job.step);
  out.single("troupe_loss", "gauge", "Mean loss of the last step.", job.loss);
  out.single("troupe_live_replicas", "gauge", "Replicas that take part.", uint64_t{job.live});
  out.single("troupe_needed_gradients", "gauge", "Gradients that an update waits for.",
             uint64_t{job.needed});
  out.single("troupe_examples_total", "counter", "Examples that updates learned from.",
             job.examples);
  out.family("troupe_gradients_total", "counter", "Gradients, by what became of them.");
  write_verdicts(out, job.gradients, "");
  write_step_seconds(out, job);
}

template <class Value>
void write_replicas(exposition& out, const job_figures& job, const Value& value) {
  for (const auto& [index, replica] : job.replicas)
    out.sample(value(replica), fmt::format("replica=\"{}\"", index));
}

void write_replicas(exposition& out, const job_figures& job) {
  out.family("troupe_replica_gradients_total", "counter",
             "Gradients of a replica, by what became of them.");
  for (const auto& [index, replica] : job.replicas)
    write_verdicts(out, replica.gradients, fmt::format("replica=\"{}\",", index));
  out.family("troupe_replica_computing_seconds_total", "counter", "Time spent on gradients.");
  write_replicas(out, job, [](const auto& replica) { return seconds(replica.computing); });
  out.family("troupe_replica_waiting_seconds_total", "counter", "Time spent waiting for tokens.");
  write_replicas(out, job, [](const auto& replica) { return seconds(replica.waiting); });
  out.family("troupe_replica_staleness", "gauge",
             "Steps that the newest gradient of a replica came too late.");
  write_replicas(out, job, [](const auto& replica) { return replica.staleness; });
}

/// The labels of an actor: its time series.
std::string labels_of(const std::string& task, const std::string& name) {
  auto label = fmt::format("name=\"{}\"", escaped_label(name));
  return task.empty() ? label : fmt::format("task=\"{}\",{}", escaped_label(task), label);
}

using sights_by_labels = std::map<std::string, actor_sight>;

// Labels stand for one time series, so the figures of actors with the same labels are added up. The
// last one's state counts.
sights_by_labels living(std::span<const task_sight> tasks) {
  sights_by_labels result;
  for (const auto& task : tasks) {
    for (const auto& actor : task.actors) {
      if (actor.doing == actor_doing::ended) continue;
      auto& sum = result[labels_of(task.task, actor.name)];
      sum.doing = actor.doing;
      sum.since = actor.since;
      sum.mailbox_depth += actor.mailbox_depth;
      add_counts(sum, actor);
    }
  }
  return result;
}

void write_processing_times(exposition& out, const sights_by_labels& actors) {
  out.family("caf_actor_processing_time_seconds", "summary",
             "Time that an actor takes for a message; one message of 64 is timed.");
  for (const auto& [labels, actor] : actors) {
    out.sample(seconds(actor.timed_total), labels, "_sum");
    out.sample(actor.timed, labels, "_count");
  }
}

double age_in_seconds(job_time since, job_time now) {
  return seconds(std::max(now - since, job_time{0}));
}

void write_states(exposition& out, const sights_by_labels& actors, job_time now) {
  out.family("troupe_actor_computing", "gauge", "1 for an actor that computes, else 0.");
  for (const auto& [labels, actor] : actors)
    out.sample(uint64_t{actor.doing == actor_doing::computing}, labels);
  out.family("troupe_actor_state_seconds", "gauge", "Time since an actor began what it does.");
  for (const auto& [labels, actor] : actors)
    out.sample(age_in_seconds(actor.since, now), labels);
}

// Actors that share their labels count one by one.
uint64_t count_living(std::span<const task_sight> tasks) {
  uint64_t count = 0;
  for (const auto& task : tasks)
    count += static_cast<uint64_t>(std::ranges::count_if(
      task.actors, [](const auto& actor) { return actor.doing != actor_doing::ended; }));
  return count;
}

void write_actors(exposition& out, std::span<const task_sight> tasks, job_time now) {
  const auto actors = living(tasks);
  out.single("caf_system_running_actors", "gauge", "Actors that have not ended.",
             count_living(tasks));
  out.family("caf_actor_mailbox_size", "gauge", "Messages that wait in an actor's mailbox.");
  for (const auto& [labels, actor] : actors)
    out.sample(actor.mailbox_depth, labels);
  write_processing_times(out, actors);
  out.family("troupe_actor_messages_total", "counter", "Messages that an actor has handled.");
  for (const auto& [labels, actor] : actors)
    out.sample(actor.handled, labels);
  out.family("troupe_actor_errors_total", "counter",
             "Requests of an actor that were answered with an error.");
  for (const auto& [labels, actor] : actors)
    out.sample(actor.errors, labels);
  write_states(out, actors, now);
}

template <class Value>
void write_tasks(exposition& out, std::span<const task_sight> tasks, const Value& value) {
  for (const auto& task : tasks)
    if (task.seen) out.sample(value(task), fmt::format("task=\"{}\"", escaped_label(task.task)));
}

void write_tasks(exposition& out, std::span<const task_sight> tasks, job_time now) {
  out.family("troupe_task_up", "gauge",
             "1 for a process that is there, 0 for one that is lost, or has not come.");
  for (const auto& task : tasks)
    out.sample(uint64_t{task.seen && !task.is_lost},
               fmt::format("task=\"{}\"", escaped_label(task.task)));
  out.family("troupe_task_report_age_seconds", "gauge", "Age of what is known of a process.");
  write_tasks(out, tasks, [now](const auto& task) { return age_in_seconds(*task.seen, now); });
  out.family("troupe_task_resident_memory_bytes", "gauge", "Memory of a process.");
  write_tasks(out, tasks, [](const auto& task) { return task.process.resident_bytes; });
  out.family("troupe_task_cpu_seconds_total", "counter", "Processor time of a process.");
  write_tasks(out, tasks, [](const auto& task) { return task.process.cpu_seconds; });
}

/// The figures of "replica 3"; null for an actor that is none, or has none yet.
const replica_figures* figures_of(const std::string& name, const job_figures& job) {
  constexpr std::string_view role = "replica ";
  if (!name.starts_with(role)) return nullptr;
  auto index = number_of<uint32_t>(std::string_view{name}.substr(role.size()));
  if (!index) return nullptr;
  auto found = job.replicas.find(*index);
  return found != job.replicas.end() ? &found->second : nullptr;
}

nlohmann::ordered_json to_json(const sighting& seen, job_time now, const names_by_actor& names) {
  nlohmann::ordered_json json{{"kind", seen.kind != nullptr ? seen.kind->name : "other"},
                              {"from", nullptr},
                              {"step", nullptr},
                              {"age_seconds", age_in_seconds(seen.when, now)}};
  if (auto from = names.find(seen.sender); from != names.end()) json["from"] = from->second;
  if (seen.step != no_step) json["step"] = seen.step;
  return json;
}

nlohmann::ordered_json to_json(const actor_sight& actor, const task_sight& task, job_time now,
                               const names_by_actor& names) {
  nlohmann::ordered_json json{{"name", actor.name},
                              {"task", nullptr},
                              {"id", actor.actor},
                              {"state", task.is_lost ? "lost" : to_string(actor.doing)},
                              {"state_seconds", age_in_seconds(actor.since, now)},
                              {"mailbox_depth", actor.mailbox_depth},
                              {"received", actor.received},
                              {"handled", actor.handled},
                              {"errors", actor.errors},
                              {"late", nullptr},
                              {"task_age_seconds", age_in_seconds(task.seen.value_or(now), now)},
                              {"last_message", nullptr}};
  if (!task.task.empty()) json["task"] = task.task;
  if (actor.last) json["last_message"] = to_json(*actor.last, now, names);
  return json;
}

} // namespace

std::string prometheus_text(const job_figures& job, std::span<const task_sight> tasks,
                            job_time now) {
  exposition out;
  write_job(out, job);
  write_replicas(out, job);
  write_actors(out, tasks, now);
  if (tasks.size() > 1) write_tasks(out, tasks, now);
  auto process = tasks.empty() ? look_at_process() : tasks.front().process;
  out.single("process_resident_memory_bytes", "gauge", "Memory of the process.",
             process.resident_bytes);
  out.single("process_cpu_seconds_total", "counter", "Processor time of the process.",
             process.cpu_seconds);
  return out.take();
}

std::string actors_json(const job_figures& job, std::span<const task_sight> tasks, job_time now) {
  std::string text = "[";
  for (const auto& task : tasks) {
    auto names = names_in(task);
    for (const auto& actor : task.actors) {
      auto json = to_json(actor, task, now, names);
      if (const auto* figures = figures_of(actor.name, job))
        json["late"] = figures->gradients.stale;
      text += text.size() > 1 ? ",\n " : "\n ";
      text += json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    }
  }
  return text + "\n]\n";
}

std::string escaped_label(std::string_view value) {
  std::string result;
  for (char letter : value) {
    if (letter == '\n') {
      result += "\\n";
      continue;
    }
    if (letter == '\\' || letter == '"') result += '\\';
    result += letter;
  }
  return result;
}

} // namespace troupe
