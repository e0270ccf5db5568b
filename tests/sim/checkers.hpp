// SPDX-License-Identifier: Apache-2.0
// What must hold of every job, whatever went wrong in it.
#pragma once

#include "tests/sim/drawn_job.hpp"

#include <span>
#include <string>

namespace troupe::test {

/// One thing that must hold.
struct checker {
  const char* promise;
  /// What of the course breaks it; empty if nothing does.
  std::string (*complaint)(const evidence& course);
};

/// All of them.
[[nodiscard]] std::span<const checker> checkers();

/// The complaints about a course, a line each, after the job in a line; empty if all is well.
[[nodiscard]] std::string judge(const evidence& course);

} // namespace troupe::test
