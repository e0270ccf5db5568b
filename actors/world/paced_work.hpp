// SPDX-License-Identifier: Apache-2.0
// The computing of an activity: work on threads or on a device, then the delay that its pace adds.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/world/world.hpp"

#include <caf/typed_event_based_actor.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace troupe {

/// How long computing takes beside what it took: given the number of the computation and the time
/// that the work took on the world's clock, the further delay. A straggler is made of it in the
/// threads world, every computing time in the virtual one. Empty: no further delay.
using pace_function = std::function<job_time(uint64_t iteration, job_time elapsed)>;

class compute_device;

/// Where an activity computes if not on the world's threads: one stream of a device.
struct processor {
  gpu_actor device;
  uint32_t stream = 0;
  std::shared_ptr<compute_device> owned; ///< The device that the actor owns.
};

/// The outcome of a piece of work: the time it took, or why it has no result.
struct work_outcome {
  job_time elapsed{0};
  std::exception_ptr thrown; ///< The work's exception; null if it threw none.
  bool cancelled = false;    ///< The result is not needed any more.
};

/// A piece of work for the computing threads, or for a device.
struct work_of_two_kinds {
  std::function<void(std::stop_token)> on_threads;
  std::function<void(std::stop_token, compute_stream&)> on_device;
};

/// Has one piece of work after another done, and each followed by the delay that the pace asks for.
/// Thread: the one that runs the actor.
class paced_work {
public:
  /// @param finished Called when work and delay are over; not inside of the call that begins them.
  paced_work(replica_actor::pointer self, troupe::world& world, pace_function pace,
             std::function<void()> finished)
    : self_(self), world_(world), observation_(world.observatory().find(self->id())),
      pace_(std::move(pace)), finished_(std::move(finished)) {}

  paced_work(const paced_work&) = delete;
  paced_work& operator=(const paced_work&) = delete;

  void set_pace(pace_function pace) { pace_ = std::move(pace); }

  /// @param purpose For errors: "a step of replica 3".
  void set_processor(processor where, std::string purpose) {
    processor_ = std::move(where);
    purpose_ = std::move(purpose);
  }

  /// Null before `set_processor`: the world's computing threads.
  [[nodiscard]] const processor& computes_at() const { return processor_; }

  /// Begins a piece of work, which is the next computation. @pre None is being done.
  /// @param cancelled Its result is not needed, even now.
  void begin(work_of_two_kinds work, bool cancelled);

  /// Begins a delay without work before it: the rest of a computation that `restore` has told of,
  /// or a pause. @pre and @param as of `begin`.
  void begin_rest(job_time remaining, bool cancelled);

  /// The result is not needed any more: a delay ends at once, work as soon as it returns, which it
  /// does early if it looks at its stop token.
  void cancel();

  /// The outcome of the last piece of work.
  [[nodiscard]] work_outcome take_outcome() { return std::move(outcome_); }

  /// Sets `computing`, `computations`, `remaining` and `compute`.
  void write_progress(replica_progress& to) const;

  /// Goes on from the progress of a saved activity. @pre Nothing was computed yet.
  void restore(const replica_progress& saved);

  /// To be called by the actor for each message of these kinds.
  void on(const work_done& done);
  void on(const delay_over& over);

private:
  enum class phase : uint8_t { idle, working, pacing };

  void renew_stop(bool cancelled);
  void begin_on_threads(std::function<void(std::stop_token)> work);
  void begin_on_device(std::function<void(std::stop_token, compute_stream&)> work);
  void begin_in_place(const std::function<void(std::stop_token)>& work);

  /// @returns False if no delay follows the work.
  bool begin_delay(const work_done& done);

  void pace_for(job_time delay);
  void finish();

  [[nodiscard]] bool is_cancelled() const { return stop_.stop_requested(); }

  replica_actor::pointer self_;
  troupe::world& world_;
  observation* observation_; ///< The actor's; null if it is not observed.
  pace_function pace_;
  std::function<void()> finished_;
  processor processor_;
  std::string purpose_;

  phase phase_ = phase::idle;
  uint64_t computations_ = 0; ///< Begun so far; also the ticket of the current one.
  job_time due_{0};           ///< When the pace's delay is over.
  std::stop_source stop_;
  work_outcome outcome_;
};

} // namespace troupe
