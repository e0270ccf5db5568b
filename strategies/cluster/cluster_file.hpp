// SPDX-License-Identifier: Apache-2.0
// A cluster in a TOML file.
#pragma once

#include "strategies/cluster/cluster_resolver.hpp"
#include "strategies/cluster/declared_cluster.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Reads the cluster from a file: `[cluster]` lists the addresses of each job, and `[task]` has
/// `type` and `index`, which may be left out where the command line says them.
///
///     [cluster]
///     chief = ["node0:2222"]
///     worker = ["node1:2222", "node2:2222"]     # or {1 = "node1:2222"}
///     [task]
///     type = "worker"
///     index = 1
///
/// @param findings Gets one, with its line, for each entry that is otherwise.
[[nodiscard]] declared_cluster declared_by_file(const std::string& path,
                                                std::vector<cluster_finding>& findings);

/// The same for a text; `path` is only named.
[[nodiscard]] declared_cluster declared_by_toml(std::string_view toml, const std::string& path,
                                                std::vector<cluster_finding>& findings);

/// The file as a resolver; it is read anew on every call. Values that were set (`own`,
/// `set_task_type` and so on) win over those of the file.
/// Errors: throws `failure`: malformed with all that is wrong in the file.
class toml_resolver final : public cluster_resolver {
public:
  explicit toml_resolver(std::string path, task_query own = {})
    : cluster_resolver(std::move(own)), path_(std::move(path)) {}

  [[nodiscard]] troupe::cluster_spec cluster_spec() const override;

private:
  [[nodiscard]] task_query found_task() const override;
  [[nodiscard]] declared_cluster read() const;

  std::string path_;
};

} // namespace troupe
