// SPDX-License-Identifier: Apache-2.0
// A cluster that the program knows itself.
#pragma once

#include "strategies/cluster/cluster_resolver.hpp"

#include <map>
#include <string>

namespace troupe {

/// All that a `simple_resolver` says.
struct simple_resolver_options {
  std::string master; ///< The answer if a query does not name a task by type and id.
  task_query own;
  std::string environment;
  std::map<std::string, uint64_t> num_accelerators; ///< The same for every task.
};

/// Says what it was told. Source: TensorFlow, `SimpleClusterResolver`.
class simple_resolver final : public cluster_resolver {
public:
  explicit simple_resolver(troupe::cluster_spec cluster, simple_resolver_options options = {});

  using cluster_resolver::master;
  using cluster_resolver::num_accelerators;

  [[nodiscard]] troupe::cluster_spec cluster_spec() const override { return cluster_; }

  /// The address of the task if the query says both its type and its id, which are not those of the
  /// own task; else the master that was given.
  [[nodiscard]] std::string master(const task_query& query) const override;

  [[nodiscard]] std::map<std::string, uint64_t>
  num_accelerators(const task_query& query) const override;

  [[nodiscard]] std::string environment() const override { return environment_; }

private:
  troupe::cluster_spec cluster_;
  std::string master_;
  std::string environment_;
  std::map<std::string, uint64_t> accelerators_;
};

} // namespace troupe
