// SPDX-License-Identifier: Apache-2.0
// All processes of a job and their actors, as far as is known where the chief stands.
#pragma once

#include "actors/observing/observatory.hpp"
#include "actors/observing/process_figures.hpp"
#include "messages/observing_message.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe {

/// A process of a job as it was at some moment.
struct task_sight {
  std::string task; ///< "worker:1"; empty if the job has but one process.
  bool is_lost = false;
  std::optional<job_time> seen; ///< When, on the observer's clock; nothing if it never reported.
  process_figures process;
  uint64_t left_out = 0;           ///< Actors beyond those below.
  std::vector<actor_sight> actors; ///< Their times are on the observer's clock, too.
};

/// Most actors of a report: what a process tells has some 50 KB.
inline constexpr size_t reported_actors_max = 256;

/// Most bytes of an actor's name in a report.
inline constexpr size_t reported_name_bytes_max = 64;

/// The sight of this process.
[[nodiscard]] task_sight look_here(const observatory& observed, const std::string& task,
                                   size_t messages = 0);

/// A report of this process for another one. @param messages How many of each actor's last
/// messages; at most `observation::messages_kept`.
[[nodiscard]] task_report report_here(const observatory& observed, size_t messages);

/// The sight of another process, from its report. Nothing in a report is trusted: names are cut,
/// and bytes in them that are not printable ASCII become '?'; times that are not before the
/// report's are the report's; lists are cut, and unknown kinds of messages have none.
/// @param now When it came, on the clock that times are converted to.
[[nodiscard]] task_sight sight_of(const task_report& report, const std::string& task, job_time now);

/// Actors' names by their ids, which mean nothing in other processes.
using names_by_actor = std::unordered_map<uint64_t, std::string>;

/// The names of a process's actors.
[[nodiscard]] names_by_actor names_in(const task_sight& task);

/// The newest report of each process. A process that is lost, or silent, keeps its last one.
/// Thread: any.
class task_view {
public:
  /// @param here The name of this process. @param others The processes that may report, by
  /// position.
  task_view(std::string here, std::map<uint32_t, std::string> others);

  [[nodiscard]] const std::string& here() const { return here_; }

  /// The process is there.
  void enter(uint32_t member);

  /// The process has reported.
  void fold(uint32_t member, const task_report& report, job_time now);

  /// The process is gone.
  void lose(uint32_t member);

  /// The name of a process. @pre It is one of the others.
  [[nodiscard]] const std::string& name_of(uint32_t member) const { return names_.at(member); }

  /// Every other process, by position.
  [[nodiscard]] std::vector<task_sight> look() const;

private:
  std::string here_;
  std::map<uint32_t, std::string> names_;
  mutable std::mutex mutex_;
  std::map<uint32_t, task_sight> sights_;
};

} // namespace troupe
