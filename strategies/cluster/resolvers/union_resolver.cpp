// SPDX-License-Identifier: Apache-2.0
// Joins the jobs of several clusters.
#include "strategies/cluster/resolvers/union_resolver.hpp"

#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"

#include <algorithm>

namespace troupe {

namespace {

bool is_list(const troupe::cluster_spec& cluster, const std::string& job) {
  return std::holds_alternative<std::vector<std::string>>(cluster.addresses(job));
}

// Adds the tasks of a job to those of another cluster.
void join(troupe::cluster_spec& all, const troupe::cluster_spec& part, const std::string& job,
          bool as_lists) {
  auto tasks = all.has_job(job) ? all.tasks(job) : task_addresses{};
  auto first = as_lists ? tasks.size() : 0;
  for (const auto& [index, address] : part.tasks(job)) {
    if (!tasks.emplace(first + index, address).second)
      throw_failure(errc::invalid_argument, "union_resolver: two clusters have a {} {}: {} and {}",
                    job, index, tasks.at(index), address);
  }
  all.set_job(job, tasks);
}

} // namespace

union_resolver::union_resolver(std::vector<std::shared_ptr<const cluster_resolver>> resolvers,
                               task_query own)
  : cluster_resolver(std::move(own)), resolvers_(std::move(resolvers)) {
  require(!resolvers_.empty(), "union_resolver: give at least one resolver");
  require(std::ranges::count(resolvers_, nullptr) == 0,
          "union_resolver: one of the resolvers is null");
}

troupe::cluster_spec union_resolver::cluster_spec() const {
  auto parts = mapped(resolvers_, [](const auto& resolver) { return resolver->cluster_spec(); });
  auto is_list_everywhere = [&](const std::string& job) {
    return std::ranges::all_of(
      parts, [&](const auto& part) { return !part.has_job(job) || is_list(part, job); });
  };
  troupe::cluster_spec all;
  for (const auto& part : parts)
    for (const auto& job : part.jobs())
      join(all, part, job, is_list_everywhere(job));
  return all;
}

std::string union_resolver::master(const task_query& query) const {
  if (query.task_type && query.task_id) return address_of(query);
  return first().master(query);
}

std::map<std::string, uint64_t> union_resolver::num_accelerators(const task_query& query) const {
  return first().num_accelerators(query);
}

std::optional<std::string> union_resolver::task_type() const {
  return own().task_type.value_or("").empty() ? first().task_type() : own().task_type;
}

std::optional<uint64_t> union_resolver::task_id() const {
  return own().task_id.value_or(0) == 0 ? first().task_id() : own().task_id;
}

std::optional<std::string> union_resolver::rpc_layer() const {
  return own().rpc_layer.value_or("").empty() ? first().rpc_layer() : own().rpc_layer;
}

std::string union_resolver::environment() const {
  return first().environment();
}

} // namespace troupe
