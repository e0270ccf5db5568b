// SPDX-License-Identifier: Apache-2.0
// Reads [cluster] and [task], where a slip of the pen is an error and not a default.
#include "strategies/cluster/cluster_file.hpp"

#include "actors/net/host_port.hpp"
#include "actors/recording/input_file.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "strategies/cluster/cluster_check.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

namespace troupe {

namespace {

constexpr uint64_t file_bytes_max = uint64_t{1} << 20;

/// Reads one file; each entry that it does not understand becomes a finding, and is left out.
class cluster_file_reader {
public:
  cluster_file_reader(const std::string& path, std::vector<cluster_finding>& findings)
    : findings_(findings) {
    cluster_.source = path;
    cluster_.syntax = cluster_syntax::toml;
  }

  declared_cluster read(const toml::table& all) {
    for (const auto& [key, value] : all) {
      const auto* table = value.as_table();
      if (key.str() != "cluster" && key.str() != "task")
        problem(value, "'{}' is unknown: there are the tables [cluster] and [task]", key.str());
      else if (table == nullptr)
        problem(value, "[{}] must be a table", key.str());
      else if (key.str() == "cluster")
        read_jobs(*table);
      else
        read_task(*table);
    }
    if (all.get("cluster") == nullptr) problem(all, "there is no table [cluster]");
    return cluster_;
  }

private:
  template <class... Arguments>
  void problem(const toml::node& where, fmt::format_string<Arguments...> format,
               Arguments&&... arguments) {
    findings_.push_back(
      {cluster_finding::severity::problem,
       {errc::malformed, fmt::format("line {}: {}", where.source().begin.line,
                                     fmt::format(format, std::forward<Arguments>(arguments)...))}});
  }

  void read_jobs(const toml::table& jobs) {
    for (const auto& [job, tasks] : jobs) {
      auto name = std::string{job.str()};
      if (const auto* list = tasks.as_array()) {
        auto addresses
          = mapped(*list, [&](const auto& address) { return read_address(name, address); });
        cluster_.spec.set_job(name, addresses);
      } else if (const auto* table = tasks.as_table()) {
        cluster_.spec.set_job(name, read_tasks(name, *table));
      } else {
        problem(tasks, "{0} must be a list, as in {0} = [\"node1:2222\"]", name);
        cluster_.spec.set_job(name, std::vector<std::string>{read_address(name, tasks)});
      }
    }
  }

  task_addresses read_tasks(const std::string& job, const toml::table& table) {
    task_addresses tasks;
    for (const auto& [key, address] : table) {
      auto index = parse_count(key.str(), task_index_max);
      if (!index)
        problem(address, "{} has a task '{}', but tasks are whole numbers from 0 on", job,
                key.str());
      else if (!tasks.emplace(*index, read_address(job, address)).second)
        problem(address, "{} has task {} twice", job, *index);
    }
    return tasks;
  }

  std::string read_address(const std::string& job, const toml::node& node) {
    if (const auto* text = node.as_string()) return text->get();
    problem(node, "an address of {} must be a text such as \"node1:2222\"", job);
    return {};
  }

  void read_task(const toml::table& task) {
    for (const auto& [key, value] : task) {
      if (key.str() == "type" && value.is_string())
        cluster_.task_type = value.as_string()->get();
      else if (key.str() == "index" && value.is_integer())
        cluster_.task_id = value.as_integer()->get();
      else if (key.str() == "type" || key.str() == "index")
        problem(value, "[task] needs type = \"worker\" and index = 1, a text and a whole number");
      else
        problem(value, "'{}' is unknown: [task] has type and index", key.str());
    }
  }

  declared_cluster cluster_;
  std::vector<cluster_finding>& findings_;
};

expected<std::string> content_of(const std::string& path) {
  auto file = input_file::open(path);
  if (!file) return tl::unexpected<error>(file.error());
  if (file->bytes() > file_bytes_max)
    return fail(errc::limit_exceeded, fmt::format("{} is longer than 1 MiB", path));
  return file->text();
}

declared_cluster unreadable(const std::string& path, error reason,
                            std::vector<cluster_finding>& findings) {
  findings.push_back({cluster_finding::severity::problem, std::move(reason)});
  return {.source = path, .syntax = cluster_syntax::toml};
}

} // namespace

declared_cluster declared_by_file(const std::string& path, std::vector<cluster_finding>& findings) {
  auto text = content_of(path);
  if (!text) return unreadable(path, text.error(), findings);
  return declared_by_toml(*text, path, findings);
}

declared_cluster declared_by_toml(std::string_view toml, const std::string& path,
                                  std::vector<cluster_finding>& findings) {
  try {
    const toml::table all = toml::parse(toml, path);
    return cluster_file_reader{path, findings}.read(all);
  } catch (const toml::parse_error& failed) {
    return unreadable(path,
                      {errc::malformed, fmt::format("line {}: {}", failed.source().begin.line,
                                                    failed.description())},
                      findings);
  }
}

troupe::cluster_spec toml_resolver::cluster_spec() const {
  return read().spec;
}

task_query toml_resolver::found_task() const {
  auto declared = read();
  task_query own{.task_type = std::move(declared.task_type)};
  if (declared.task_id && *declared.task_id >= 0)
    own.task_id = static_cast<uint64_t>(*declared.task_id);
  return own;
}

declared_cluster toml_resolver::read() const {
  std::vector<cluster_finding> findings;
  auto declared = declared_by_file(path_, findings);
  if (findings.empty()) return declared;
  throw_failure(findings.front().reason.code, "{}",
                problem_line(path_, findings, example_text(check_cluster(declared).mended)));
}

} // namespace troupe
