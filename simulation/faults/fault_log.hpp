// SPDX-License-Identifier: Apache-2.0
// The faults that have happened.
#pragma once

#include "simulation/network/timed_events.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace troupe {

/// A fault that has just begun, or ended, for observers.
struct fault_event {
  job_time time{0};
  std::string what; ///< "crash replica 3", "restart replica 3", "partition", "heal".
};

/// Tells an observer of faults as they begin and end, and counts them.
class fault_log {
public:
  /// @param events Outlives this.
  explicit fault_log(const timed_events& events) : events_(events) {}

  std::function<void(const fault_event&)> on_fault; ///< May be empty.

  /// A fault begins or ends now. @param node The name of its node; empty if the event names none.
  void tell(const char* event, const std::string& node = {});

  /// How often each event has happened: "fault crash", "fault thaw".
  [[nodiscard]] const std::map<std::string, uint64_t>& counts() const { return counts_; }

private:
  const timed_events& events_;
  std::map<std::string, uint64_t> counts_;
};

} // namespace troupe
