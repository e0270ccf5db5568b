// SPDX-License-Identifier: Apache-2.0
// Which options go together.
#include "strategies/data/input_options.hpp"

#include "messages/failure.hpp"

namespace troupe {

void check(const input_options& options) {
  if (!options.place_dataset_on_device) return;
  if (options.replication_mode != input_replication_mode::per_replica) {
    throw failure{error{errc::invalid_argument,
                        "input_options: place_dataset_on_device needs the replication mode "
                        "per_replica"}};
  }
  if (options.fetch_to_device) {
    throw failure{error{errc::invalid_argument,
                        "input_options: place_dataset_on_device leaves nothing to fetch: set "
                        "fetch_to_device to false"}};
  }
}

} // namespace troupe
