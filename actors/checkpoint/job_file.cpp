// SPDX-License-Identifier: Apache-2.0
// Converting jobs to the contents of checkpoint files, and back.
#include "actors/checkpoint/job_file.hpp"

#include <fmt/format.h>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

namespace troupe {

namespace {

using nlohmann::json;

constexpr const char* job_key = "troupe.job";
constexpr uint64_t format_version = 1;

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

// The largest step, iteration and other count, as that of a tensor of i64.
constexpr uint64_t count_max = std::numeric_limits<int64_t>::max();

// Half of what a clock counts, so that a job goes on for as long without an overflow.
constexpr job_time time_max = job_time::max() / 2;

/// An object of the metadata with fields of any kind. Reading a field that is missing or wrong
/// throws `unreadable` with its name: "replicas[1].iteration".
class fields {
public:
  /// @param object Outlives this. @param place "replicas[1]"; empty for the whole.
  fields(const json& object, std::string place) : object_(object), place_(std::move(place)) {
    if (!object.is_object())
      throw unreadable{place_.empty() ? fmt::format("its metadata '{}' is no JSON object", job_key)
                                      : wrong(place_, object, "a JSON object")};
  }

  [[nodiscard]] bool has(const char* key) const { return object_.contains(key); }

  [[nodiscard]] uint64_t count(const char* key, uint64_t max = count_max) const {
    return count_in(at(key), name_of(key), max);
  }

  [[nodiscard]] std::vector<uint64_t> counts(const char* key, uint64_t max) const {
    return list(key, [max](const json& value, const std::string& name) {
      return count_in(value, name, max);
    });
  }

  [[nodiscard]] job_time time(const char* key) const {
    return job_time{count(key, static_cast<uint64_t>(time_max.count()))};
  }

  [[nodiscard]] bool flag(const char* key) const {
    const auto& value = at(key);
    if (!value.is_boolean()) throw unreadable{wrong(name_of(key), value, "true or false")};
    return value.get<bool>();
  }

  [[nodiscard]] std::string text(const char* key) const { return text_in(at(key), name_of(key)); }

  /// Nothing if it is null.
  [[nodiscard]] std::optional<std::string> optional_text(const char* key) const {
    if (at(key).is_null()) return std::nullopt;
    return text(key);
  }

  [[nodiscard]] std::vector<std::string> texts(const char* key) const { return list(key, text_in); }

  [[nodiscard]] std::vector<fields> objects(const char* key) const {
    return list(key, [](const json& value, const std::string& name) {
      return fields{value, name};
    });
  }

  /// The text of an error about a field that cannot be used. @param need "a whole number".
  [[nodiscard]] static std::string wrong(const std::string& name, const json& value,
                                         std::string_view need) {
    return fmt::format("its metadata '{}': {} {}must be {}", job_key, name,
                       value.is_number() ? fmt::format("is {}, but ", value.dump()) : "", need);
  }

  /// "replicas[1].iteration".
  [[nodiscard]] std::string name_of(const char* key) const {
    return place_.empty() ? key : fmt::format("{}.{}", place_, key);
  }

  [[nodiscard]] const json& at(const char* key) const {
    auto found = object_.find(key);
    if (found == object_.end())
      throw unreadable{fmt::format("its metadata '{}': {} is missing", job_key, name_of(key))};
    return *found;
  }

private:
  static uint64_t count_in(const json& value, const std::string& name, uint64_t max) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > max)
      throw unreadable{wrong(name, value, fmt::format("a whole number from 0 to {}", max))};
    return value.get<uint64_t>();
  }

  static std::string text_in(const json& value, const std::string& name) {
    if (!value.is_string()) throw unreadable{wrong(name, value, "a text")};
    return value.get<std::string>();
  }

  /// @param read Makes an element of its value and its name, "tokens[1]".
  template <class Read, class Element = std::invoke_result_t<const Read&, const json&, std::string>>
  [[nodiscard]] std::vector<Element> list(const char* key, const Read& read) const {
    const auto& values = at(key);
    if (!values.is_array()) throw unreadable{wrong(name_of(key), values, "a list")};
    std::vector<Element> result;
    for (size_t i = 0; i < values.size(); ++i)
      result.push_back(read(values[i], fmt::format("{}[{}]", name_of(key), i)));
    return result;
  }

  const json& object_;
  std::string place_;
};

class reader {
public:
  reader(const safetensors_content& content, const std::vector<fields>& variables, uint64_t step)
    : step_(step) {
    for (const auto& [name, value] : content.tensors)
      tensors_.emplace(name, value);
    for (const auto& variable : variables)
      names_.reserve(variable.text("name"));
  }

  variable_snapshot read_variable(const fields& from) {
    variable_snapshot variable{from.text("name"), {}};
    auto& state = variable.state;
    state.version = from.count("version");
    state.value = find(variable.name);
    state.optimizer = from.text("optimizer");
    state.slots_since = from.count("slots_since");
    for (const auto& slot : from.texts("slots"))
      state.slots.push_back({slot, find(names_.next(variable.name + "/" + slot))});
    if (auto average = from.optional_text("average"))
      state.average = named_payload{*average, find(names_.next(variable.name + "/" + *average))};
    return variable;
  }

  replica_progress read_replica(const fields& from) {
    const auto index = from.count("replica", std::numeric_limits<uint32_t>::max());
    if (!replicas_.insert(index).second)
      throw unreadable{fields::wrong(from.name_of("replica"), from.at("replica"),
                                     "the index of one replica only")};
    replica_progress replica{.replica = static_cast<uint32_t>(index),
                             .computing = from.flag("computing"),
                             .local_step = from.count("local_step", step_),
                             .iteration = from.count("iteration"),
                             .computations = from.count("computations"),
                             .remaining = from.time("remaining_ns"),
                             .compute = from.has("compute_ns") ? from.time("compute_ns")
                                                               : job_time{0}}; // or an older file
    for (const auto& name : from.texts("kept"))
      replica.kept.push_back(
        {name, find(names_.next(fmt::format("replica_{}/{}", replica.replica, name)))});
    return replica;
  }

  std::vector<named_payload> read_backups(const std::vector<std::string>& names) {
    std::vector<named_payload> backups;
    for (const auto& name : names)
      backups.push_back({name, find(names_.next("backups/" + name))});
    return backups;
  }

  // The tensor is for other tools; a file that has it says the same there.
  void check_global_step() {
    const auto name = names_.next("global_step");
    auto found = tensors_.find(name);
    if (found == tensors_.end()) return;
    const auto& value = found->second;
    if (value.type() != dtype::i64 || value.extents() != shape{})
      throw unreadable{fmt::format("tensor '{}' is {} {}, but must be i64 []", name,
                                   to_string(value.type()), to_string(value.extents()))};
    if (auto there = value.values<int64_t>()[0]; there != static_cast<int64_t>(step_))
      throw unreadable{fmt::format("tensor '{}' is {}, but the metadata '{}' says step {}", name,
                                   there, job_key, step_)};
  }

private:
  tensor find(const std::string& name) {
    auto found = tensors_.find(name);
    if (found == tensors_.end()) throw unreadable{fmt::format("tensor '{}' is missing", name)};
    return found->second;
  }

  std::map<std::string, tensor> tensors_;
  tensor_names names_;
  std::set<uint64_t> replicas_;
  uint64_t step_;
};

job_snapshot read_job(const fields& job, const safetensors_content& content) {
  if (auto version = job.count("format"); version != format_version)
    throw unreadable{fmt::format("it has format {}, this version of Troupe reads format {}",
                                 version, format_version)};
  const auto step = job.count("step");
  job_snapshot snapshot{.step = step,
                        .time = job.time("time_ns"),
                        .seed = job.count("seed", std::numeric_limits<uint64_t>::max()),
                        .tokens = job.counts("tokens", step)};
  const auto variables = job.objects("variables");
  reader from{content, variables, step};
  for (const auto& variable : variables)
    snapshot.variables.push_back(from.read_variable(variable));
  for (const auto& replica : job.objects("replicas"))
    snapshot.replicas.push_back(from.read_replica(replica));
  if (job.has("backups")) // older files have none
    snapshot.backups = from.read_backups(job.texts("backups"));
  from.check_global_step();
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
  const auto parsed = json::parse(job->second, nullptr, false); // an error is no object
  try {
    return read_job({parsed, ""}, content);
  } catch (const unreadable& problem) {
    return fail(errc::malformed, problem.why);
  }
}

} // namespace troupe
