// SPDX-License-Identifier: Apache-2.0
// Hooks of a training job, and the events that they are told of.
#pragma once

#include "actors/interfaces/job_report.hpp"
#include "actors/interfaces/job_snapshot.hpp"
#include "actors/recording/records.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace troupe {

class task_view;
class world;
struct flight_records;

/// How a job is going to run; a hook's `begin` may change it.
struct session_plan {
  troupe::world& world;
  uint64_t first_step = 0; ///< Updates made before.
  uint64_t steps = 0;      ///< Updates to make; 0: the job ends well at once, in all processes.
  uint32_t replicas = 0;   ///< In all processes, also those that are absent yet.
  /// Tokens in the queue at the start, in place of the default; used under `tensorflow` only.
  std::optional<uint32_t> init_tokens;
  bool takes_snapshots = false; ///< Whether a hook will ever want one.
  bool has_chiefs_hook = false; ///< Whether an optimizer's hook is the chief's, which closes steps.
  bool has_others_hook = false; ///< Whether one is another replica's: no step ends by it alone.
  /// The job's other processes and their actors, where they are observed; else null.
  std::shared_ptr<const task_view> tasks;
  /// Has the last messages of the other processes collected, for `on_flight_records`; empty if they
  /// are not observed. Thread: any.
  std::function<void(const std::string& reason)> collect_flight_records;
};

/// How a hook ends the job that it watches.
class session_control {
public:
  explicit session_control(std::function<void(const std::string&)> stop) : stop_(std::move(stop)) {}

  /// The job ends with the step that is under way. @param reason For the report.
  /// Thread: any.
  void request_stop(const std::string& reason) const { stop_(reason); }

private:
  std::function<void(const std::string&)> stop_;
};

/// Saving, logging and stopping do not belong into a step function. A hook is told of a job's
/// beginning, of every step and of the end, in that order.
///
/// A hook that throws `failure` from `begin` refuses the job; from any later member it ends the
/// job, and the report of the job has the failure; until then the hook is told of nothing more but
/// the end. Thread: one member at a time, but for
/// `wants_snapshot` and the members that begin with `on_`, which may be called beside the others.
class session_hook {
public:
  session_hook() = default;
  virtual ~session_hook() = default;
  session_hook(const session_hook&) = delete;
  session_hook& operator=(const session_hook&) = delete;

  /// Before any actor of the job is there.
  virtual void begin(session_plan&) {}

  /// All actors are there, and work; or there is no step to make, and `end` follows.
  virtual void after_create_session(const session_control&) {}

  /// A step has begun, or a replica has come or gone while it is under way. The chief waits until
  /// this returns.
  virtual void on_open_step(const open_step&) {}

  /// A step is over. Not called on the threads that train: a slow hook delays other hooks only.
  virtual void after_step(const session_control&, const step_record&) {}

  /// Whether a snapshot is to be taken after so many updates. @param last No step comes after it.
  /// Asked only if `begin` of a hook has set `session_plan::takes_snapshots`.
  virtual bool wants_snapshot(uint64_t /*step*/, job_time /*now*/, bool /*last*/) { return false; }

  /// A snapshot was taken, whichever hook wanted it. It shares the owners' memory.
  virtual void after_snapshot(const job_snapshot&) {}

  /// A replica was lost, or the job is about to end badly; the actors are still as they were.
  /// @param trouble One line, which names the culprit. The chief waits until this returns.
  virtual void on_trouble(const std::string& /*trouble*/) {}

  /// The last messages of other processes have been collected; a process that did not answer within
  /// 5 s is named. Perhaps after `end`.
  virtual void on_flight_records(const flight_records&) {}

  /// The job is over, well or not.
  virtual void end(const job_report&) {}
};

} // namespace troupe
