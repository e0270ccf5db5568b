// SPDX-License-Identifier: Apache-2.0
// The promises that every job must keep, whatever goes wrong in it.
#pragma once

#include "tests/sim/drawn_job.hpp"

#include <span>
#include <string>

namespace troupe::test {

/// One thing that must hold.
struct checker {
  const char* promise;
  /// How the course breaks the promise; empty if it does not.
  std::string (*complaint)(const evidence& course);
};

/// All of them.
[[nodiscard]] std::span<const checker> checkers();

/// The complaints about a course, a line each, after the job in a line; empty if all is well.
[[nodiscard]] std::string judge(const evidence& course);

} // namespace troupe::test
