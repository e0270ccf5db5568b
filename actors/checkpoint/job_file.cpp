// SPDX-License-Identifier: Apache-2.0
// Converting jobs to the contents of checkpoint files, and back.
#include "actors/checkpoint/job_file.hpp"

#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace troupe {

namespace {

using nlohmann::json;

constexpr const char* job_key = "troupe.job";
constexpr int format_version = 1;

/// Names of a file's tensors, in the order in which they are written and read again. Variables keep
/// their names; another tensor that would have one of these gets a number behind its own.
class tensor_names {
public:
  void reserve(const std::string& variable) { taken_.insert(variable); }

  std::string next(const std::string& base) {
    auto name = base;
    for (int number = 2; !taken_.insert(name).second; ++number)
      name = fmt::format("{}#{}", base, number);
    return name;
  }

private:
  std::set<std::string> taken_;
};

// ---- writing ----

/// Converts variables and replicas to JSON, and collects their tensors.
class writer {
public:
  writer(std::vector<named_tensor>& tensors, std::span<const variable_snapshot> variables)
    : tensors_(tensors) {
    for (const auto& variable : variables)
      names_.reserve(variable.name);
  }

  json write(const variable_snapshot& variable) {
    const auto& state = variable.state;
    tensors_.push_back({variable.name, state.value});
    json slots = json::array();
    for (const auto& slot : state.slots) {
      add(variable.name + "/" + slot.name, slot.value);
      slots.push_back(slot.name);
    }
    if (state.average) add(variable.name + "/" + state.average->name, state.average->value);
    return {{"name", variable.name},
            {"version", state.version},
            {"optimizer", state.optimizer},
            {"slots_since", state.slots_since},
            {"slots", slots},
            {"average", state.average ? json(state.average->name) : json(nullptr)}};
  }

  json write(const replica_progress& replica) {
    json kept = json::array();
    for (const auto& array : replica.kept) {
      add(fmt::format("replica_{}/{}", replica.replica, array.name), array.value);
      kept.push_back(array.name);
    }
    return {{"replica", replica.replica},
            {"computing", replica.computing},
            {"local_step", replica.local_step},
            {"iteration", replica.iteration},
            {"computations", replica.computations},
            {"remaining_ns", replica.remaining.count()},
            {"compute_ns", replica.compute.count()},
            {"kept", kept}};
  }

  json write_backups(std::span<const named_payload> backups) {
    json names = json::array();
    for (const auto& array : backups) {
      add("backups/" + array.name, array.value);
      names.push_back(array.name);
    }
    return names;
  }

  void add(const std::string& base, const tensor& value) {
    tensors_.push_back({names_.next(base), value});
  }

private:
  std::vector<named_tensor>& tensors_;
  tensor_names names_;
};

tensor scalar(uint64_t number) {
  tensor value{dtype::i64, shape{}};
  value.mutable_values<int64_t>()[0] = static_cast<int64_t>(number);
  return value;
}

// ---- reading ----

/// An exception that ends the reading, inside this file, if something is missing or wrong.
struct unreadable {
  std::string why;
};

class reader {
public:
  reader(const safetensors_content& content, const json& variables) {
    for (const auto& [name, value] : content.tensors)
      tensors_.emplace(name, value);
    for (const auto& variable : variables)
      names_.reserve(variable.at("name"));
  }

  variable_snapshot read_variable(const json& from) {
    variable_snapshot variable{from.at("name"), {}};
    auto& state = variable.state;
    state.version = from.at("version");
    state.value = find(variable.name);
    state.optimizer = from.at("optimizer");
    state.slots_since = from.at("slots_since");
    for (const std::string slot : from.at("slots"))
      state.slots.push_back({slot, find(names_.next(variable.name + "/" + slot))});
    if (const auto& average = from.at("average"); !average.is_null())
      state.average = named_payload{
        average, find(names_.next(variable.name + "/" + average.get<std::string>()))};
    return variable;
  }

  replica_progress read_replica(const json& from) {
    replica_progress replica{.replica = from.at("replica"),
                             .computing = from.at("computing"),
                             .local_step = from.at("local_step"),
                             .iteration = from.at("iteration"),
                             .computations = from.at("computations"),
                             .remaining = job_time{from.at("remaining_ns").get<int64_t>()},
                             .compute = job_time{from.value("compute_ns", int64_t{0})}};
    for (const std::string name : from.at("kept"))
      replica.kept.push_back(
        {name, find(names_.next(fmt::format("replica_{}/{}", replica.replica, name)))});
    return replica;
  }

  std::vector<named_payload> read_backups(const json& names) {
    std::vector<named_payload> backups;
    for (const std::string name : names)
      backups.push_back({name, find(names_.next("backups/" + name))});
    return backups;
  }

private:
  tensor find(const std::string& name) {
    auto found = tensors_.find(name);
    if (found == tensors_.end()) throw unreadable{fmt::format("tensor '{}' is missing", name)};
    return found->second;
  }

  std::map<std::string, tensor> tensors_;
  tensor_names names_;
};

job_snapshot read_job(const json& job, const safetensors_content& content) {
  if (auto version = job.at("format").get<int>(); version != format_version)
    throw unreadable{fmt::format("it has format {}, this version of Troupe reads format {}",
                                 version, format_version)};
  job_snapshot snapshot{.step = job.at("step"),
                        .time = job_time{job.at("time_ns").get<int64_t>()},
                        .seed = job.at("seed"),
                        .tokens = job.at("tokens")};
  reader from{content, job.at("variables")};
  for (const auto& variable : job.at("variables"))
    snapshot.variables.push_back(from.read_variable(variable));
  for (const auto& replica : job.at("replicas"))
    snapshot.replicas.push_back(from.read_replica(replica));
  if (job.contains("backups")) // older files have none
    snapshot.backups = from.read_backups(job.at("backups"));
  return snapshot;
}

} // namespace

safetensors_content to_content(const job_snapshot& snapshot, const safetensors_metadata& notes) {
  safetensors_content content;
  content.metadata = notes;
  writer to{content.tensors, snapshot.variables};
  json variables = json::array();
  for (const auto& variable : snapshot.variables)
    variables.push_back(to.write(variable));
  json replicas = json::array();
  for (const auto& replica : snapshot.replicas)
    replicas.push_back(to.write(replica));
  auto backups = to.write_backups(snapshot.backups);
  to.add("global_step", scalar(snapshot.step));
  content.metadata[job_key] = json{{"format", format_version},
                                   {"step", snapshot.step},
                                   {"time_ns", snapshot.time.count()},
                                   {"seed", snapshot.seed},
                                   {"tokens", snapshot.tokens},
                                   {"variables", variables},
                                   {"replicas", replicas},
                                   {"backups", backups}}
                                .dump();
  return content;
}

expected<job_snapshot> to_snapshot(const safetensors_content& content) {
  auto job = content.metadata.find(job_key);
  if (job == content.metadata.end())
    return fail(errc::malformed, "it holds tensors, but no job of Troupe's");
  try {
    return read_job(json::parse(job->second), content);
  } catch (const unreadable& problem) {
    return fail(errc::malformed, problem.why);
  } catch (const json::exception& problem) {
    return fail(errc::malformed, fmt::format("its metadata '{}': {}", job_key, problem.what()));
  }
}

} // namespace troupe
