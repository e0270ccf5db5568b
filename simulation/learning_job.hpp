// SPDX-License-Identifier: Apache-2.0
// A simulated job that learns: its step function, and a watch of its loss.
#pragma once

#include "simulation/learning.hpp"
#include "strategies/jobs/training.hpp"

#include <vector>

namespace troupe {

/// The owners' update in such a job: the plan, or the average of what replicas have learnt by
/// themselves.
/// Errors: throws `failure` with invalid_argument if replicas are to make local steps by another
/// rule than `rules::sgd`.
[[nodiscard]] update_plan owners_plan(const learning_options& learning, uint32_t local_steps);

/// Each gradient with its variable, in order. @pre There are as many of both.
[[nodiscard]] std::vector<gradient_and_variable> pairs_of(std::vector<gradient> gradients,
                                                          const std::vector<variable>& variables);

/// A replica's step: it reads, computes a batch, and gives the gradient; after several local steps,
/// it gives the way that they have led.
[[nodiscard]] step_function learn(const sync_replicas_optimizer& optimizer,
                                  std::vector<variable> variables, const learning_options& learning,
                                  uint32_t local_steps);

/// Evaluates the loss while a job runs, in no virtual time. Steps do not depend on it.
class loss_watch {
public:
  loss_watch(const learning_options& learning, uint32_t replicas, std::vector<uint32_t> slow)
    : learning_(learning), replicas_(replicas), slow_(std::move(slow)) {}

  /// The evaluation for the job's options. @param world Tells the time. World and watch outlive the
  /// job.
  [[nodiscard]] evaluation during(const world& world);

  /// Adds a point before the job, and after it if its last step is not there yet.
  void look(uint64_t step, double seconds, std::span<const tensor> values);

  [[nodiscard]] const std::vector<loss_point>& curve() const { return curve_; }

private:
  const learning_options& learning_;
  uint32_t replicas_;
  std::vector<uint32_t> slow_;
  loss_point latest_;
  std::vector<loss_point> curve_;
};

} // namespace troupe
