// SPDX-License-Identifier: Apache-2.0
// Checks of the description of a cluster, and how to mend it.
#pragma once

#include "strategies/cluster/declared_cluster.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A description of a cluster, with all findings about it.
struct checked_cluster {
  /// Every finding mended, by guesses where there is a choice; as declared if nothing was found.
  declared_cluster mended;
  std::vector<cluster_finding> findings;
  /// How to say the same without what notes are about, if there is no problem.
  std::optional<declared_cluster> clearer;

  [[nodiscard]] bool has_problem() const;
};

/// Looks at jobs and at the own task: task types there are not, with what was probably meant
/// (`ps_hosts`, `master`), more than one chief or evaluator, no own task, or one that is not in the
/// cluster. An evaluator need not be in it. Each finding is of code invalid_argument.
/// Source: TensorFlow, `multi_worker_util._validate_cluster_spec`.
[[nodiscard]] checked_cluster check_tasks(declared_cluster cluster);

/// Looks at all of it: the same, and whether some task is the chief, and each address is one that
/// others can dial and no other task's.
[[nodiscard]] checked_cluster check_cluster(declared_cluster cluster);

/// All problems and the mended cluster in one line, for an exception; notes are left out. Empty if
/// there is no problem.
[[nodiscard]] std::string problem_line(const std::string& source,
                                       const std::vector<cluster_finding>& findings,
                                       const std::string& example);

} // namespace troupe
