// SPDX-License-Identifier: Apache-2.0
// A cluster as it was described, not yet checked.
#pragma once

#include "strategies/cluster/cluster_spec.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

/// How the description of a cluster is spelled, so that a mended one can be shown in the same way.
enum class cluster_syntax : uint8_t {
  launcher,  ///< In variables of a launcher, which are not written by hand.
  flags,     ///< --cluster "chief=a:1;worker=b:1" --task worker:0
  tf_config, ///< TF_CONFIG='{"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}}'
  toml,      ///< A file with the tables [cluster] and [task].
};

/// A cluster and which of its tasks this process is.
struct declared_cluster {
  std::string source; ///< Where it was described: "TF_CONFIG", "Slurm", "--cluster", a file.
  cluster_syntax syntax = cluster_syntax::launcher;
  cluster_spec spec;
  std::optional<std::string> task_type;
  std::optional<int64_t> task_id;
  /// Workers without an address are no mistake: they dial the others, and are not dialed.
  bool addresses_may_be_empty = false;
};

/// A fact about a described cluster that a person should know.
struct cluster_finding {
  enum class severity : uint8_t {
    note,    ///< It works; it may not be what was meant.
    problem, ///< Nothing can be started.
  };
  severity weight = severity::problem;
  error reason; ///< One sentence, without the source's name.

  [[nodiscard]] bool is_problem() const { return weight == severity::problem; }

  bool operator==(const cluster_finding&) const = default;
};

/// The cluster in the syntax of its source, as one would type it; of a large one only the first
/// tasks of each job, and where there is none some cluster. Empty for launchers.
[[nodiscard]] std::string example_text(const declared_cluster& cluster);

} // namespace troupe
