// SPDX-License-Identifier: Apache-2.0
// Several clusters as one.
#pragma once

#include "strategies/cluster/cluster_resolver.hpp"

#include <memory>
#include <vector>

namespace troupe {

/// Joins the clusters of several resolvers. If all have a job as a list, their lists follow one
/// another; if one of them has it by index, tasks keep their indices. Everything else is what the
/// first resolver says. Source: TensorFlow, `UnionClusterResolver`.
class union_resolver final : public cluster_resolver {
public:
  /// @param own Beats what the first resolver says; as in the original a task id of 0 and an empty
  /// text do not. Errors: throws `failure`: invalid_argument without a resolver, or for a null one.
  explicit union_resolver(std::vector<std::shared_ptr<const cluster_resolver>> resolvers,
                          task_query own = {});

  using cluster_resolver::master;
  using cluster_resolver::num_accelerators;

  /// Errors: throws `failure`: invalid_argument if two tasks of a job have the same index.
  [[nodiscard]] troupe::cluster_spec cluster_spec() const override;

  /// The address of the task if the query says both its type and its id; else the first resolver's
  /// master.
  [[nodiscard]] std::string master(const task_query& query) const override;

  [[nodiscard]] std::map<std::string, uint64_t>
  num_accelerators(const task_query& query) const override;

  [[nodiscard]] std::optional<std::string> task_type() const override;
  [[nodiscard]] std::optional<uint64_t> task_id() const override;
  [[nodiscard]] std::optional<std::string> rpc_layer() const override;
  [[nodiscard]] std::string environment() const override;

private:
  [[nodiscard]] const cluster_resolver& first() const { return *resolvers_.front(); }

  std::vector<std::shared_ptr<const cluster_resolver>> resolvers_;
};

} // namespace troupe
