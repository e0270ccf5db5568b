// SPDX-License-Identifier: Apache-2.0
// The cluster that TF_CONFIG describes.
#pragma once

#include "strategies/cluster/cluster_resolver.hpp"
#include "strategies/cluster/environment.hpp"
#include "strategies/cluster/tf_config.hpp"

#include <optional>
#include <string>

namespace troupe {

/// Reads TF_CONFIG anew on every call. Values that were set win over those of the variable.
/// `master` gives `session_master` as it stands if there is one; nothing if there are no jobs, or
/// one job with one task; else the address of the task asked for.
/// Errors: throws `failure`: malformed, in a line that holds a mended example. Names and indices
/// are not checked here: `resolve` does. Source: TensorFlow, `TFConfigClusterResolver`.
class tf_config_resolver final : public cluster_resolver {
public:
  /// @param environment The process's variables, with TF_CONFIG. @param own Wins over TF_CONFIG.
  /// @param own_environment Wins over TF_CONFIG as the answer of `cluster_resolver::environment`.
  explicit tf_config_resolver(environment_reader environment = process_environment(),
                              task_query own = {}, std::optional<std::string> own_environment = {});

  using cluster_resolver::master;

  [[nodiscard]] troupe::cluster_spec cluster_spec() const override;
  [[nodiscard]] std::string master(const task_query& query) const override;
  [[nodiscard]] std::optional<std::string> task_type() const override;
  [[nodiscard]] std::optional<uint64_t> task_id() const override;
  [[nodiscard]] std::optional<std::string> rpc_layer() const override;
  [[nodiscard]] std::string environment() const override;

private:
  [[nodiscard]] tf_config read() const;

  environment_reader environment_;
  std::optional<std::string> own_environment_;
};

/// The cluster as TF_CONFIG declares it; no jobs if the variable is not set.
/// @param findings Gets what `read_tf_config` finds.
[[nodiscard]] declared_cluster declared_by_tf_config(const environment_reader& environment,
                                                     std::vector<cluster_finding>& findings);

} // namespace troupe
