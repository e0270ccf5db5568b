// SPDX-License-Identifier: Apache-2.0
// The run of a job, from its folder to its summary.
#include "tools/job/leader_role.hpp"

#include "actors/world/compute_device.hpp"
#include "kernels/math/matmul.hpp"
#include "messages/errors/failure.hpp"
#include "messages/mapped.hpp"
#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "strategies/jobs/flight_recorder_hook.hpp"
#include "tools/job/job_end.hpp"
#include "tools/options/help.hpp"
#include "tools/report/report.hpp"
#include "tools/run/learning_rate.hpp"
#include "tools/system/standard_streams.hpp"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <utility>

namespace troupe {

namespace {

// A line that explains an update of more gradients than there are replicas; else nothing.
std::string gradients_of_each(const job_options& options) {
  if (options.aggregate <= options.replicas) return {};
  return fmt::format(
    "          more gradients than replicas: an update takes several of a replica, "
    "{:.2g} on average\n",
    static_cast<double>(options.aggregate) / static_cast<double>(options.replicas));
}

// The learning rate of each step, for its curve; empty: it is not known.
std::function<double(uint64_t)> rate_of(const job_optimizer& optimizer) {
  if (!optimizer.plan()) return {};
  return [plan = *optimizer.plan()](uint64_t step) { return learning_rate_at(plan, step); };
}

} // namespace

std::optional<int> leader_role::prepare() {
  if (auto refused = prepare_run()) return refused;
  process_.watch_signals();
  progress_ = std::make_shared<progress_hook>(process_.subject().measure);
  process_.warn_by([progress = progress_](const std::string& line) { progress->say(line); });
  announce();
  hand_over_checkpoint(beginning_, directory_->checkpoints());
  return std::nullopt;
}

// Checks everything that has to be right before a run writes its first byte, and makes the folder.
// @returns The exit code, if something is wrong.
std::optional<int> leader_role::prepare_run() {
  const auto& program = process_.request().program;
  auto& options = process_.request().options;
  auto attempts
    = find_attempt(options.run_dir, process_.cluster().has_evaluator(), process_environment());
  if (!attempts) return refuse(program, attempts.error());
  options.run_dir = attempts->own;
  auto beginning
    = find_beginning(program, options.resume, *attempts, process_.subject(), process_.steps());
  if (!beginning) {
    auto is_misuse = beginning.error().code == errc::invalid_argument;
    return refuse(program, beginning.error(),
                  is_misuse ? exit_code::usage
                            : code_before_training(beginning.error().code, true));
  }
  beginning_ = std::move(*beginning);
  options.resume = beginning_.folder;
  if (options.metrics_port) {
    auto planned = options;
    planned.steps = process_.steps();
    auto service = serve_job(planned, process_.subject().measure, process_environment());
    if (!service) return refuse(program, service.error());
    service_ = std::move(*service);
  }
  auto directory = make_directory();
  if (!directory) {
    auto is_disk = directory.error().code == errc::resource;
    return refuse(program, directory.error(),
                  is_disk ? exit_code_of(errc::resource) : exit_code::usage);
  }
  directory_ = std::move(*directory);
  if (service_) service_->page->open(directory_->path());
  return std::nullopt;
}

expected<run_directory> leader_role::make_directory() const {
  const auto& request = process_.request();
  const auto& folder = request.options.run_dir;
  if (folder.empty())
    return run_directory::create_dated("runs", std::chrono::system_clock::now(), request.config());
  return run_directory::create(folder, request.config());
}

void leader_role::announce() const {
  const auto& options = process_.options();
  auto method = replicas_meet(options.strategy)
                  ? fmt::format("strategy {}", to_string(options.strategy))
                  : fmt::format("policy {}", to_string(options.policy));
  print_if_possible(stderr,
                    "{}"
                    "job       {} replicas, {} gradients an update, {}, {} steps\n"
                    "{}"
                    "files     {}\n",
                    process_.subject().announcement, options.replicas, options.aggregate, method,
                    process_.steps(), gradients_of_each(options), directory_->path().string());
  if (process_.devices().computing.empty())
    print_if_possible(stderr, "cpu       matrix products by {}, one thread for each replica\n",
                      cpu::matmul_instructions());
  for (const auto& device : process_.devices().computing)
    print_if_possible(stderr, "device    {}\n", device->name());
  for (const auto& device : process_.devices().holding)
    print_if_possible(stderr, "variables {}\n", device->name());
  process_.announce_cluster();
  if (service_) print_if_possible(stderr, "{}", service_->text());
  if (beginning_.resume)
    print_if_possible(stderr, "resume    {} from step {}\n", beginning_.folder,
                      beginning_.resume->step);
}

job_report leader_role::train(troupe::strategy& strategy, const job_optimizer& optimizer,
                              const step_function& step) {
  const auto& subject = process_.subject();
  const auto& saved = beginning_.resume;
  folder_ = std::make_shared<run_folder_hook>(
    strategy, directory_->path(),
    run_folder_options{.program = process_.request().program,
                       .timeline_bytes_max = process_.options().timeline_bytes,
                       .ledger_bytes_max = process_.options().ledger_bytes,
                       .began = saved ? saved->time : job_time{0},
                       .measure = subject.measure,
                       .learning_rate = rate_of(optimizer),
                       .on_warning = [this](const std::string& line) {
                         progress_->show(line); // the folder keeps it by itself
                         if (service_) service_->page->keep_notice(line);
                       }});
  progress_->keep_by([this](std::string_view line) { keep_notice(line); });
  auto options = process_.common_training_options();
  if (saved) options.steps -= saved->step;
  options.resume = saved;
  options.hooks = make_hooks();
  if (subject.evaluate)
    options.evaluation
      = {.every_steps = process_.options().evaluate_every,
         .evaluate = [this](std::span<const tensor> values) { return evaluate(values); },
         .on_result =
           [this, &strategy](uint64_t step, double value) {
             keep_evaluation(step, strategy.world().now(), value);
           }};
  restores_ = saved.has_value();
  auto report = train_with(strategy, optimizer, step, options);
  restores_ = false;
  throw_unless_begun(report);
  if (subject.evaluate) evaluate_last_step(strategy, report);
  report_ = report;
  return report;
}

// Files end after the last checkpoint, so that a run that is over has it.
std::vector<std::shared_ptr<session_hook>> leader_role::make_hooks() {
  const auto& options = process_.options();
  auto flight = std::make_shared<flight_recorder_hook>(
    directory_->flight(), [this](const std::string& line) { process_.warn(line); });
  process_.signals().on_user_signal([flight] { flight->record("SIGUSR1"); });
  std::vector<std::shared_ptr<session_hook>> hooks{flight};
  if (service_) hooks.push_back(service_->server);
  if (options.checkpoint_every > 0)
    hooks.push_back(std::make_shared<checkpoint_saver_hook>(
      directory_->checkpoints(),
      checkpoint_options{.every_steps = options.checkpoint_every,
                         .keep = options.keep_checkpoints,
                         .notes = process_.subject().notes,
                         .on_warning = [this](const std::string& line) { process_.warn(line); }}));
  const auto program_hooks = process_.hooks();
  hooks.insert(hooks.end(), program_hooks.begin(), program_hooks.end());
  hooks.push_back(folder_);
  if (service_) hooks.push_back(service_->page);
  hooks.push_back(progress_);
  return hooks;
}

// An evaluation that fails does not end a job: a warning says why, and its result is NaN.
double leader_role::evaluate(std::span<const tensor> values) {
  expected<double> result;
  try {
    result = process_.subject().evaluate(values);
  } catch (...) {
    result = tl::unexpected<error>{reason_of(std::current_exception())};
  }
  evaluation_failed_ = !result;
  if (!result)
    process_.warn(fmt::format("the held-out data were not evaluated: {}", result.error().message));
  return result.value_or(std::numeric_limits<double>::quiet_NaN());
}

void leader_role::keep_evaluation(uint64_t step, job_time when, double value) {
  last_evaluation_ = {step, value};
  folder_->on_evaluation(step, when, value);
  if (service_) service_->page->on_evaluation(step, value);
}

void leader_role::evaluate_last_step(troupe::strategy& strategy, job_report& report) {
  if (last_evaluation_ && last_evaluation_->step == report.step) return;
  try {
    auto values
      = mapped(strategy.variables(), [&](const auto& variable) { return strategy.read(variable); });
    keep_evaluation(report.step, strategy.world().now(), evaluate(values));
  } catch (const failure& failed) { // the process that held some variables is gone
    if (!report.failure) report.failure = failed.reason();
  }
}

int leader_role::conclude(const std::optional<error>& thrown) {
  const auto code = sum_up(thrown);
  if (service_) service_->page->finish(std::move(last_page_));
  return code;
}

// A job that made no step leaves nothing behind that would keep the next attempt from beginning.
int leader_role::sum_up(const std::optional<error>& thrown) {
  const auto& program = process_.request().program;
  const auto steps = process_.steps();
  progress_->finish();
  if (folder_) folder_->finish();
  auto has_steps = folder_ && folder_->totals().step_times().count() > 0;
  if (!report_) {
    if (!has_steps) directory_->take_back();
    return code_without_training(thrown, restores_);
  }
  if (auto line = early_end(program, *report_, steps); !line.empty()) print_notice(line);
  if (report_->failure && report_->step < steps)
    keep_notice(early_end(program, {.step = report_->step, .stopped = "ended"}, steps));
  print_if_possible(stdout, "{}", folder_->totals().text());
  print_evaluation();
  if (!report_->failure) print_what_if(process_.options(), *folder_);
  if (has_steps) {
    write_page();
    draw(directory_->path(), process_.subject(),
         folder_->has_losses() || last_evaluation_ ? plots_of::losses_and_steps : plots_of::steps,
         process_.signals().signal_number() == 0);
  }
  if (thrown && !report_->failure) return refuse(program, *thrown, exit_code_of(thrown->code));
  return code_of(*report_, process_.signals().signal_number());
}

// Prints the result of evaluating the last step, if it was evaluated.
void leader_role::print_evaluation() const {
  if (!last_evaluation_ || last_evaluation_->step != report_->step) return;
  if (std::isfinite(last_evaluation_->value))
    return print_quality(process_.subject(), last_evaluation_->value);
  if (evaluation_failed_) return; // a warning has said why
  print_notice(
    fmt::format("{}: the training has diverged: the loss of the evaluation at step {} is no finite "
                "number; a lower learning rate may help",
                process_.request().program, report_->step));
}

// A job that is asked to stop ends without the replays, which `troupe report` can make later.
void leader_role::write_page() {
  const auto& folder = directory_->path();
  auto report = write_report(folder, folder / report_name,
                             [this] { return process_.signals().signal_number() == 0; });
  if (!report) {
    print_if_possible(stdout, "\nno report: {}\n", report.error().message);
    return;
  }
  print_if_possible(stdout, "\nreport: {}\n", report->path.string());
  last_page_ = std::move(report->run_json);
}

void leader_role::print_notice(const std::string& line) const {
  keep_notice(line);
  print_if_possible(stderr, "{}\n", line);
}

void leader_role::keep_notice(std::string_view line) const {
  folder_->keep_notice(line);
  if (service_) service_->page->keep_notice(line);
}

} // namespace troupe
