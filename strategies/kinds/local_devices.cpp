// SPDX-License-Identifier: Apache-2.0
// Lists the GPUs that this process may use.
#include "strategies/kinds/local_devices.hpp"

#include "strategies/cluster/resolvers/slurm_resolver.hpp"

#include <fmt/format.h>

namespace troupe {

std::vector<std::string> local_devices(const environment_reader& environment) {
  std::vector<std::string> devices;
  for (uint64_t gpu = 0; gpu < visible_gpus(environment); ++gpu)
    devices.push_back(fmt::format("gpu:{}", gpu));
  if (devices.empty()) devices.emplace_back("cpu:0");
  return devices;
}

} // namespace troupe
