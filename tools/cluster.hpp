// SPDX-License-Identifier: Apache-2.0
// The command `troupe cluster`, which shows the cluster that a job started here would be part of.
#pragma once

#include "strategies/cluster/environment.hpp"
#include "strategies/cluster/listening_card.hpp"
#include "strategies/cluster/resolved_cluster.hpp"
#include "tools/options/cluster_arguments.hpp"

#include <string>

namespace troupe {

/// The arguments of `troupe cluster`, as parsed.
struct cluster_command {
  cluster_options options;
  bool json = false;
  std::string answer; ///< A text to print instead; empty: none.
};

/// Reads the command line. @param arguments `arguments[0]` is "cluster".
/// Errors: invalid_argument, in a line that names the culprit.
[[nodiscard]] expected<cluster_command> parse_cluster_options(int argument_count,
                                                              const char* const* arguments);

/// The cluster, and the network card that this process would use in it.
struct cluster_report {
  resolved_cluster cluster;
  std::string wanted_card; ///< The card that the user names, as `wanted_card` finds it.
  /// The card that this process would listen on; nothing if it is alone, or if no task dials it.
  /// Its error counts as a problem if the user names a card.
  std::optional<expected<network_card>> card;
  std::string card_note; ///< As `listening_note` says.

  [[nodiscard]] bool has_problem() const;
};

/// Resolves the cluster and chooses the card, as a `server` does.
[[nodiscard]] cluster_report report_cluster(const cluster_options& options,
                                            const environment_reader& environment,
                                            const machine_networks& machine);

/// The report for people, and as one JSON object.
[[nodiscard]] std::string cluster_text(const cluster_report& report);
[[nodiscard]] std::string cluster_json(const cluster_report& report);

/// Runs the command; `arguments[0]` is "cluster". @returns 0, or 2 if there is something to mend.
int cluster_command_main(int argument_count, const char* const* arguments);

} // namespace troupe
