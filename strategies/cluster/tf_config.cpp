// SPDX-License-Identifier: Apache-2.0
// Reads JSON that people typed into a shell.
#include "strategies/cluster/tf_config.hpp"

#include "actors/net/host_port.hpp"
#include "messages/mapped.hpp"
#include "messages/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace troupe {

namespace {

using tf_config_json = nlohmann::ordered_json;

std::string kind_of(const tf_config_json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) return "a text";
  if (value.is_number()) return "a number";
  return value.is_null() ? "null" : "true or false";
}

/// Reads one text; each value that it does not understand becomes a finding, and is left out.
class tf_config_reader {
public:
  explicit tf_config_reader(std::vector<cluster_finding>& findings) : findings_(findings) {}

  tf_config read(const std::string& text) {
    tf_config config;
    auto all = parse(text);
    if (!all) return config;
    if (!all->is_object()) {
      problem("it must be an object, not {}", kind_of(*all));
      return config;
    }
    if (all->contains("cluster")) config.cluster = read_cluster(all->at("cluster"));
    check_other_keys(*all);
    if (all->contains("task")) read_task(all->at("task"), config);
    config.rpc_layer = text_at(*all, "rpc_layer");
    config.session_master = text_at(*all, "session_master");
    config.environment = text_at(*all, "environment").value_or("");
    return config;
  }

private:
  template <class... Arguments>
  void problem(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    findings_.push_back(
      {cluster_finding::severity::problem,
       {errc::malformed, fmt::format(format, std::forward<Arguments>(arguments)...)}});
  }

  std::optional<tf_config_json> parse(const std::string& text) {
    try {
      return parse_strictly(text);
    } catch (const tf_config_json::parse_error& failed) {
      auto mended = text;
      std::ranges::replace(mended, '\'', '"');
      if (mended != text && tf_config_json::accept(mended)) {
        problem("it is not JSON: texts stand in double quotes, not in single ones");
        return parse_strictly(mended);
      }
      auto place = std::min(failed.byte > 0 ? failed.byte - 1 : 0, text.size());
      problem("it is not JSON from letter {} on, '{}'{}", place + 1, text.substr(place, 16),
              text.find('"') == std::string::npos ? "; did the shell take the double quotes away?"
                                                  : "");
      return std::nullopt;
    } catch (const tf_config_json::out_of_range&) {
      problem("it holds a number that is too large");
      return std::nullopt;
    }
  }

  // JSON's parser keeps the last of two equal keys and says nothing: a task would be lost.
  tf_config_json parse_strictly(const std::string& text) {
    std::vector<std::set<std::string>> keys;
    return tf_config_json::parse(
      text, [&](int, tf_config_json::parse_event_t event, tf_config_json& value) {
        if (event == tf_config_json::parse_event_t::object_start) keys.emplace_back();
        if (event == tf_config_json::parse_event_t::object_end) keys.pop_back();
        if (event == tf_config_json::parse_event_t::key
            && !keys.back().insert(value.get<std::string>()).second)
          problem("the key '{}' stands twice in the same place", value.get<std::string>());
        return true;
      });
  }

  // A misspelt "cluster" would make every process a job of its own.
  void check_other_keys(const tf_config_json& all) {
    if (all.contains("cluster")) return;
    for (const auto& [key, value] : all.items())
      if (key.find("luster") != std::string::npos) problem("the key '{}' must be 'cluster'", key);
  }

  cluster_spec read_cluster(const tf_config_json& value) {
    cluster_spec cluster;
    if (!value.is_object()) {
      problem("'cluster' must be an object with a list of addresses for each job, not {}",
              kind_of(value));
      return cluster;
    }
    for (const auto& [job, tasks] : value.items())
      cluster.set_job(job, read_job(job, tasks));
    return cluster;
  }

  job_addresses read_job(const std::string& job, const tf_config_json& value) {
    if (value.is_object()) return read_tasks(job, value);
    if (value.is_array())
      return mapped(value, [&](const auto& address) { return read_address(job, address); });
    std::vector<std::string> addresses;
    problem("'{}' must be a list of addresses, not {}", job, kind_of(value));
    if (value.is_string()) {
      auto rest = value.get<std::string>();
      while (!rest.empty()) {
        addresses.push_back(rest.substr(0, rest.find(',')));
        rest.erase(0, addresses.back().size() + 1);
      }
    }
    return addresses;
  }

  job_addresses read_tasks(const std::string& job, const tf_config_json& value) {
    task_addresses tasks;
    for (const auto& [key, address] : value.items()) {
      auto index = parse_count(key, task_index_max);
      if (!index) {
        problem("'{}' has a task '{}', but tasks are whole numbers from 0 on", job, key);
      } else if (!tasks.emplace(*index, read_address(job, address)).second) {
        problem("'{}' has task {} twice", job, *index);
      }
    }
    return tasks;
  }

  std::string read_address(const std::string& job, const tf_config_json& value) {
    if (value.is_string()) return value.get<std::string>();
    problem("an address of '{}' must be a text such as \"host:2222\", not {}", job, kind_of(value));
    return {};
  }

  void read_task(const tf_config_json& task, tf_config& config) {
    if (!task.is_object()) {
      problem(R"('task' must be an object such as {{"type": "worker", "index": 0}}, not {})",
              kind_of(task));
      return;
    }
    if (task.contains("type")) config.task_type = read_type(task.at("type"));
    if (task.contains("index")) config.task_id = read_index(task.at("index"));
  }

  std::optional<std::string> read_type(const tf_config_json& type) {
    if (type.is_string()) return type.get<std::string>();
    if (type.is_number()) return type.dump();
    problem("the task's 'type' must be a text, not {}", kind_of(type));
    return std::nullopt;
  }

  std::optional<int64_t> read_index(const tf_config_json& index) {
    auto fits = !index.is_number_unsigned() || std::in_range<int64_t>(index.get<uint64_t>());
    if (index.is_number_integer() && fits) return index.get<int64_t>();
    if (index.is_string())
      if (auto number = number_of<int64_t>(index.get<std::string>())) return number;
    problem("the task's 'index' must be a whole number, not {}", index.dump());
    return std::nullopt;
  }

  std::optional<std::string> text_at(const tf_config_json& all, const std::string& key) {
    if (!all.contains(key) || all.at(key).is_null()) return std::nullopt;
    if (all.at(key).is_string()) return all.at(key).get<std::string>();
    problem("'{}' must be a text, not {}", key, kind_of(all.at(key)));
    return std::nullopt;
  }

  std::vector<cluster_finding>& findings_;
};

} // namespace

tf_config read_tf_config(const std::string& text, std::vector<cluster_finding>& findings) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return {};
  return tf_config_reader{findings}.read(text);
}

} // namespace troupe
