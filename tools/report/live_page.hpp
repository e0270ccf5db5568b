// SPDX-License-Identifier: Apache-2.0
// Serves the page of a run to browsers while the run goes on.
#pragma once

#include "actors/observing/http.hpp"
#include "strategies/optimizers/session_hook.hpp"
#include "tools/options/job_options.hpp"
#include "tools/report/run_view.hpp"
#include "tools/report/what_if.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

/// Users look at a run before it has written its report. A live page answers
///
/// | path    | with                                                               |
/// |---------|--------------------------------------------------------------------|
/// | /       | the page as it is now, which asks for /events by itself            |
/// | /events | news: the page's content, whenever it is asked for and has changed |
///
/// While a browser looks, a thread replays the end of the ledger now and then, in time that nothing
/// else wants. Thread: any. The run adds a step in microseconds, and waits for neither writing nor
/// replays.
class live_page final : public session_hook {
public:
  /// @param measure The column of the run's evaluations. @param options The run's.
  live_page(std::string_view measure, job_options options)
    : measure_(measure), options_(std::move(options)) {}

  /// Stops the present replay, and waits for it.
  ~live_page() override;

  /// Sets the folder of the run, with its ledger. @pre The job has not begun.
  void open(const std::filesystem::path& folder);

  // ---- for the server's thread ----

  /// As `http_server::handler`.
  [[nodiscard]] http_answer answer(const std::string& path);

  /// The source of the page's news. It refers to this object.
  [[nodiscard]] http_news news();

  // ---- for the run ----

  void begin(session_plan& plan) override;
  void after_step(const session_control& session, const step_record& step) override;

  /// Training is over; the run's files are not whole yet.
  void end(const job_report& report) override;

  /// Adds an evaluation of the variables as they were after `step`.
  void on_evaluation(uint64_t step, double quality);

  /// Adds a line that the run printed beside its progress.
  void keep_notice(std::string_view line);

  /// The run is over. @param report The content of its report, as `run_json`; empty: none.
  void finish(std::string report);

private:
  using steady = std::chrono::steady_clock;
  using shown_text = std::shared_ptr<const std::string>;

  enum class phase : uint8_t { running, ending, over };

  [[nodiscard]] shown_text text();

  /// @returns Whether there are new answers.
  [[nodiscard]] bool take_answers();

  void replay_now_and_then(const std::filesystem::path& folder, const run_view& view);

  const std::string measure_;
  const job_options options_;

  std::mutex mutex_; ///< Guards the members up to `report_`. The replaying thread never holds it.
  std::filesystem::path folder_;
  run_view view_;
  uint64_t version_ = 0; ///< Counts changes.
  phase phase_ = phase::running;
  shown_text report_; ///< The content of the report, shown once there is one.

  // Members that only the server's thread uses.
  shown_text shown_;
  uint64_t shown_version_ = 0;
  std::optional<what_if_table> answers_;
  steady::time_point answered_;

  std::stop_source stop_;
  std::future<what_if_table> replay_; ///< Last: its thread ends before the others do.
};

} // namespace troupe
