// SPDX-License-Identifier: Apache-2.0
// The variable TF_CONFIG, taken apart.
#pragma once

#include "strategies/cluster/declared_cluster.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The content of TF_CONFIG: `{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker",
/// "index": 0}}`, and three keys that are hardly ever used.
struct tf_config {
  cluster_spec cluster;
  std::optional<std::string> task_type; ///< A number stands for its digits.
  std::optional<int64_t> task_id;       ///< May be a text, too: "1".
  std::optional<std::string> rpc_layer;
  std::optional<std::string> session_master;
  std::string environment;
};

/// Reads as much as can be read.
/// @param text The variable's value; blank stands for `{}`.
/// @param findings Gets one for everything that is not as it must be: no JSON (single quotes are
/// read nevertheless), a key twice, a job that is no list, an index that is no number. Whether
/// names, indices and addresses make sense is `check_cluster`'s business.
[[nodiscard]] tf_config read_tf_config(const std::string& text,
                                       std::vector<cluster_finding>& findings);

} // namespace troupe
