// SPDX-License-Identifier: Apache-2.0
// The lines of replicas.csv.
#include "actors/recording/replica_table.hpp"

#include "actors/recording/csv.hpp"
#include "actors/recording/output_file.hpp"

namespace troupe {

expected<void> write_replica_table(const std::filesystem::path& path, const summary& run) {
  auto lines
    = record_writer::create(path, "replica,accepted,stale,cancelled,worst_staleness,used_seconds,"
                                  "wasted_seconds,waiting_seconds,held_up_seconds\n");
  if (!lines) return tl::unexpected(lines.error());
  for (const auto& [number, replica] : run.replicas()) {
    auto done = lines->append(csv::line(
      {std::to_string(number), std::to_string(replica.accepted), std::to_string(replica.stale),
       std::to_string(replica.cancelled), std::to_string(replica.staleness_max),
       csv::seconds(replica.compute - replica.wasted), csv::seconds(replica.wasted),
       csv::seconds(replica.waiting), csv::seconds(replica.held_up)}));
    if (!done) return done;
  }
  return lines->flush();
}

} // namespace troupe
