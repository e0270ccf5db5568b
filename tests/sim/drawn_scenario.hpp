// SPDX-License-Identifier: Apache-2.0
// A job that both engines can simulate, drawn by a seed, and what they make of it.
#pragma once

#include "simulation/scenario.hpp"

#include <cstdint>
#include <string>

namespace troupe::test {

/// A small job of any policy and options, without network, faults and learning; among its times are
/// some under which many computations end at one moment.
[[nodiscard]] scenario draw_scenario(uint64_t seed);

/// Its options, in one line.
[[nodiscard]] std::string describe(const scenario& drawn);

/// The course of a job, as one engine simulates it.
struct engine_course {
  scenario_report report;
  std::vector<step_record> steps;
};

[[nodiscard]] engine_course run_by(simulation_engine engine, scenario what);

/// The first thing in which the engines do not agree; empty if they agree in all but the number of
/// events.
[[nodiscard]] std::string difference(const engine_course& actors, const engine_course& direct);

/// Runs the scenario by both. @returns As `difference`.
[[nodiscard]] std::string difference_between_engines(const scenario& what);

} // namespace troupe::test
