// SPDX-License-Identifier: Apache-2.0
// A text as TF_CONFIG: JSON, the cluster in it, our own task, every address. The cluster that is
// proposed in its place must be right.
#include "strategies/cluster/tf_config.hpp"

#include "messages/errors/assert.hpp"
#include "strategies/cluster/cluster_check.hpp"
#include "tests/fuzz/fuzz_target.hpp"

#include <algorithm>

namespace troupe::fuzz {

namespace {

declared_cluster declared(const tf_config& config) {
  return {.source = "TF_CONFIG",
          .syntax = cluster_syntax::tf_config,
          .spec = config.cluster,
          .task_type = config.task_type,
          .task_id = config.task_id};
}

} // namespace

bool accepts(std::span<const std::byte> input) {
  std::vector<cluster_finding> findings;
  auto config = read_tf_config(std::string{text_of(input)}, findings);
  auto is_read = std::ranges::none_of(findings, &cluster_finding::is_problem);
  auto checked = check_cluster(declared(config));
  auto example = example_text(checked.mended);
  findings.insert(findings.end(), checked.findings.begin(), checked.findings.end());
  auto line = problem_line("TF_CONFIG", findings, example);
  auto is_right = is_read && !checked.has_problem();
  TROUPE_ASSERT(line.empty() == is_right, line);
  auto again = check_cluster(checked.mended);
  TROUPE_ASSERT(!again.has_problem(), problem_line("mended", again.findings, example));
  return is_right;
}

} // namespace troupe::fuzz
