// SPDX-License-Identifier: Apache-2.0
// A text as a cluster file in TOML, and as the value of --cluster. The cluster that is proposed in
// its place must be right.
#include "messages/errors/assert.hpp"
#include "strategies/cluster/cluster_check.hpp"
#include "strategies/cluster/cluster_file.hpp"
#include "strategies/cluster/cluster_flags.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace troupe::fuzz {

namespace {

bool is_right(const declared_cluster& cluster, std::vector<cluster_finding> findings) {
  auto checked = check_cluster(cluster);
  findings.insert(findings.end(), checked.findings.begin(), checked.findings.end());
  auto line = problem_line(cluster.source, findings, example_text(checked.mended));
  auto again = check_cluster(checked.mended);
  TROUPE_ASSERT(!again.has_problem(), line, problem_line("mended", again.findings, ""));
  return line.empty();
}

} // namespace

bool accepts(std::span<const std::byte> input) {
  auto text = text_of(input);
  std::vector<cluster_finding> of_flags;
  cluster_options options{.cluster = std::string{text}, .task = std::string{text.substr(0, 9)}};
  auto flags = declared_by_flags(options, of_flags);
  apply_task_flag(options, flags, of_flags);
  static_cast<void>(is_right(flags, of_flags));
  std::vector<cluster_finding> of_toml;
  auto toml = declared_by_toml(text, "file", of_toml);
  return is_right(toml, of_toml);
}

} // namespace troupe::fuzz
