// SPDX-License-Identifier: Apache-2.0
// The evaluation beside a job, in the process of its chief.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/world/completion.hpp"
#include "actors/world/world.hpp"
#include "strategies/contexts/job_actors.hpp"
#include "strategies/contexts/strategy.hpp"
#include "strategies/jobs/training.hpp"

#include <cstdint>
#include <functional>

namespace troupe {

/// A replica that evaluates the variables of a job instead of training them. It has a token queue
/// of its own, and so works on the newest step there is, at its pace.
class evaluating_replica {
public:
  /// @param strategy, options Outlive this object. @param warn Called when the evaluation at a step
  /// throws, while its exception is handled; that ends neither the job nor later evaluations.
  /// Thread: any.
  evaluating_replica(strategy& strategy, const training_options& options, const job_actors& job,
                     const std::function<void(uint64_t step)>& warn);

  /// The variables may be evaluated as they are after this step.
  void look(uint64_t step) const;

  /// Ends it. After this nothing refers to the caller's functions any more.
  void end() const;

private:
  world& world_;
  token_queue_actor tokens_;
  completion<void> ended_;
};

} // namespace troupe
