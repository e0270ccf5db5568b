// SPDX-License-Identifier: Apache-2.0
// The command `troupe train`: check everything, announce, run, sum up, draw.
#include "tools/train/command.hpp"

#include "actors/net/host_port.hpp"
#include "actors/net/sockets/name_lookup.hpp"
#include "actors/world/compute_device.hpp"
#include "kernels/math/matmul.hpp"
#include "messages/failure.hpp"
#include "simulation/scenario.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/jobs/flight_recorder_hook.hpp"
#include "strategies/jobs/metrics_server_hook.hpp"
#include "tools/options/help.hpp"
#include "tools/report/report.hpp"
#include "tools/run/plots.hpp"
#include "tools/run/restart.hpp"
#include "tools/run/run_directory.hpp"
#include "tools/run/run_recorder.hpp"
#include "tools/system/signal_watch.hpp"
#include "tools/train/checks.hpp"
#include "tools/train/command_line.hpp"
#include "tools/train/devices.hpp"
#include "tools/train/evaluator_command.hpp"
#include "tools/train/job.hpp"
#include "tools/train/learning_problem.hpp"
#include "tools/train/plan.hpp"
#include "tools/train/saved_job.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <map>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace {

constexpr uint64_t what_if_steps_max = 2000; // simulated for the comparison of policies

/// What a run works on.
struct run_input {
  train_command command;
  resolved_cluster cluster;
  learning_problem problem;
  train_devices devices;
};

/// Everything that has to be right before a run may write its first byte.
struct prepared_run : run_input {
  comparison others;
  std::optional<job_snapshot> resume;
  std::shared_ptr<metrics_server_hook> metrics; ///< Null if the job is not served.
  run_directory directory;
};

expected<run_directory> make_directory(const train_command& command) {
  auto config = config_text(command.options, command.origins, false);
  if (command.options.run_dir.empty())
    return run_directory::create_dated("runs", std::chrono::system_clock::now(), config);
  return run_directory::create(command.options.run_dir, config);
}

expected<run_input> load(train_command command, resolved_cluster cluster) {
  auto problem = load_problem(command.options);
  if (!problem) return tl::unexpected<error>(problem.error());
  auto devices = find_devices(command.options, cluster);
  if (!devices) return tl::unexpected<error>(devices.error());
  return run_input{std::move(command), std::move(cluster), std::move(*problem),
                   std::move(*devices)};
}

expected<std::shared_ptr<metrics_server_hook>> serve(const train_options& options) {
  if (!options.metrics_port) return nullptr;
  try {
    return std::make_shared<metrics_server_hook>(http_server_options{
      .address = options.metrics_address, .port = static_cast<uint16_t>(*options.metrics_port)});
  } catch (const failure& failed) {
    return fail(errc::resource,
                fmt::format("--metrics-port, --metrics-address: {}", failed.reason().message));
  }
}

void announce(const resolved_cluster& cluster) {
  if (cluster.is_alone()) return;
  fmt::print(stderr, "cluster   {} of {} tasks, says {}\n", to_string(cluster.self()),
             cluster.tasks.size(), cluster.source);
}

// How more gradients than replicas come about.
std::string gradients_of_each(const train_options& options) {
  if (options.aggregate <= options.replicas) return {};
  return fmt::format(
    "          more gradients than replicas: an update takes several of a replica, "
    "{:.2g} on average\n",
    static_cast<double>(options.aggregate) / static_cast<double>(options.replicas));
}

void announce(const prepared_run& run) {
  const auto& options = run.command.options;
  const auto& model = run.problem.model;
  const auto& data = run.problem.data;
  auto how = replicas_meet(options.strategy)
               ? fmt::format("strategy {}", to_string(options.strategy))
               : fmt::format("policy {}", to_string(options.policy));
  fmt::print(stderr,
             "{:<9} {}: {}\n"
             "model     {}: {} parameters\n"
             "job       {} replicas, {} gradients an update, {}, {} steps\n"
             "{}"
             "files     {}\n",
             data.kind, data.place, data.sizes, model.description, element_count(model.variables),
             options.replicas, options.aggregate, how, step_count(options, run.problem),
             gradients_of_each(options), run.directory.path().string());
  if (run.devices.computing.empty())
    fmt::print(stderr, "cpu       matrix products by {}, one thread for each replica\n",
               cpu::matmul_instructions());
  for (const auto& device : run.devices.computing)
    fmt::print(stderr, "device    {}\n", device->name());
  announce(run.cluster);
  if (run.metrics)
    fmt::print(stderr, "metrics   http://{0}/metrics, or: troupe top {0}\n",
               run.metrics->endpoint());
  if (run.resume)
    fmt::print(stderr, "resume    {} from step {}\n", options.resume, run.resume->step);
}

void print_quality(const train_result& result, const learning_problem& problem,
                   const comparison& others) {
  fmt::print("\n{}, {}\n"
             "  this model   {:.3f}\n"
             "{}",
             problem.measure.held_out, problem.measure.words, result.quality, others.lines);
}

double mean_step(const train_options& options, sync_policy policy, uint64_t steps,
                 const run_recorder& recorder) {
  scenario same_times{.sync = {static_cast<uint32_t>(options.aggregate),
                               static_cast<uint32_t>(options.replicas), policy},
                      .steps = std::min(steps, what_if_steps_max),
                      .compute = replayed_times(recorder.computing_times()),
                      .seed = options.seed};
  return simulate(same_times).mean_step_seconds();
}

// Under `tensorflow` leftover tokens go stale; a user of backups should hear what that costs.
void print_what_if(const train_options& options, uint64_t steps, const run_recorder& recorder) {
  if (options.policy != sync_policy::tensorflow || steps == 0
      || options.aggregate >= options.replicas)
    return;
  auto as_it_was = mean_step(options, sync_policy::tensorflow, steps, recorder);
  auto other = mean_step(options, sync_policy::latest_token, steps, recorder);
  fmt::print(
    "\npolicy: simulated with these computing times, a step takes {:.1f} ms under tensorflow\n"
    "and {:.1f} ms under latest_token\n",
    1e3 * as_it_was, 1e3 * other);
}

void draw(const prepared_run& run) {
  const auto& folder = run.directory.path();
  auto written = write_plot_scripts(folder, run.problem.measure, run.others.baselines);
  auto drawn = written.and_then([&] { return draw_plots(folder); });
  if (drawn) {
    fmt::print("\nplots: {0}/loss.svg {0}/steps.svg; open {0}/timeline.json in "
               "https://ui.perfetto.dev\n",
               folder.string());
    return;
  }
  fmt::print("\nno plots: {}; to draw them type\n  {}\n", drawn.error().message,
             plot_command(folder));
}

// A job that cannot begin for want of others is neither wrong nor lost.
bool is_about_others(errc code) {
  return code == errc::deadline_exceeded || code == errc::failed_precondition
         || code == errc::unavailable;
}

int code_of(const job_report& report, int signal_number) {
  if (signal_number != 0) return exit_code_of_signal(signal_number);
  if (!report.failure) return static_cast<int>(exit_code::finished);
  auto code = report.failure->code;
  auto is_formed = report.has_begun || !is_about_others(code);
  return static_cast<int>(is_formed ? exit_code_of(code) : exit_code::no_cluster);
}

exit_code code_of_failure(const failure& failed, const resolved_cluster& cluster,
                          exit_code otherwise) {
  auto is_formed = cluster.is_alone() || !is_about_others(failed.reason().code);
  return is_formed ? otherwise : exit_code::no_cluster;
}

// The chief dials no task, so it has not noticed if a task that it waits for is at a host that does
// not exist.
error with_unknown_hosts(error reason, const resolved_cluster& cluster) {
  if (reason.code != errc::deadline_exceeded || !cluster.is_chief()) return reason;
  std::map<std::string, uint16_t> hosts; // with any port there
  for (const auto& task : cluster.tasks)
    if (auto at = parse_host_port(task.address);
        at && reason.message.find(task.address) != std::string::npos)
      hosts.emplace(at->host, at->port);
  for (const auto& [host, port] : hosts)
    if (auto found = look_up(host, std::to_string(port), std::chrono::seconds{2}); !found)
      reason.message += "; " + found.error().message;
  return reason;
}

// What kept a job from beginning, if it was not a signal.
int refuse_job(const failure& failed, const resolved_cluster& cluster, const signal_watch& signals,
               exit_code otherwise) {
  auto is_asked = failed.reason().code == errc::cancelled && signals.signal_number() != 0;
  if (!is_asked)
    return refuse("train", with_unknown_hosts(failed.reason(), cluster),
                  code_of_failure(failed, cluster, otherwise));
  fmt::print(stderr, "troupe train: asked to stop before the job had begun\n");
  return exit_code_of_signal(signals.signal_number());
}

// Why a job has ended before its last step; empty if it has not.
std::string early_end(const job_report& report, uint64_t steps) {
  if (report.failure) return fmt::format("troupe train: {}", report.failure->message);
  if (!report.stopped) return {};
  return fmt::format("troupe train: {} after step {} of {}", *report.stopped, report.step, steps);
}

void print_end(const job_report& report, uint64_t steps) {
  if (auto line = early_end(report, steps); !line.empty()) fmt::print(stderr, "{}\n", line);
}

// A job that is asked to stop ends without the replays, which `troupe report` can make later.
void report_on(const prepared_run& run, const run_recorder& recorder, const signal_watch& signals) {
  if (recorder.totals().step_times().count() == 0) return;
  const auto& folder = run.directory.path();
  auto report = write_report(folder, folder / report_name,
                             [&signals] { return signals.signal_number() == 0; });
  if (report)
    fmt::print("report: {}\n", report->path.string());
  else
    fmt::print("no report: {}\n", report.error().message);
}

// The new folder can be gone on with from the first moment on, and shows no half of a checkpoint.
void hand_over_checkpoint(const prepared_run& run) {
  if (!run.resume) return;
  auto name = fmt::format("checkpoint-{}.safetensors", run.resume->step);
  auto from = std::filesystem::path{run.command.options.resume} / run_directory::checkpoint_folder;
  std::error_code ignored; // then the next checkpoint is the first
  std::filesystem::create_directories(run.directory.checkpoints(), ignored);
  auto partial = run.directory.checkpoints() / fmt::format(".{}.partial", name);
  if (std::filesystem::copy_file(from / name, partial, ignored))
    std::filesystem::rename(partial, run.directory.checkpoints() / name, ignored);
}

// Hooks that look on without taking part.
std::vector<std::shared_ptr<session_hook>> onlookers(const prepared_run& run, signal_watch& signals,
                                                     run_recorder& recorder) {
  auto flight = std::make_shared<flight_recorder_hook>(
    run.directory.flight(),
    [&recorder](const std::string& line) { recorder.say("troupe train: " + line); });
  signals.on_user_signal([flight] { flight->record("SIGUSR1"); });
  if (!run.metrics) return {flight};
  return {flight, run.metrics};
}

// A job that made no step leaves nothing behind that would keep the next attempt from beginning.
// Errors: throws `failure` if it did not begin.
train_result run_or_take_back(const prepared_run& run, run_recorder& recorder,
                              const train_surroundings& surroundings) {
  try {
    auto result = run_train_job(run.command.options, surroundings);
    if (result.report.has_begun) return result;
    throw failure{result.report.failure.value_or(error{errc::cancelled, "asked to stop"})};
  } catch (const failure&) {
    recorder.finish();
    if (!run.cluster.is_alone() && recorder.totals().step_times().count() == 0)
      run.directory.take_back();
    throw;
  }
}

std::vector<std::string> variable_names(const learning_problem& problem) {
  std::vector<std::string> names;
  for (const auto& variable : problem.model.variables)
    names.push_back(variable.name);
  return names;
}

int run(const prepared_run& run, signal_watch& signals) {
  const auto& options = run.command.options;
  const auto steps = step_count(options, run.problem);
  const auto plan = value_or_throw(plan_of(options, steps));
  auto recorder = run_recorder::create(
    run.directory,
    {.step_count = steps,
     .replica_count = static_cast<uint32_t>(options.replicas),
     .variables = variable_names(run.problem),
     .timeline_bytes_max = options.timeline_bytes,
     .began = run.resume ? run.resume->time : job_time{0},
     .learning_rate = [&plan](uint64_t step) { return learning_rate_at(plan, step); },
     .measure = run.problem.measure});
  if (!recorder) {
    run.directory.take_back();
    return refuse("train", recorder.error());
  }
  announce(run);
  hand_over_checkpoint(run);
  auto result = run_or_take_back(run, **recorder,
                                 {.problem = run.problem,
                                  .cluster = {run.cluster, run.command.server, run.devices},
                                  .recorder = **recorder,
                                  .checkpoints = run.directory.checkpoints(),
                                  .resume = run.resume,
                                  .stop = signals.token(),
                                  .onlookers = onlookers(run, signals, **recorder)});
  signals.on_user_signal({});
  if (auto line = early_end(result.report, steps); !line.empty()) (*recorder)->keep_notice(line);
  (*recorder)->finish();
  print_end(result.report, steps);
  fmt::print("{}", (*recorder)->totals().text());
  if (!std::isnan(result.quality)) print_quality(result, run.problem, run.others);
  if (!result.report.failure) print_what_if(options, result.report.step, **recorder);
  draw(run);
  report_on(run, **recorder, signals);
  return code_of(result.report, signals.signal_number());
}

// The part of a process that has its chief elsewhere: it writes no files, and ends as the job does.
int follow(const run_input& input, signal_watch& signals) {
  const auto& options = input.command.options;
  announce(input.cluster);
  auto report = follow_train_job(
    options, input.problem, {input.cluster, input.command.server, input.devices}, signals.token());
  print_end(report, step_count(options, input.problem));
  return code_of(report, signals.signal_number());
}

ptrdiff_t ps_count(const resolved_cluster& cluster) {
  return std::ranges::count(cluster.tasks, "ps", &cluster_task::type);
}

// No parameter server holds two copies of a variable.
expected<void> check_owner_copies(const train_command& command, const resolved_cluster& cluster) {
  const auto copies = command.options.replicate_owners;
  if (copies == 1 || std::cmp_less_equal(copies, ps_count(cluster))) return {};
  auto who = cluster.is_alone() ? std::string{"this process is alone"}
                                : fmt::format("{} names {}", cluster.source, ps_count(cluster));
  return fail(errc::invalid_argument,
              fmt::format("{0} {1} takes {1} parameter servers or more, but {2}; start them, as "
                          "with troupe launch --ps {1}, or leave it out",
                          spelling(command.origins, "replicate-owners"), copies, who));
}

// Why a strategy has nothing to do with a cluster, if that is so.
std::string misfit(const train_options& options, const resolved_cluster& cluster) {
  if (options.strategy == strategy_kind::mirrored)
    return fmt::format("--strategy mirrored is for one process, but {} names a cluster of {} "
                       "tasks; take multi_worker_mirrored",
                       cluster.source, cluster.tasks.size());
  auto ps = ps_count(cluster);
  if (ps > 0 && replicas_meet(options.strategy))
    return fmt::format("--strategy {} has no use for parameter servers, but {} names {}; leave "
                       "them out, or take parameter_server",
                       to_string(options.strategy), cluster.source, ps);
  return {};
}

// A cluster that is there, and options that go with it.
expected<resolved_cluster> find_cluster(train_command& command) {
  auto cluster = resolve(command.cluster, process_environment());
  if (cluster.has_problem()) return fail(errc::invalid_argument, cluster.problem_line());
  if (auto held = check_owner_copies(command, cluster); !held)
    return tl::unexpected<error>(held.error());
  if (cluster.training_task_count() == 1) return cluster;
  if (command.options.world == world_kind::virtual_time)
    return fail(errc::invalid_argument,
                fmt::format("--world virtual is for one process, but {} names a cluster of {} "
                            "tasks; troupe sim has clusters in virtual time",
                            cluster.source, cluster.tasks.size()));
  if (auto refused = misfit(command.options, cluster); !refused.empty())
    return fail(errc::invalid_argument, refused);
  auto workers = std::ranges::count_if(cluster.tasks, [](const cluster_task& task) {
    return task.type == "chief" || task.type == "worker";
  });
  auto sharers = static_cast<uint64_t>(std::max<ptrdiff_t>(1, workers));
  fit(command.options, command.origins, sharers);
  if (command.options.replicas % sharers != 0)
    return fail(errc::invalid_argument,
                fmt::format("--replicas {} cannot be shared evenly by {} workers (a chief is one), "
                            "which {} names; give a multiple of {}",
                            command.options.replicas, sharers, cluster.source, sharers));
  return check(command.options, command.origins).map([&] { return cluster; });
}

// A job that is started again goes on with what its last attempt that has saved anything has left.
expected<std::optional<job_snapshot>> find_beginning(train_options& options,
                                                     const learning_problem& problem,
                                                     const attempt_folders& attempts) {
  const auto steps = step_count(options, problem);
  auto asked_for = options.resume;
  for (const auto& folder : attempts.earlier) {
    options.resume = folder;
    auto found = find_resumed(options, problem, steps);
    if (found || found.error().code != errc::not_found) return found;
  }
  options.resume = asked_for;
  return find_resumed(options, problem, steps);
}

int lead(run_input input) {
  auto& options = input.command.options;
  auto others = input.problem.compare();
  if (!others) return refuse("train", others.error());
  auto attempts
    = find_attempt(options.run_dir, input.cluster.has_evaluator(), process_environment());
  if (!attempts) return refuse("train", attempts.error());
  options.run_dir = attempts->own;
  auto resume = find_beginning(options, input.problem, *attempts);
  if (!resume) return refuse("train", resume.error(), exit_code::bad_checkpoint);
  auto metrics = serve(options);
  if (!metrics) return refuse("train", metrics.error());
  auto directory = make_directory(input.command);
  if (!directory) return refuse("train", directory.error());
  auto code_of_refusal = *resume ? exit_code::bad_checkpoint : exit_code::usage;
  prepared_run prepared{std::move(input), std::move(*others), std::move(*resume),
                        std::move(*metrics), std::move(*directory)};
  signal_watch signals;
  try {
    return run(prepared, signals);
  } catch (const failure& failed) {
    return refuse_job(failed, prepared.cluster, signals, code_of_refusal);
  }
}

} // namespace

int train_command_main(int argument_count, const char* const* arguments) {
  auto command = parse_train_options(argument_count, arguments);
  if (auto code = answered("train", command)) return *code;
  auto cluster = find_cluster(*command);
  if (!cluster) return refuse("train", cluster.error());
  auto input = load(std::move(*command), std::move(*cluster));
  if (!input) return refuse("train", input.error());
  if (input->cluster.is_chief()) return lead(std::move(*input));
  if (input->cluster.is_evaluator()) {
    announce(input->cluster);
    return evaluator_command(input->command, input->cluster, input->problem);
  }
  signal_watch signals;
  try {
    return follow(*input, signals);
  } catch (const failure& failed) {
    return refuse_job(failed, input->cluster, signals, exit_code::usage);
  }
}

} // namespace troupe
