// SPDX-License-Identifier: Apache-2.0
// Counts of faults, and their observer.
#include "simulation/faults/fault_log.hpp"

#include <fmt/format.h>

namespace troupe {

void fault_log::tell(const char* event, const std::string& node) {
  ++counts_[fmt::format("fault {}", event)];
  if (on_fault)
    on_fault(
      {events_.now(), node.empty() ? std::string{event} : fmt::format("{} {}", event, node)});
}

} // namespace troupe
