// SPDX-License-Identifier: Apache-2.0
// Refuses options that do not go together.
#include "strategies/data/input_options.hpp"

#include "messages/errors/throw_failure.hpp"

namespace troupe {

void check(const input_options& options) {
  if (!options.place_dataset_on_device) return;
  require(options.replication_mode == input_replication_mode::per_replica,
          "input_options: place_dataset_on_device needs the replication mode per_replica");
  require(!options.fetch_to_device,
          "input_options: place_dataset_on_device leaves nothing to fetch: set fetch_to_device to "
          "false");
}

} // namespace troupe
