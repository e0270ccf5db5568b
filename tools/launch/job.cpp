// SPDX-License-Identifier: Apache-2.0
// Reacts to the events of a launched job.
#include "tools/launch/job.hpp"

#include "strategies/jobs/exit_codes.hpp"
#include "tools/launch/outcome_lines.hpp"
#include "tools/system/signal_watch.hpp"

#include <boost/asio/post.hpp>

#include <array>
#include <csignal>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using steady = std::chrono::steady_clock;

constexpr std::array end_signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array user_signals{SIGUSR1, SIGUSR2};

// The pause before a task that has come back too early is started again.
constexpr auto restart_pause = std::chrono::milliseconds{1000};

bool is_ignored(int number) {
  struct sigaction action {};

  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

} // namespace

launch_job::launch_job(const launch_options& options, const std::vector<launch_task>& tasks,
                       notice_socket notices, std::optional<kill_plan> kills)
  : signals_(context_), notices_(std::move(notices)),
    outcome_(tasks, options.grace, options.restarts,
             {.workers = options.spares_workers, .parameter_servers = options.spares_ps}),
    terminal_(
      context_, tasks, options.fold,
      [this] {
        asio::post(context_, [this] {
          tasks_.resume();
          output_.resume();
        });
      },
      [this] { asio::post(context_, [this] { ask_to_end(SIGPIPE, SIGTERM); }); }),
    output_(context_, terminal_, options),
    tasks_(
      context_, options, tasks, notices_.name(),
      {.on_due = [this](size_t task) { start_again(task); }, .on_over = [this] { on_all_over(); }}),
    ending_(context_, outcome_, tasks_), remaining_(context_, outcome_, tasks_, ending_, terminal_),
    started_(steady::now()) {
  if (kills) kills_.emplace(context_, std::move(*kills), outcome_, tasks_, ending_, terminal_);
  ignore_write_signals();
  watch(SIGCHLD);
  for (int number : user_signals)
    watch(number);
  for (int number : end_signals)
    if (!is_ignored(number)) watch(number);
}

void launch_job::watch(int number) {
  signals_.add(number);
  unblock_signals({&number, 1});
}

expected<void> launch_job::start() {
  auto outlets = output_.open(tasks_.tasks());
  if (!outlets) return tl::unexpected<error>(outlets.error());
  tasks_.connect(std::move(*outlets));
  started_ = steady::now();
  for (size_t task = 0; task < outcome_.tasks().size(); ++task)
    if (auto started = tasks_.start(task); !started) return started;
  return {};
}

int launch_job::run() {
  wait_for_signal();
  if (kills_) kills_->start();
  look_at_all(); // a task may have ended before the launcher listened
  context_.run();
  print_summary();
  return outcome_.exit_code();
}

void launch_job::print_summary() {
  auto summary = summary_of(outcome_);
  if (summary.empty()) return;
  const auto& last = tasks_[outcome_.first_failure()->task].last_errors();
  terminal_.tell(summary + (last.empty() ? "" : "; the last it wrote to standard error:"));
  for (const auto& line : last)
    terminal_.print(fmt::format("  | {}\n", line));
}

launch_job::duration launch_job::now() const {
  return std::chrono::duration_cast<duration>(steady::now() - started_);
}

// ---- signals ----

void launch_job::wait_for_signal() {
  signals_.async_wait([this](error_code failed, int number) {
    if (failed) return;
    on_signal(number);
    if (!ending_.is_over()) wait_for_signal();
  });
}

void launch_job::on_signal(int number) {
  if (number == SIGCHLD) {
    look_at_all();
  } else if (number == SIGUSR1 || number == SIGUSR2) {
    // Processes that a task has started may have no handler, and would die of it.
    tasks_.signal_each(number);
  } else {
    // SIGQUIT would have tasks dump their memory instead of saving their step.
    ask_to_end(number, number == SIGQUIT ? SIGTERM : number);
  }
}

void launch_job::ask_to_end(int number, int passed_on) {
  if (ending_.is_over()) return; // the last lines had no reader
  if (ending_.has_begun()) {
    if (outcome_.restarts()) outcome_.on_request(number, now());
    if (number != SIGPIPE) ending_.insist(); // no user asks again where a reader is gone
    return;
  }
  outcome_.on_request(number, now());
  if (outcome_.tasks().running_count() > 0) terminal_.tell(ending_notice(outcome_));
  ending_.begin(passed_on);
}

// ---- ends of tasks ----

void launch_job::look_at_all() {
  if (auto spared = notices_.take()) outcome_.on_spared(*spared);
  for (size_t task = 0; task < outcome_.tasks().size(); ++task) {
    if (outcome_.tasks().has_ended(task)) continue;
    if (auto end = tasks_[task].look()) on_end(task, *end);
  }
}

void launch_job::on_end(size_t task, task_end end) {
  using reaction = launch_outcome::reaction;
  const auto chosen = outcome_.on_end(task, end, now());
  // Background processes of a shell ignore SIGINT and SIGQUIT, and were not asked yet.
  if (ending_.has_begun()) tasks_[task].signal_all(SIGTERM);
  std::optional<duration> pause;
  if (chosen == reaction::start_again || chosen == reaction::start_again_later) {
    terminal_.tell(restart_notice(outcome_, task));
    if (!ending_.has_begun()) pause = chosen == reaction::start_again ? duration{0} : restart_pause;
  }
  if (chosen == reaction::spare) terminal_.tell(spare_notice(outcome_, task));
  tasks_.on_end(task, pause, ending_.limit());
  if (chosen == reaction::end_servers || (chosen == reaction::spare && outcome_.has_idle_servers()))
    ending_.begin_later();
  if (outcome_.tasks().has_finished()) remaining_.start();
  auto ends_others = chosen == reaction::end_others || chosen == reaction::restart;
  if (!ends_others || ending_.has_begun() || tasks_.are_over()) return;
  if (auto notice = ending_notice(outcome_); !notice.empty()) terminal_.tell(notice);
  ending_.begin(SIGTERM);
}

void launch_job::start_again(size_t task) {
  auto is_needless = ending_.has_begun() || outcome_.is_needless(task);
  if (is_needless && outcome_.tasks().has_ended(task)) return tasks_.drop(task);
  if (ending_.has_begun()) return on_end(task, {.signal = SIGTERM}); // before it began
  outcome_.on_start(task);
  if (auto started = tasks_.start(task); !started) {
    terminal_.tell(started.error().message);
    on_end(task, {.exit_code = static_cast<int>(exit_code::usage)});
  }
}

// ---- the end of all tasks ----

void launch_job::on_all_over() {
  if (outcome_.restarts())
    asio::post(context_, [this] { restart_all(); });
  else
    finish();
}

void launch_job::restart_all() {
  if (!outcome_.restarts()) return finish(); // it was asked to end meanwhile
  static_cast<void>(notices_.take());        // notices of the former attempt
  outcome_.on_restart();
  tasks_.on_restart();
  ending_.on_restart();
  for (size_t task = 0; task < outcome_.tasks().size(); ++task)
    start_again(task);
}

void launch_job::finish() {
  ending_.finish();
  remaining_.stop();
  if (kills_) kills_->stop();
  // A second Ctrl-C would lose lines that are not sent yet.
  output_.finish(outcome_.end_request() ? launch_grace_min : outcome_.grace());
  // From here on a Ctrl-C ends the launcher, in case nothing reads the lines that are left.
  signals_.clear();
  signals_.cancel();
}

} // namespace troupe
