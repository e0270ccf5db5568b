// SPDX-License-Identifier: Apache-2.0
// Answers from the values that it was given.
#include "strategies/cluster/resolvers/simple_resolver.hpp"

namespace troupe {

simple_resolver::simple_resolver(troupe::cluster_spec cluster, simple_resolver_options options)
  : cluster_resolver(std::move(options.own)), cluster_(std::move(cluster)),
    master_(std::move(options.master)), environment_(std::move(options.environment)),
    accelerators_(std::move(options.num_accelerators)) {}

std::string simple_resolver::master(const task_query& query) const {
  if (query.task_type && query.task_id) return address_of(query);
  if (master_.empty()) return {};
  return format_master_url(master_, query.rpc_layer ? query.rpc_layer : rpc_layer());
}

std::map<std::string, uint64_t> simple_resolver::num_accelerators(const task_query&) const {
  return accelerators_;
}

} // namespace troupe
