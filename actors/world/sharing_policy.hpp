// SPDX-License-Identifier: Apache-2.0
// A policy for CAF's scheduler, by way of a job queue.
#pragma once

#include "actors/policies/spin.hpp"
#include "actors/world/job_queue.hpp"

#include <caf/policy/unprofiled.hpp>

namespace troupe {

/// As CAF's policy `sharing`, but for the queue: that wakes a thread for each job.
struct sharing_policy : caf::policy::unprofiled {
  struct coordinator_data {
    template <class Coordinator>
    explicit coordinator_data(Coordinator*) {}

    job_queue jobs{usual_spin(processors_of_this_process())};
  };

  struct worker_data {
    template <class Coordinator>
    explicit worker_data(Coordinator*) {}
  };

  template <class Coordinator>
  void central_enqueue(Coordinator* self, caf::resumable* job) {
    d(self).jobs.put(job);
  }

  template <class Worker>
  void external_enqueue(Worker* self, caf::resumable* job) {
    central_enqueue(self->parent(), job);
  }

  template <class Worker>
  void internal_enqueue(Worker* self, caf::resumable* job) {
    central_enqueue(self->parent(), job);
  }

  template <class Worker>
  void resume_job_later(Worker* self, caf::resumable* job) {
    central_enqueue(self->parent(), job);
  }

  template <class Worker>
  caf::resumable* dequeue(Worker* self) {
    return d(self->parent()).jobs.take();
  }

  template <class Worker, class UnaryFunction>
  void foreach_resumable(Worker*, UnaryFunction) {} // a thread has no jobs of its own

  template <class Coordinator, class UnaryFunction>
  void foreach_central_resumable(Coordinator* self, UnaryFunction f) {
    while (auto* job = d(self).jobs.try_take())
      f(job);
  }
};

} // namespace troupe
