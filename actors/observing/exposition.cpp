// SPDX-License-Identifier: Apache-2.0
// Writing figures down.
#include "actors/observing/exposition.hpp"

#include "actors/recording/seconds.hpp"

#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <unistd.h>
#include <unordered_map>

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
  out.family("troupe_replica_gradients_total", "counter", "Gradients of a replica, likewise.");
  for (const auto& [index, replica] : job.replicas)
    write_verdicts(out, replica.gradients, fmt::format("replica=\"{}\",", index));
  out.family("troupe_replica_computing_seconds_total", "counter", "Time spent on gradients.");
  write_replicas(out, job, [](const auto& replica) { return seconds(replica.computing); });
  out.family("troupe_replica_waiting_seconds_total", "counter", "Time spent waiting for tokens.");
  write_replicas(out, job, [](const auto& replica) { return seconds(replica.waiting); });
  out.family("troupe_replica_lag", "gauge",
             "Steps that the newest gradient of a replica came too late.");
  write_replicas(out, job, [](const auto& replica) { return replica.lag; });
}

using sights_by_name = std::map<std::string, actor_sight>;

// A name stands for one time series, so what has one name is added up.
sights_by_name living(std::span<const actor_sight> actors) {
  sights_by_name result;
  for (const auto& actor : actors) {
    if (actor.doing == actor_doing::ended) continue;
    auto& sum = result[actor.name];
    sum.mailbox_depth += actor.mailbox_depth;
    sum.handled += actor.handled;
    sum.errors += actor.errors;
    sum.timed += actor.timed;
    sum.timed_total += actor.timed_total;
  }
  return result;
}

std::string label_of(const std::string& name) {
  return fmt::format("name=\"{}\"", escaped_label(name));
}

void write_processing_times(exposition& out, const sights_by_name& actors) {
  out.family("caf_actor_processing_time_seconds", "summary",
             "Time that an actor takes for a message; one message of 64 is timed.");
  for (const auto& [name, actor] : actors) {
    out.sample(seconds(actor.timed_total), label_of(name), "_sum");
    out.sample(actor.timed, label_of(name), "_count");
  }
}

void write_actors(exposition& out, const sights_by_name& actors, size_t running) {
  out.single("caf_system_running_actors", "gauge", "Actors that have not ended.",
             uint64_t{running});
  out.family("caf_actor_mailbox_size", "gauge", "Messages that wait in an actor's mailbox.");
  for (const auto& [name, actor] : actors)
    out.sample(actor.mailbox_depth, label_of(name));
  write_processing_times(out, actors);
  out.family("troupe_actor_messages_total", "counter", "Messages that an actor has handled.");
  for (const auto& [name, actor] : actors)
    out.sample(actor.handled, label_of(name));
  out.family("troupe_actor_errors_total", "counter",
             "Requests of an actor that were answered with an error.");
  for (const auto& [name, actor] : actors)
    out.sample(actor.errors, label_of(name));
}

using names_by_actor = std::unordered_map<uint64_t, std::string>;

nlohmann::ordered_json to_json(const sighting& seen, job_time now, const names_by_actor& names) {
  nlohmann::ordered_json json;
  json["kind"] = seen.kind != nullptr ? seen.kind->name : "other";
  auto from = names.find(seen.sender);
  if (from != names.end())
    json["from"] = from->second;
  else
    json["from"] = nullptr;
  if (seen.step != no_step)
    json["step"] = seen.step;
  else
    json["step"] = nullptr;
  json["age_seconds"] = seconds(std::max(now - seen.when, job_time{0}));
  return json;
}

nlohmann::ordered_json to_json(const actor_sight& actor, job_time now,
                               const names_by_actor& names) {
  nlohmann::ordered_json json{{"name", actor.name},
                              {"id", actor.actor},
                              {"state", to_string(actor.doing)},
                              {"mailbox_depth", actor.mailbox_depth},
                              {"received", actor.received},
                              {"handled", actor.handled},
                              {"errors", actor.errors},
                              {"last_message", nullptr}};
  if (actor.last) json["last_message"] = to_json(*actor.last, now, names);
  return json;
}

} // namespace

process_figures look_at_process() {
  process_figures figures;
  uint64_t pages_in_all = 0;
  uint64_t pages = 0;
  if (std::ifstream{"/proc/self/statm"} >> pages_in_all >> pages)
    figures.resident_bytes = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0)
    for (const auto& part : {usage.ru_utime, usage.ru_stime})
      figures.cpu_seconds += static_cast<double>(part.tv_sec) + 1e-6 * double(part.tv_usec);
  return figures;
}

std::string prometheus_text(const job_figures& job, std::span<const actor_sight> actors,
                            const process_figures& process) {
  exposition out;
  write_job(out, job);
  write_replicas(out, job);
  auto running = std::count_if(actors.begin(), actors.end(),
                               [](const auto& actor) { return actor.doing != actor_doing::ended; });
  write_actors(out, living(actors), static_cast<size_t>(running));
  out.single("process_resident_memory_bytes", "gauge", "Memory of the process.",
             process.resident_bytes);
  out.single("process_cpu_seconds_total", "counter", "Processor time of the process.",
             process.cpu_seconds);
  return out.take();
}

std::string actors_json(std::span<const actor_sight> actors, job_time now) {
  names_by_actor names;
  for (const auto& actor : actors)
    names[actor.actor] = actor.name;
  std::string text = "[";
  for (const auto& actor : actors) {
    text += text.size() > 1 ? ",\n " : "\n ";
    text += to_json(actor, now, names)
              .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
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
