// SPDX-License-Identifier: Apache-2.0
// Whole jobs in the virtual world, drawn from a seed with all that goes wrong in them.
#pragma once

#include "simulation/faults/fault.hpp"
#include "simulation/scenario.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::test {

/// A gradient that a replica has made, of all variables.
struct made_gradient {
  uint32_t replica = 0;
  uint32_t number = 0; ///< Index among the replica's gradients, over all its lives; from 0.
  std::vector<tensor> read;
  std::vector<tensor> values;
};

/// The model of the drawn jobs: variables of a few numbers, then a ballot, which is an element for
/// each gradient that may ever be made. A gradient has a one in its element and nowhere else there,
/// so that a variable shows which gradients it was changed by, and how often.
struct ballot_model {
  uint32_t replicas = 1;
  uint32_t variables = 1;

  static constexpr uint32_t numbers = 3;
  static constexpr uint32_t gradients_max = 400; ///< Most gradients of one replica.
  static constexpr float learning_rate = 0.0625F;

  [[nodiscard]] tensor first_value() const;
  [[nodiscard]] std::vector<tensor> differentiate(std::span<const tensor> values, uint32_t replica,
                                                  uint32_t number) const;

  /// How often the gradient counted in a variable with these values, over the number of gradients
  /// that it counted with.
  [[nodiscard]] static float share(const tensor& value, uint32_t replica, uint32_t number);
};

/// A drawn job, and the course that it took.
struct evidence {
  uint64_t seed = 0;
  scenario what;
  ballot_model model;
  std::vector<made_gradient> made;
  std::vector<step_record> steps;
  std::vector<tensor> values; ///< At the end; none if an owner was gone then.
  scenario_report report;

  /// The drawn job in a line, for people.
  [[nodiscard]] std::string describe() const;
};

/// Draws a job and runs it. The same seed gives the same job and the same course.
[[nodiscard]] std::unique_ptr<const evidence> run_drawn_job(uint64_t seed);

/// Runs a job that was not drawn. @param what Has a network; `run_job` fills in `learning`.
/// @param plan How an update changes a variable; `judge` needs the default.
[[nodiscard]] std::unique_ptr<const evidence>
run_job(scenario what, uint32_t variables,
        const update_plan& plan
        = {.rule = rules::sgd{.learning_rate = ballot_model::learning_rate}});

} // namespace troupe::test
