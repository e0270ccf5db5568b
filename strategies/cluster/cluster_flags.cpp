// SPDX-License-Identifier: Apache-2.0
// Splits options at ';', '=' and ','.
#include "strategies/cluster/cluster_flags.hpp"

#include "actors/net/host_port.hpp"
#include "messages/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

// The parts between commas, or whatever separates them; an empty one at the end is none.
std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    auto end = std::min(text.find(separator), text.size());
    parts.emplace_back(trimmed(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// Both sides of the first '=', trimmed; without one the right side is empty.
std::pair<std::string, std::string> sides_of(std::string_view part) {
  auto sign = std::min(part.find('='), part.size());
  auto right = part.substr(std::min(sign + 1, part.size()));
  return {std::string{trimmed(part.substr(0, sign))}, std::string{trimmed(right)}};
}

cluster_finding problem(std::string sentence) {
  return {cluster_finding::severity::problem, {errc::invalid_argument, std::move(sentence)}};
}

} // namespace

std::optional<std::map<std::string, uint64_t>> counted_by_flags(const cluster_options& options) {
  std::map<std::string, uint64_t> counts;
  for (const auto& part : split(options.cluster, ';')) {
    if (part.empty()) continue;
    auto [job, number] = sides_of(part);
    auto count = parse_count(number, task_index_max);
    if (!count || !counts.emplace(job, *count).second) return std::nullopt;
  }
  if (counts.empty()) return std::nullopt;
  return counts;
}

std::map<std::string, std::vector<std::string>>
selectors_by_flags(const cluster_options& options, std::vector<cluster_finding>& findings) {
  std::map<std::string, std::vector<std::string>> selectors;
  for (const auto& part : split(options.kubernetes, ';')) {
    if (part.empty()) continue;
    auto [job, selector] = sides_of(part);
    if (job.empty() || selector.empty())
      findings.push_back(
        problem(fmt::format("'{}' is not JOB=SELECTOR, as in worker=app=troupe-worker", part)));
    else if (!selectors.emplace(job, std::vector{selector}).second)
      findings.push_back(problem(
        fmt::format("'{}' stands twice; one selector can mean several: worker=app in (a,b)", job)));
  }
  if (selectors.empty() && findings.empty()) findings.push_back(problem("it names no job"));
  return selectors;
}

declared_cluster declared_by_flags(const cluster_options& options,
                                   std::vector<cluster_finding>& findings) {
  declared_cluster cluster{.source = "--cluster", .syntax = cluster_syntax::flags};
  for (const auto& part : split(options.cluster, ';')) {
    if (part.empty()) continue;
    auto [job, list] = sides_of(part);
    if (part.find('=') == std::string::npos || job.empty()) {
      findings.push_back(problem(fmt::format("'{}' is not JOB=HOST:PORT,HOST:PORT", part)));
      continue;
    }
    auto addresses = split(list, ',');
    if (addresses.empty()) {
      findings.push_back(problem(fmt::format("'{}' has no task", job)));
      continue;
    }
    if (cluster.spec.has_job(job)) {
      findings.push_back(
        problem(fmt::format("'{}' stands twice; its addresses go behind one another, with commas "
                            "between",
                            job)));
      for (const auto& [index, address] : cluster.spec.tasks(job))
        addresses.insert(addresses.begin() + static_cast<ptrdiff_t>(index), address);
    }
    cluster.spec.set_job(job, addresses);
  }
  if (cluster.spec.empty() && findings.empty()) findings.push_back(problem("it names no job"));
  return cluster;
}

void apply_task_flag(const cluster_options& options, declared_cluster& cluster,
                     std::vector<cluster_finding>& findings) {
  if (options.task.empty()) return;
  auto colon = options.task.find(':');
  cluster.task_type = options.task.substr(0, colon);
  cluster.task_id = 0;
  if (colon == std::string::npos) {
    if (cluster.spec.task_count(options.task) > 1)
      findings.push_back(problem(fmt::format(
        "--task {0} does not say which {0}: write {0}:0 or another index", options.task)));
    return;
  }
  auto index = parse_count(std::string_view{options.task}.substr(colon + 1), task_index_max);
  if (index)
    cluster.task_id = static_cast<int64_t>(*index);
  else
    findings.push_back(
      problem(fmt::format("--task {} is not TYPE:INDEX, as in worker:1", options.task)));
}

} // namespace troupe
