// SPDX-License-Identifier: Apache-2.0
// The flight recorder of a job: its last messages in a file, when something went wrong.
#pragma once

#include "actors/observing/crash_recorder.hpp"
#include "strategies/optimizers/session_hook.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace troupe {

/// After a job has hung or died, users want to know what its actors did last. This writes it into a
/// file when a replica is lost, when a step does not end, when this process crashes, and on
/// request. The newest record replaces the one before it. Where the job's other processes are
/// observed, their last messages go into files of the folder `flight` beside that file, one for
/// each process; a process that does not answer within 5 s is named.
class flight_recorder_hook final : public session_hook {
public:
  /// @param path Names the file. @param say Told in one line that it was written, or why it could
  /// not be; not told of the trouble itself. May be empty.
  explicit flight_recorder_hook(std::filesystem::path path,
                                std::function<void(const std::string&)> say = {})
    : path_(std::move(path)), say_(std::move(say)) {}

  /// Writes a record now; nothing happens before the job began or after it ended. The hook handles
  /// no SIGUSR1 by itself: a program that wants a record on request calls this.
  /// @param reason For the first line. Thread: any; not in a signal handler.
  void record(const std::string& reason);

  void begin(session_plan& plan) override;
  void after_create_session(const session_control& session) override;
  void on_trouble(const std::string& trouble) override;
  void on_flight_records(const flight_records& records) override;
  void end(const job_report& report) override;

private:
  void say(const std::string& line) const;
  void begin_collection(const std::string& reason); ///< With the lock held.

  std::filesystem::path path_;
  std::function<void(const std::string&)> say_;
  world* world_ = nullptr;
  std::mutex mutex_;
  const observatory* observed_ = nullptr;  ///< While the job runs.
  std::shared_ptr<const task_view> tasks_; ///< Null, if other processes are not observed.
  std::function<void(const std::string& reason)> collect_; ///< Empty then, too.
  std::optional<crash_recorder> crashes_;
};

} // namespace troupe
