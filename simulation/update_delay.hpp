// SPDX-License-Identifier: Apache-2.0
// Updates that take time, in a simulation whose messages take none.
#pragma once

#include "actors/recording/records.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace troupe {

/// How long the update takes that leads to a step, from the last gradient that it needs.
using update_time = std::function<job_time(uint64_t step)>;

/// A replica that gets its token when the step ends must still wait for the update: here it waits
/// with its token in hand, before it computes. Steps are told late by as much.
class update_delay {
public:
  update_delay(update_time time, uint32_t replicas) : time_(std::move(time)), steps_(replicas) {}

  /// The replica has a token for the gradient that it computes next.
  void begin(uint32_t replica, uint64_t local_step) { steps_[replica] = local_step; }

  /// How long the replica has still to wait, `now`.
  [[nodiscard]] job_time remaining(uint32_t replica, job_time now) const {
    auto local_step = steps_[replica];
    if (!time_ || local_step == 0) return job_time{0};
    // A step that was not added yet has ended at this very moment.
    auto ended = local_step <= ended_.size() ? ended_[local_step - 1] : now;
    return std::max(job_time{0}, ended + time_(local_step) - now);
  }

  /// A step was made. @returns Its record, as if its update and the one before had taken time.
  [[nodiscard]] step_record add(step_record step) {
    ended_.resize(std::max<size_t>(ended_.size(), step.step));
    ended_[step.step - 1] = step.ended;
    if (step.step > 1) step.began += time_(step.step - 1);
    step.apply = time_(step.step);
    step.ended += step.apply;
    return step;
  }

private:
  update_time time_;
  std::vector<uint64_t> steps_; // that replicas work for
  std::vector<job_time> ended_; // of each step, without its update
};

} // namespace troupe
