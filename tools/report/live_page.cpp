// SPDX-License-Identifier: Apache-2.0
// Collects a run's steps under a lock, and writes the page from a copy.
#include "tools/report/live_page.hpp"

#include "tools/report/report.hpp"
#include "tools/report/run_json.hpp"

#include <sched.h>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

constexpr std::chrono::seconds between_replays{20};
constexpr std::chrono::seconds before_first_answers{5}; // the ledger reaches the disk that late

// Gives this thread, and those that it starts for replays, only time that no other wants; where
// that is not permitted, changes nothing.
void take_only_idle_time() {
  const sched_param plain{};
  static_cast<void>(sched_setscheduler(0, SCHED_IDLE, &plain));
}

} // namespace

live_page::~live_page() {
  stop_.request_stop();
}

void live_page::open(const std::filesystem::path& folder) {
  std::lock_guard guard{mutex_};
  folder_ = folder;
}

// ---- the server's thread ----

http_answer live_page::answer(const std::string& path) {
  if (path == "/") return {.content_type = "text/html; charset=utf-8", .body = page_of(*text())};
  return {.status = 404, .body = "there is /, /metrics and /actors\n"};
}

http_news live_page::news() {
  return {.path = "/events", .text = [this] { return text(); }};
}

// The view is copied, so that the run does not wait for the writing.
live_page::shown_text live_page::text() {
  const bool is_answered = take_answers();
  std::unique_lock lock{mutex_};
  if (report_) return report_;
  if (shown_ && version_ == shown_version_ && !is_answered) return shown_;
  shown_version_ = version_;
  const auto folder = folder_;
  const auto view = view_;
  const auto phase_now = phase_;
  lock.unlock();
  if (phase_now == phase::running) replay_now_and_then(folder, view);
  auto heading = heading_of(folder, view, measure_, options_);
  heading.is_live = phase_now != phase::over;
  if (phase_now == phase::running)
    heading.state = view.step_count() > 0 ? "running" : "about to begin";
  else
    heading.state = phase_now == phase::ending ? "over, its report is being written" : "over";
  shown_
    = std::make_shared<const std::string>(run_json(view, heading, answers_ ? &*answers_ : nullptr));
  return shown_;
}

bool live_page::take_answers() {
  if (!replay_.valid() || replay_.wait_for(std::chrono::seconds{0}) != std::future_status::ready)
    return false;
  auto answers = replay_.get();
  if (stop_.stop_requested()) return false; // they are not all
  answers_ = std::move(answers);
  answered_ = steady::now();
  return true;
}

void live_page::replay_now_and_then(const std::filesystem::path& folder, const run_view& view) {
  if (replay_.valid() || view.step_count() == 0) return;
  const auto pause
    = answers_ && answers_->why_none.empty() ? between_replays : before_first_answers;
  if (answers_ && steady::now() - answered_ < pause) return;
  try {
    replay_ = std::async(std::launch::async, [this, folder, slow = slow_replicas(view)] {
      take_only_idle_time();
      return what_if(folder, options_, slow, [this] { return !stop_.stop_requested(); });
    });
  } catch (const std::system_error& failed) { // no thread is left, for now
    answers_ = {.why_none = failed.what()};
    answered_ = steady::now();
  }
}

// ---- the run ----

void live_page::begin(session_plan& plan) {
  std::lock_guard guard{mutex_};
  view_.expect(plan.replicas);
  ++version_;
}

void live_page::after_step(const session_control&, const step_record& step) {
  std::lock_guard guard{mutex_};
  view_.add(step);
  ++version_;
}

void live_page::end(const job_report&) {
  stop_.request_stop();
  std::lock_guard guard{mutex_};
  phase_ = phase::ending;
  ++version_;
}

void live_page::on_evaluation(uint64_t step, double quality) {
  std::lock_guard guard{mutex_};
  view_.add_evaluation(step, quality);
  ++version_;
}

void live_page::keep_notice(std::string_view line) {
  std::lock_guard guard{mutex_};
  view_.add_notice({view_.last().step, std::string{line}});
  ++version_;
}

void live_page::finish(std::string report) {
  std::lock_guard guard{mutex_};
  phase_ = phase::over;
  if (!report.empty()) report_ = std::make_shared<const std::string>(std::move(report));
  ++version_;
}

} // namespace troupe
