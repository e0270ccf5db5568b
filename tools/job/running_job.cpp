// SPDX-License-Identifier: Apache-2.0
// The roles of a process in a job, and the objects that its options ask for.
#include "tools/job/running_job.hpp"

#include "actors/recording/seconds.hpp"
#include "actors/world/compute_device.hpp"
#include "kernels/math/matmul.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "strategies/jobs/flight_recorder_hook.hpp"
#include "tools/job/evaluator.hpp"
#include "tools/job/job_cluster.hpp"
#include "tools/job/job_end.hpp"
#include "tools/job/job_strategy.hpp"
#include "tools/job/option_agreement.hpp"
#include "tools/job/pace.hpp"
#include "tools/job/saved_values.hpp"
#include "tools/job/waiting_step.hpp"
#include "tools/options/help.hpp"
#include "tools/report/report.hpp"
#include "tools/run/learning_rate.hpp"
#include "tools/system/standard_streams.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <limits>

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

job_report train_with(strategy& strategy, const job_optimizer& optimizer, const step_function& step,
                      const training_options& options) {
  if (const auto* sync = optimizer.as<sync_replicas_optimizer>())
    return train(strategy, *sync, step, options);
  return train(strategy, step, options);
}

void throw_unless_begun(const job_report& report) {
  if (!report.has_begun)
    throw failure{report.failure.value_or(error{errc::cancelled, "asked to stop"})};
}

// The learning rate of each step, for its curve; empty: it is not known.
std::function<double(uint64_t)> rate_of(const job_optimizer& optimizer) {
  if (!optimizer.plan()) return {};
  return [plan = *optimizer.plan()](uint64_t step) { return learning_rate_at(plan, step); };
}

std::atomic_flag is_job_running;

/// A run of a job. Signals ask a process to end, not a job: so one job runs at a time, and its
/// watch of signals ends with it.
class sole_run {
public:
  explicit sole_run(std::optional<signal_watch>& signals)
    : signals_(signals), is_sole_(!is_job_running.test_and_set()) {}

  ~sole_run() {
    if (!is_sole_) return;
    signals_.reset();
    is_job_running.clear();
  }

  sole_run(const sole_run&) = delete;
  sole_run& operator=(const sole_run&) = delete;

  [[nodiscard]] bool is_sole() const { return is_sole_; }

private:
  std::optional<signal_watch>& signals_;
  bool is_sole_;
};

} // namespace

expected<void> running_job::find_cluster() {
  if (cluster_) return {};
  return troupe::find_cluster(request_.command, request_.options)
    .map([this](resolved_cluster found) { cluster_ = std::move(found); });
}

void running_job::be_alone() {
  cluster_ = resolved_cluster::alone();
}

uint64_t running_job::steps() const {
  return subject_.steps != 0 ? subject_.steps
                             : request_.options.steps.value_or(job_defaults::steps);
}

std::optional<int> running_job::begin() {
  if (!std::exchange(has_begun_, true)) return std::nullopt;
  return refuse(request_.program,
                error{errc::failed_precondition, "a job runs once: make another job to run again"});
}

int running_job::run(const std::function<void()>& body) {
  const auto& program = request_.program;
  sole_run sole{signals_};
  if (!sole.is_sole())
    return refuse(program, error{errc::failed_precondition,
                                 "another job runs in this process: run this one after it"});
  ignore_write_signals();
  if (auto found = find_cluster(); !found) return refuse(program, found.error());
  auto devices = find_devices(request_.options, *cluster_);
  if (!devices) return refuse(program, devices.error());
  devices_ = std::move(*devices);
  agreement_ = (subject_.agreement.empty() ? "" : subject_.agreement + '\n')
               + agreement_of(request_.described, request_.options, subject_.own_options);
  if (cluster_->is_chief()) return lead(body);
  return cluster_->is_evaluator() ? evaluate_run(body) : follow(body);
}

// ---- roles ----

int running_job::lead(const std::function<void()>& body) {
  if (auto refused = prepare_run()) return *refused;
  signals_.emplace();
  progress_ = std::make_shared<progress_hook>(subject_.measure);
  announce();
  hand_over_checkpoint(beginning_, directory_->checkpoints());
  auto thrown = call(body);
  leave_cluster();
  const auto code = conclude(thrown);
  if (service_) service_->page->finish(std::move(last_page_));
  return code;
}

// Checks everything that has to be right before a run writes its first byte, and makes the folder.
// @returns The exit code, if something is wrong.
std::optional<int> running_job::prepare_run() {
  const auto& program = request_.program;
  auto& options = request_.options;
  auto attempts = find_attempt(options.run_dir, cluster_->has_evaluator(), process_environment());
  if (!attempts) return refuse(program, attempts.error());
  options.run_dir = attempts->own;
  auto beginning = find_beginning(program, options.resume, *attempts, subject_, steps());
  if (!beginning) {
    auto is_misuse = beginning.error().code == errc::invalid_argument;
    return refuse(program, beginning.error(),
                  is_misuse ? exit_code::usage : exit_code::bad_checkpoint);
  }
  beginning_ = std::move(*beginning);
  options.resume = beginning_.folder;
  if (options.metrics_port) {
    auto planned = options;
    planned.steps = steps();
    auto service = serve_job(planned, subject_.measure, process_environment());
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

expected<run_directory> running_job::make_directory() const {
  const auto& folder = request_.options.run_dir;
  if (folder.empty())
    return run_directory::create_dated("runs", std::chrono::system_clock::now(), request_.config());
  return run_directory::create(folder, request_.config());
}

void running_job::announce() const {
  const auto& options = request_.options;
  auto method = replicas_meet(options.strategy)
                  ? fmt::format("strategy {}", to_string(options.strategy))
                  : fmt::format("policy {}", to_string(options.policy));
  print_if_possible(stderr,
                    "{}"
                    "job       {} replicas, {} gradients an update, {}, {} steps\n"
                    "{}"
                    "files     {}\n",
                    subject_.announcement, options.replicas, options.aggregate, method, steps(),
                    gradients_of_each(options), directory_->path().string());
  if (devices_.computing.empty())
    print_if_possible(stderr, "cpu       matrix products by {}, one thread for each replica\n",
                      cpu::matmul_instructions());
  for (const auto& device : devices_.computing)
    print_if_possible(stderr, "device    {}\n", device->name());
  for (const auto& device : devices_.holding)
    print_if_possible(stderr, "variables {}\n", device->name());
  announce_cluster();
  if (service_) print_if_possible(stderr, "{}", service_->text());
  if (beginning_.resume)
    print_if_possible(stderr, "resume    {} from step {}\n", beginning_.folder,
                      beginning_.resume->step);
}

void running_job::announce_cluster() const {
  if (cluster_->is_alone()) return;
  print_if_possible(stderr, "cluster   {} of {} tasks, says {}\n", to_string(cluster_->self()),
                    cluster_->tasks.size(), cluster_->source);
}

// A job that made no step leaves nothing behind that would keep the next attempt from beginning.
int running_job::conclude(const std::optional<error>& thrown) {
  progress_->finish();
  if (folder_) folder_->finish();
  auto has_steps = folder_ && folder_->totals().step_times().count() > 0;
  if (!report_) {
    if (!has_steps) directory_->take_back();
    return code_without_training(thrown);
  }
  if (auto line = early_end(request_.program, *report_, steps()); !line.empty()) print_notice(line);
  if (report_->failure && report_->step < steps())
    keep_notice(early_end(request_.program, {.step = report_->step, .stopped = "ended"}, steps()));
  print_if_possible(stdout, "{}", folder_->totals().text());
  print_evaluation();
  if (!report_->failure) print_what_if(request_.options, *folder_);
  if (has_steps) {
    write_page();
    draw(directory_->path(), subject_,
         folder_->has_losses() || last_evaluation_ ? plots_of::losses_and_steps : plots_of::steps,
         signals_->signal_number() == 0);
  }
  if (thrown && !report_->failure)
    return refuse(request_.program, *thrown, exit_code_of(thrown->code));
  return code_of(*report_, signals_->signal_number());
}

// The exit code of a body that has returned, or thrown, before it had trained.
int running_job::code_without_training(const std::optional<error>& thrown) const {
  if (!thrown) return static_cast<int>(exit_code::finished);
  return refuse_job(request_.program, *thrown, *cluster_, signals_->signal_number(),
                    code_before_training(thrown->code));
}

// The exit code for an error before the first step, if no process is missing.
exit_code running_job::code_before_training(errc failure) const {
  if (failure == errc::user_code || failure == errc::resource) return exit_code_of(failure);
  return restores_ ? exit_code::bad_checkpoint : exit_code::usage;
}

// Prints the result of evaluating the last step, if it was evaluated.
void running_job::print_evaluation() const {
  if (!last_evaluation_ || last_evaluation_->step != report_->step) return;
  if (std::isfinite(last_evaluation_->value))
    return print_quality(subject_, last_evaluation_->value);
  if (evaluation_failed_) return; // a warning has said why
  print_notice(
    fmt::format("{}: the training has diverged: the loss of the evaluation at step {} is no finite "
                "number; a lower learning rate may help",
                request_.program, report_->step));
}

// A job that is asked to stop ends without the replays, which `troupe report` can make later.
void running_job::write_page() {
  const auto& folder = directory_->path();
  auto report
    = write_report(folder, folder / report_name, [this] { return signals_->signal_number() == 0; });
  if (!report) {
    print_if_possible(stdout, "\nno report: {}\n", report.error().message);
    return;
  }
  print_if_possible(stdout, "\nreport: {}\n", report->path.string());
  last_page_ = std::move(report->run_json);
}

int running_job::follow(const std::function<void()>& body) {
  signals_.emplace();
  announce_cluster();
  auto thrown = call(body);
  leave_cluster();
  if (!report_) return code_without_training(thrown);
  if (auto line = early_end(request_.program, *report_, steps()); !line.empty())
    print_if_possible(stderr, "{}\n", line);
  if (thrown && !report_->failure)
    return refuse(request_.program, *thrown, exit_code_of(thrown->code));
  // A worker that the job can do without has left it as it was asked to.
  auto may_leave = request_.options.min_replicas > 0 && cluster_->self().type == "worker";
  return code_of(*report_, may_leave ? 0 : signals_->signal_number());
}

int running_job::evaluate_run(const std::function<void()>& body) {
  const auto& program = request_.program;
  auto& options = request_.options;
  announce_cluster();
  auto misused = [&](const char* reason) {
    return refuse(program, error{errc::invalid_argument, reason});
  };
  auto attempt = find_attempt(options.run_dir, true, process_environment());
  if (!attempt) return refuse(program, attempt.error());
  options.run_dir = attempt->own;
  options.replicate_owners = 1; // an evaluator holds its variables itself
  if (options.run_dir.empty())
    return misused("an evaluator finds the run by its folder: give all tasks the same --run-dir");
  if (options.checkpoint_every == 0)
    return misused("an evaluator evaluates checkpoints, but --checkpoint-every 0 makes none: leave "
                   "it out");
  if (!subject_.evaluate)
    return misused("an evaluator has nothing to do here: this program evaluates nothing");
  signals_.emplace();
  print_if_possible(stderr, "evaluates {}/{}\n", options.run_dir, run_directory::checkpoint_folder);
  auto thrown = call(body);
  leave_cluster();
  if (evaluator_code_) return *evaluator_code_;
  if (!thrown) return static_cast<int>(exit_code::finished);
  return refuse(program, *thrown, code_before_training(thrown->code));
}

// @returns Why the body threw, if it did.
std::optional<error> running_job::call(const std::function<void()>& body) {
  std::optional<error> thrown;
  is_in_body_ = true;
  try {
    body();
  } catch (...) {
    thrown = reason_of(std::current_exception());
  }
  is_in_body_ = false;
  return thrown;
}

// Other processes need not wait for summary, report and plots.
void running_job::leave_cluster() {
  signals_->on_user_signal({});
  strategy_.reset();
  server_.reset();
  world_.reset();
}

void running_job::warn(const std::string& line) const {
  auto warning = fmt::format("{}: {}", request_.program, line);
  if (progress_)
    progress_->say(warning);
  else
    print_if_possible(stderr, "{}\n", warning);
}

void running_job::print_notice(const std::string& line) const {
  keep_notice(line);
  print_if_possible(stderr, "{}\n", line);
}

void running_job::keep_notice(std::string_view line) const {
  folder_->keep_notice(line);
  if (service_) service_->page->keep_notice(line);
}

// ---- objects that the options ask for ----

bool running_job::is_chief() const {
  if (!cluster_)
    throw_failure(errc::failed_precondition,
                  "job: is_chief() before the cluster was found: call it in the function given to "
                  "run, or after find_cluster()");
  return cluster_->is_chief();
}

void running_job::require_body(std::string_view call) const {
  if (is_in_body_) return;
  throw_failure(errc::failed_precondition, "job: {} {} run: call it in the function given to run",
                call, has_begun_ ? "after" : "before");
}

world& running_job::world() {
  if (world_) return *world_;
  const auto& options = request_.options;
  world_options settings{.seed = options.seed};
  auto is_virtual = options.world == world_kind::virtual_time && !cluster_->is_evaluator();
  world_ = std::make_unique<troupe::world>(is_virtual ? troupe::world::virtual_time(settings)
                                                      : troupe::world::threads(settings));
  return *world_;
}

server& running_job::server() {
  if (server_) return *server_;
  const auto& options = request_.options;
  auto settings = request_.command.server;
  settings.replicas = static_cast<uint32_t>(options.replicas);
  settings.workers_meet = replicas_meet(options.strategy);
  settings.replicate_owners = static_cast<uint32_t>(options.replicate_owners);
  settings.on_warning = [this](const std::string& line) { warn(line); };
  settings.stop = signals_->token();
  // An evaluator takes no part in the training, so it is a cluster of its own.
  server_ = std::make_unique<troupe::server>(
    world(), cluster_->is_evaluator() ? resolved_cluster::alone() : *cluster_, std::move(settings));
  server_->compare_settings(agreement_on_meeting(options.strategy, agreement_));
  return *server_;
}

strategy& running_job::strategy() {
  if (strategy_) return *strategy_;
  strategy_ = make_strategy(world(), server(), request_.options, devices_);
  check_agreement(*strategy_);
  return *strategy_;
}

void running_job::check_agreement(troupe::strategy& strategy) {
  if (!cluster_->is_evaluator()) check_same_options(strategy, agreement_);
}

training_options running_job::common_training_options() {
  const auto& options = request_.options;
  training_options training;
  training.steps = steps();
  training.agreement = agreement_;
  training.deadline = to_job_time(options.deadline_seconds);
  training.observe_period = to_job_time(options.observe_period_seconds);
  training.min_replicas = static_cast<uint32_t>(options.min_replicas);
  training.rejoin_timeout = to_job_time(options.rejoin_timeout_seconds);
  training.stops_on_loss = options.on_loss == loss_reaction::stop;
  training.check_replicas_every = options.check_replicas;
  training.pace = pace_of(options);
  training.on_warning = [this](const std::string& line) { warn(line); };
  training.on_failure = [](const error&) {}; // `early_end` names the failure
  training.stop = signals_->token();
  return training;
}

// ---- training ----

job_report running_job::train(troupe::strategy& strategy, const job_optimizer& optimizer,
                              const step_function& step) {
  if (report_ || evaluator_code_) throw_failure(errc::failed_precondition, "a job trains once");
  if (&strategy != strategy_.get()) check_agreement(strategy);
  if (cluster_->is_evaluator()) return train_as_evaluator(strategy);
  auto chosen_step = request_.options.arithmetic == arithmetic_kind::done
                       ? step
                       : waiting_step(optimizer, strategy.trainable_variables());
  if (cluster_->is_chief()) return train_as_leader(strategy, optimizer, chosen_step);
  report_ = train_with(strategy, optimizer, chosen_step, common_training_options());
  throw_unless_begun(*report_);
  if (subject_.evaluate) read_with_leader(strategy, *report_);
  return *report_;
}

job_report running_job::train_as_leader(troupe::strategy& strategy, const job_optimizer& optimizer,
                                        const step_function& step) {
  const auto& saved = beginning_.resume;
  folder_ = std::make_shared<run_folder_hook>(
    strategy, directory_->path(),
    run_folder_options{.program = request_.program,
                       .timeline_bytes_max = request_.options.timeline_bytes,
                       .ledger_bytes_max = request_.options.ledger_bytes,
                       .began = saved ? saved->time : job_time{0},
                       .measure = subject_.measure,
                       .learning_rate = rate_of(optimizer),
                       .on_warning = [this](const std::string& line) {
                         progress_->show(line); // the folder keeps it by itself
                         if (service_) service_->page->keep_notice(line);
                       }});
  progress_->keep_by([this](std::string_view line) { keep_notice(line); });
  auto options = common_training_options();
  if (saved) options.steps -= saved->step;
  options.resume = saved;
  options.hooks = leader_hooks();
  if (subject_.evaluate)
    options.evaluation
      = {.every_steps = request_.options.evaluate_every,
         .evaluate = [this](std::span<const tensor> values) { return evaluate(values); },
         .on_result =
           [this, &strategy](uint64_t step, double value) {
             keep_evaluation(step, strategy.world().now(), value);
           }};
  restores_ = saved.has_value();
  auto report = train_with(strategy, optimizer, step, options);
  restores_ = false;
  throw_unless_begun(report);
  if (subject_.evaluate) evaluate_last_step(strategy, report);
  report_ = report;
  return report;
}

// Files end after the last checkpoint, so that a run that is over has it.
std::vector<std::shared_ptr<session_hook>> running_job::leader_hooks() {
  const auto& options = request_.options;
  auto flight = std::make_shared<flight_recorder_hook>(
    directory_->flight(), [this](const std::string& line) { warn(line); });
  signals_->on_user_signal([flight] { flight->record("SIGUSR1"); });
  std::vector<std::shared_ptr<session_hook>> hooks{flight};
  if (service_) hooks.push_back(service_->server);
  if (options.checkpoint_every > 0)
    hooks.push_back(std::make_shared<checkpoint_saver_hook>(
      directory_->checkpoints(),
      checkpoint_options{.every_steps = options.checkpoint_every,
                         .keep = options.keep_checkpoints,
                         .notes = subject_.notes,
                         .on_warning = [this](const std::string& line) { warn(line); }}));
  hooks.insert(hooks.end(), hooks_.begin(), hooks_.end());
  hooks.push_back(folder_);
  if (service_) hooks.push_back(service_->page);
  hooks.push_back(progress_);
  return hooks;
}

// An evaluation that fails does not end a job: a warning says why, and its result is NaN.
double running_job::evaluate(std::span<const tensor> values) {
  expected<double> result;
  try {
    result = subject_.evaluate(values);
  } catch (...) {
    result = tl::unexpected<error>{reason_of(std::current_exception())};
  }
  evaluation_failed_ = !result;
  if (!result)
    warn(fmt::format("the held-out data were not evaluated: {}", result.error().message));
  return result.value_or(std::numeric_limits<double>::quiet_NaN());
}

void running_job::keep_evaluation(uint64_t step, job_time when, double value) {
  last_evaluation_ = {step, value};
  folder_->on_evaluation(step, when, value);
  if (service_) service_->page->on_evaluation(step, value);
}

void running_job::evaluate_last_step(troupe::strategy& strategy, job_report& report) {
  if (last_evaluation_ && last_evaluation_->step == report.step) return;
  try {
    auto values
      = mapped(strategy.variables(), [&](const auto& variable) { return strategy.read(variable); });
    keep_evaluation(report.step, strategy.world().now(), evaluate(values));
  } catch (const failure& failed) { // the process that held some variables is gone
    if (!report.failure) report.failure = failed.reason();
  }
}

// The leader reads all variables after the last step, unless that step was evaluated. To read a
// variable with parts in all processes, all of them make the call.
void running_job::read_with_leader(troupe::strategy& strategy, job_report& report) const {
  const auto period = request_.options.evaluate_every;
  auto was_evaluated = period > 0 && report.step % period == 0;
  if (was_evaluated || report.failure || !strategy.layout().group) return;
  try {
    for (const auto& variable : strategy.variables())
      if (variable.synchronization() == variable_synchronization::on_read)
        static_cast<void>(strategy.read(variable));
  } catch (const failure& failed) {
    report.failure = failed.reason();
  }
}

job_report running_job::train_as_evaluator(const troupe::strategy& strategy) {
  const auto& options = request_.options;
  auto evaluate = [&](const found_checkpoint& found) {
    if (subject_.can_evaluate) value_or_throw(subject_.can_evaluate(found));
    auto values = value_or_throw(values_in(found.snapshot, strategy.variables()));
    return value_or_throw(subject_.evaluate(values));
  };
  auto report = run_evaluator(
    {.program = request_.program,
     .run = options.run_dir,
     .chief = chief_text(*cluster_),
     .evaluate = evaluate,
     .measure = subject_.measure,
     .last_step = steps(),
     .start_deadline = request_.command.server.start_deadline,
     .timeout = to_job_time(2 * options.deadline_seconds + options.rejoin_timeout_seconds),
     .stop = signals_->token()});
  print_if_possible(stderr, "{}: {}\n", request_.program, end_text(report));
  evaluator_code_ = code_of(report, signals_->signal_number());
  return {.step = report.last_step.value_or(0), .failure = report.failure};
}

} // namespace troupe
