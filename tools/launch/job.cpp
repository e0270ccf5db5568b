// SPDX-License-Identifier: Apache-2.0
// Reacts to the events of a launched job.
#include "tools/launch/job.hpp"

#include "actors/policies/spin.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "tools/launch/outcome_lines.hpp"
#include "tools/system/signal_watch.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using steady = std::chrono::steady_clock;

constexpr std::array end_signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array user_signals{SIGUSR1, SIGUSR2};

// A terminal and a launcher that passes signals on both send the same Ctrl-C.
constexpr auto signal_echo_time = std::chrono::milliseconds{500};

// The launcher waits at least so long for the bytes that a process has left in its pipes.
constexpr auto grace_min = std::chrono::milliseconds{500};

// The pause before a task that has come back too early is started again.
constexpr auto restart_pause = std::chrono::milliseconds{1000};

bool is_ignored(int number) {
  struct sigaction action {};

  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line)
    lines.emplace_back(*line);
  return lines;
}

} // namespace

launch_job::launch_job(const launch_options& options, std::vector<launch_task> tasks,
                       notice_socket notices, std::optional<kill_choice> kills)
  : options_(options), tasks_(std::move(tasks)), notices_(std::move(notices)),
    kills_(std::move(kills)),
    outcome_(tasks_, options_.grace, options_.restarts,
             {.workers = options_.spares_workers, .parameter_servers = options_.spares_ps}),
    signals_(context_), grace_(context_), next_check_(context_), next_kill_(context_),
    terminal_(
      context_, tasks_, options_.fold,
      [this] {
        asio::post(context_, [this] {
          for (auto& each : members_)
            each.process->resume();
          if (collector_) collector_->resume();
        });
      },
      [this] { asio::post(context_, [this] { ask_to_end(SIGPIPE, SIGTERM); }); }),
    started_(steady::now()) {
  ignore_write_signals();
  signals_.add(SIGCHLD);
  for (int number : user_signals)
    signals_.add(number);
  for (int number : end_signals)
    if (!is_ignored(number)) signals_.add(number);
}

expected<void> launch_job::start(const std::string& job_id) {
  job_id_ = job_id;
  environment_ = own_environment();
  if (options_.collect_output)
    if (auto listening = collect_output(*options_.collect_output); !listening) return listening;
  for (size_t index = 0; index < tasks_.size(); ++index) {
    auto outlet = outlet_of(index);
    if (!outlet) return tl::unexpected<error>(outlet.error());
    auto process = std::make_unique<running_task>(context_, std::move(*outlet),
                                                  [this, index] { drop_if_over(index); });
    members_.push_back({.process = std::move(process), .timer = asio::steady_timer{context_}});
  }
  if (options_.send_output) send_output(*options_.send_output);
  started_ = steady::now();
  for (size_t index = 0; index < tasks_.size(); ++index)
    if (auto started = start_process(index); !started) return started;
  return {};
}

expected<void> launch_job::start_process(size_t index) {
  auto restarts = options_.restarts > 0 ? std::optional{restarts_} : std::nullopt;
  auto environment = task_environment(environment_, tasks_, tasks_[index], job_id_, restarts,
                                      processors_of_this_process().processors, notices_.name());
  return members_[index].process->start(options_.program, environment);
}

expected<task_outlet> launch_job::outlet_of(size_t index) {
  task_outlet outlet{
    .put = [this, index](int descriptor,
                         std::span<const std::string> lines) { put(index, descriptor, lines); },
    .is_full = [this] { return is_full(); },
    .tell = [this](const std::string& line) { print(line); }};
  if (options_.log_dir.empty()) return outlet;
  std::filesystem::path folder{options_.log_dir};
  std::error_code refused;
  std::filesystem::create_directories(folder, refused);
  if (refused) {
    return fail(errc::resource, fmt::format("--log-dir: cannot create {}: {}", options_.log_dir,
                                            refused.message()));
  }
  auto log = record_writer::create(folder / tasks_[index].log_name());
  if (!log) return fail(log.error().code, "--log-dir: " + log.error().message);
  outlet.log = std::move(*log);
  return outlet;
}

// ---- lines ----

void launch_job::put(size_t index, int descriptor, std::span<const std::string> lines) {
  if (sender_ && sender_->is_open()) return sender_->put(descriptor, lines);
  terminal_.put(index, descriptor, lines);
}

bool launch_job::is_full() {
  return !(sender_ && sender_->is_open()) && terminal_.is_full();
}

expected<void> launch_job::collect_output(const host_port& at) {
  output_collector::events events{
    .number_of = [this](const launch_task& task) { return terminal_.number_of(task); },
    .put = [this](size_t task, int descriptor,
                  std::span<const std::string> lines) { terminal_.put(task, descriptor, lines); },
    .is_full = [this] { return terminal_.is_full(); },
    .tell = [this](const std::string& line) { print(line); },
    .on_over = [this] { terminal_.flush(); }};
  collector_ = std::make_unique<output_collector>(context_, job_id_, std::move(events));
  return collector_->listen(at, options_.insecure_network);
}

void launch_job::send_output(const host_port& collector) {
  output_sender::events events{.tell = [this](const std::string& line) { print(line); },
                               .give_back =
                                 [this](int descriptor, const std::string& line) {
                                   terminal_.put(0, descriptor, {&line, 1});
                                 },
                               .on_over = [this] { terminal_.flush(); }};
  sender_ = std::make_unique<output_sender>(context_, collector,
                                            output_greeting{tasks_[0], job_id_}, std::move(events));
  sender_->start();
}

int launch_job::run() {
  wait_for_signal();
  if (kills_) begin_to_kill();
  look_at_all(); // a task may have ended before the launcher listened
  context_.run();
  auto summary = summary_of(outcome_);
  if (summary.empty()) return outcome_.exit_code();
  auto failed = outcome_.first_failure()->task;
  const auto& last = members_[failed].process->last_errors();
  print(summary + (last.empty() ? "" : "; the last it wrote to standard error:"));
  for (const auto& line : last)
    terminal_.print(fmt::format("  | {}\n", line));
  return outcome_.exit_code();
}

launch_job::duration launch_job::now() const {
  return std::chrono::duration_cast<duration>(steady::now() - started_);
}

void launch_job::print(const std::string& line) {
  if (!line.empty()) terminal_.tell(line);
}

// ---- signals ----

void launch_job::wait_for_signal() {
  signals_.async_wait([this](error_code failed, int number) {
    if (failed) return;
    on_signal(number);
    if (!is_over()) wait_for_signal();
  });
}

void launch_job::on_signal(int number) {
  if (number == SIGCHLD) {
    look_at_all();
  } else if (number == SIGUSR1 || number == SIGUSR2) {
    // Processes that a task has started may have no handler, and would die of it.
    for (auto& each : members_)
      each.process->signal_one(number);
  } else {
    ask_to_end(number, number);
  }
}

void launch_job::ask_to_end(int number, int passed_on) {
  if (is_over()) return; // the last lines had no reader
  if (ending_since_) {
    if (outcome_.restarts()) outcome_.on_request(number, now());
    if (steady::now() - *ending_since_ > signal_echo_time) kill_all();
    return;
  }
  outcome_.on_request(number, now());
  if (outcome_.tasks().running_count() > 0) print(ending_notice(outcome_));
  end_all(passed_on);
}

// ---- ends ----

void launch_job::look_at_all() {
  if (auto spared = notices_.take()) outcome_.on_spared(*spared);
  for (size_t index = 0; index < members_.size(); ++index) {
    if (outcome_.tasks().has_ended(index)) continue;
    if (auto end = members_[index].process->look()) on_end(index, *end);
  }
}

void launch_job::on_end(size_t index, task_end end) {
  using reaction = launch_outcome::reaction;
  const auto chosen = outcome_.on_end(index, end, now());
  // Background processes of a shell ignore SIGINT and SIGQUIT, and were not asked yet.
  if (ending_since_) members_[index].process->signal_all(SIGTERM);
  wait_for_silence(index);
  if (chosen == reaction::start_again || chosen == reaction::start_again_later) {
    print(restart_notice(outcome_, index));
    members_[index].starts_again = chosen == reaction::start_again ? duration{0} : restart_pause;
  }
  if (chosen == reaction::spare) print(spare_notice(outcome_, index));
  drop_if_over(index);
  if (chosen == reaction::end_servers || (chosen == reaction::spare && outcome_.has_idle_servers()))
    end_servers_later();
  if (outcome_.tasks().has_finished() && !checks_remaining_) check_remaining_tasks();
  auto ends_others = chosen == reaction::end_others || chosen == reaction::restart;
  auto is_last = over_count_ == tasks_.size();
  if (!ends_others || ending_since_ || is_last) return;
  print(ending_notice(outcome_));
  end_all(SIGTERM);
}

void launch_job::wait_for_silence(size_t index) {
  auto& timer = members_[index].timer;
  timer.expires_after(killed_ ? grace_min : std::max(grace_min, options_.grace));
  timer.async_wait([this, index](error_code cancelled) {
    if (cancelled) return;
    auto& process = *members_[index].process;
    if (process.is_paused() && !killed_) return wait_for_silence(index); // the launcher is late
    process.signal_all(SIGKILL);
    process.close();
  });
}

void launch_job::drop_if_over(size_t index) {
  auto& [process, timer, starts_again, was_stopped] = members_[index];
  if (!outcome_.tasks().has_ended(index) || !process->is_silent()) return;
  process->reap();
  timer.cancel();
  if (auto pause = std::exchange(starts_again, std::nullopt); pause && !ending_since_) {
    timer.expires_after(*pause);
    return timer.async_wait([this, index](error_code) { start_again(index); });
  }
  if (++over_count_ < tasks_.size()) return;
  if (outcome_.restarts())
    asio::post(context_, [this] { restart_all(); });
  else
    stop_listening();
}

void launch_job::start_again(size_t index) {
  auto is_needless = ending_since_ || outcome_.is_needless(index);
  if (is_needless && outcome_.tasks().has_ended(index)) return drop_if_over(index);
  if (ending_since_) return on_end(index, {.signal = SIGTERM}); // before it began
  outcome_.on_start(index);
  if (auto started = start_process(index); !started) {
    print(started.error().message);
    on_end(index, {.exit_code = static_cast<int>(exit_code::usage)});
  }
}

void launch_job::restart_all() {
  if (is_over()) return stop_listening(); // it was asked to end meanwhile
  ++restarts_;
  static_cast<void>(notices_.take()); // notices of the former attempt
  over_count_ = 0;
  killed_ = false;
  ending_since_.reset();
  grace_.cancel();
  outcome_.on_restart();
  for (size_t index = 0; index < tasks_.size(); ++index)
    start_again(index);
}

bool launch_job::is_over() const {
  return over_count_ == tasks_.size() && !outcome_.restarts();
}

void launch_job::stop_listening() {
  grace_.cancel();
  next_check_.cancel();
  next_kill_.cancel();
  terminal_.flush();
  // A second Ctrl-C would lose lines that are not sent yet.
  if (sender_) sender_->finish(outcome_.end_request() ? grace_min : options_.grace);
  if (collector_) collector_->finish(options_.grace);
  // From here on a Ctrl-C ends the launcher, in case nothing reads the lines that are left.
  signals_.clear();
  signals_.cancel();
}

// ---- kills on purpose ----

void launch_job::begin_to_kill() {
  auto interval = std::chrono::duration<double>(*options_.kill_every).count();
  print(fmt::format("kills a task every {:g} s: {}", interval, kills_->described(tasks_)));
  kill_one_later();
}

void launch_job::kill_one_later() {
  next_kill_.expires_after(*options_.kill_every);
  next_kill_.async_wait([this](error_code cancelled) {
    if (cancelled || is_over()) return;
    kill_one();
    kill_one_later();
  });
}

void launch_job::kill_one() {
  if (ending_since_ || outcome_.tasks().has_finished()) return;
  auto task = kills_->draw([this](size_t index) { return !outcome_.tasks().has_ended(index); });
  if (!task) return;
  print(fmt::format("kills {} (SIGKILL), as --kill-every asks", tasks_[*task].name()));
  outcome_.on_trial_kill(*task);
  members_[*task].process->signal_all(SIGKILL);
}

// ---- ending ----

void launch_job::end_all(int number) {
  ending_since_ = steady::now();
  for (auto& each : members_)
    each.process->signal_all(number);
  kill_later();
}

void launch_job::end_servers_later() {
  if (ending_since_) return; // they were asked already, and their grace time goes
  grace_.expires_after(options_.grace);
  grace_.async_wait([this](error_code cancelled) {
    if (cancelled || ending_since_) return;
    outcome_.on_servers_told();
    end_all(SIGTERM);
  });
}

// When the job is over, a task that is stopped (SIGSTOP) would keep its launcher waiting for ever:
// it is killed if it is stopped in two checks. Other tasks may have work left, and are named once.
void launch_job::check_remaining_tasks() {
  auto some_remain
    = outcome_.tasks().has_finished() && !ending_since_ && over_count_ < tasks_.size();
  auto has_checked = std::exchange(checks_remaining_, some_remain);
  if (!some_remain) return;
  for (size_t index = 0; index < members_.size(); ++index) {
    auto& [process, timer, starts_again, was_stopped] = members_[index];
    auto is_stopped = !outcome_.tasks().has_ended(index) && process->is_stopped();
    if (!std::exchange(was_stopped, is_stopped) || !is_stopped) continue;
    print(given_up_notice(outcome_, index));
    outcome_.on_given_up(index);
    process->signal_all(SIGKILL);
  }
  auto notice = waiting_notice(outcome_);
  if (has_checked && !notice.empty() && !std::exchange(has_named_remaining_, true)) print(notice);
  next_check_.expires_after(std::max(grace_min, options_.grace));
  next_check_.async_wait([this](error_code cancelled) {
    if (!cancelled) check_remaining_tasks();
  });
}

void launch_job::kill_later() {
  grace_.expires_after(options_.grace);
  grace_.async_wait([this](error_code cancelled) {
    if (!cancelled) kill_all();
  });
}

void launch_job::kill_all() {
  if (std::exchange(killed_, true)) return;
  outcome_.on_kill();
  for (size_t index = 0; index < members_.size(); ++index) {
    members_[index].process->signal_all(SIGKILL);
    if (outcome_.tasks().has_ended(index) && !members_[index].process->is_silent())
      wait_for_silence(index);
  }
}

} // namespace troupe
