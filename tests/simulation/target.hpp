// SPDX-License-Identifier: Apache-2.0
// Holding simulated step times against numbers that theory gives.
#pragma once

#include "simulation/distributions/distribution.hpp"
#include "simulation/scenario.hpp"
#include "simulation/statistics.hpp"
#include "tests/doctest.hpp"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

/// Simulates in order to be held against a number.
struct target_run {
  sync_options sync;
  std::string compute;
  uint64_t steps = 1000;
  uint32_t dead = 0;
  uint64_t seed = 1;
  std::optional<simulation_engine> engine = {}; ///< As in `scenario`.

  /// Every step as the ledger has it.
  [[nodiscard]] std::vector<step_record> records() const {
    std::vector<step_record> result;
    scenario what{.sync = sync, .steps = steps, .seed = seed, .engine = engine};
    what.compute = distribution::parse(compute).value().times(seed);
    for (uint32_t i = 0; i < dead; ++i)
      what.dead_replicas.push_back(i);
    what.on_step = [&](const step_record& step) { result.push_back(step); };
    report = simulate(what);
    REQUIRE_FALSE(report.job.failure);
    return result;
  }

  /// Seconds of every step but the first twentieth, which depend on how the job began.
  [[nodiscard]] std::vector<double> step_seconds() const {
    std::vector<double> result;
    auto all = records();
    for (size_t i = all.size() / 20; i < all.size(); ++i)
      result.push_back(std::chrono::duration<double>(all[i].ended - all[i].began).count());
    return result;
  }

  mutable scenario_report report; ///< The last call's.
};

/// For each step the seconds from its beginning to the k-th gradient; [k - 1][step].
[[nodiscard]] inline std::vector<std::vector<double>>
arrivals_of(const std::vector<step_record>& steps) {
  std::vector<std::vector<double>> result(steps.front().needed);
  for (const auto& step : steps)
    for (size_t k = 0; k < result.size(); ++k)
      result[k].push_back(
        std::chrono::duration<double>(step.accepted[k].arrived - step.began).count());
  return result;
}

/// The mean is the expected one, within four standard errors: of the simulation, and of the
/// expected number where that was simulated itself.
inline void check_mean(const estimate& seen, double expected, double expected_error = 0) {
  auto error = std::hypot(seen.standard_error, expected_error);
  INFO(seen.mean, " +- ", seen.standard_error, ", expected ", expected, " +- ", expected_error);
  CHECK(std::abs(seen.mean - expected) <= 4 * error + 1e-6);
  // A target that anything would meet is none.
  CHECK(seen.standard_error < 0.1 * expected);
}

/// The share of values not above `value` is the expected one, within four standard errors.
inline void check_share(const std::vector<double>& values, double value, double expected) {
  double below = 0;
  for (double one : values)
    below += one <= value ? 1 : 0;
  auto count = static_cast<double>(values.size());
  auto error = std::sqrt(expected * (1 - expected) / count);
  auto share = below / count;
  INFO(share, " of ", count, " values are not above ", value);
  CHECK(std::abs(share - expected) <= 4 * error);
}

/// The k-th gradient of a step, and when it comes on average.
using kth_mean = std::pair<size_t, double>;

} // namespace troupe::test
