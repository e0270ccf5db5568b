// SPDX-License-Identifier: Apache-2.0
// Turns reports and figures into lines, plots and exit codes.
#include "tools/job/job_end.hpp"

#include "actors/net/host_port.hpp"
#include "actors/net/sockets/name_lookup.hpp"
#include "simulation/scenario.hpp"
#include "tools/options/help.hpp"
#include "tools/run/plots.hpp"
#include "tools/system/standard_streams.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <map>
#include <string>

namespace troupe {

namespace {

constexpr uint64_t what_if_steps_max = 2000; // simulated for the comparison of policies

// Adds the hosts that cannot be found. The chief dials no task, so it has not noticed that a task
// that it waits for is at such a host.
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

double mean_step(const job_options& options, sync_policy policy, const run_folder_hook& run) {
  auto sync = sync_of(options);
  if (policy != options.policy)
    sync = {sync.replicas_to_aggregate, sync.total_num_replicas, policy};
  scenario same_times{.sync = sync,
                      .steps = std::min(run.totals().step_times().count(), what_if_steps_max),
                      .compute = replayed_times(run.computing_times()),
                      .seed = options.seed};
  return simulate(same_times).mean_step_seconds();
}

} // namespace

int code_of(const job_report& report, int signal_number) {
  if (signal_number != 0) return exit_code_of_signal(signal_number);
  return static_cast<int>(exit_code_of(report));
}

int refuse_job(std::string_view program, const error& reason, const resolved_cluster& cluster,
               int signal_number, exit_code otherwise) {
  if (reason.code == errc::cancelled && signal_number != 0) {
    print_if_possible(stderr, "{}: asked to stop before the job had begun\n", program);
    return exit_code_of_signal(signal_number);
  }
  auto is_of_checkpoint
    = otherwise == exit_code::bad_checkpoint && reason.code == errc::failed_precondition;
  auto is_formed = cluster.is_alone() || is_of_checkpoint || !is_about_others(reason.code);
  return refuse(program, with_unknown_hosts(reason, cluster),
                is_formed ? otherwise : exit_code::no_cluster);
}

std::string early_end(std::string_view program, const job_report& report, uint64_t steps) {
  if (report.failure) return fmt::format("{}: {}", program, report.failure->message);
  if (!report.stopped) return {};
  return fmt::format("{}: {} after step {} of {}", program, *report.stopped, report.step, steps);
}

void print_quality(const job_subject& subject, double quality) {
  print_if_possible(stdout,
                    "\n{}, {}\n"
                    "  this model   {:.3f}\n"
                    "{}",
                    subject.measure.held_out, subject.measure.words, quality, subject.others);
}

void print_what_if(const job_options& options, const run_folder_hook& run) {
  if (options.policy != sync_policy::tensorflow || run.totals().step_times().count() == 0
      || options.aggregate >= options.replicas)
    return;
  auto tensorflow = mean_step(options, sync_policy::tensorflow, run);
  auto latest_token = mean_step(options, sync_policy::latest_token, run);
  print_if_possible(
    stdout,
    "\npolicy: simulated with these computing times, and a core for each replica, a step takes\n"
    "{:.1f} ms under tensorflow and {:.1f} ms under latest_token\n",
    1e3 * tensorflow, 1e3 * latest_token);
}

void draw(const std::filesystem::path& folder, const job_subject& subject, plots_of plots,
          bool is_wanted) {
  if (auto written = write_plot_scripts(folder, subject.measure, subject.baselines); !written)
    return print_if_possible(stdout, "no plots: {}\n", written.error().message);
  auto drawn = is_wanted ? draw_plots(folder, plots)
                         : expected<void>{fail(errc::cancelled, "the run was asked to stop")};
  if (drawn) {
    print_if_possible(
      stdout, "plots: {1}{0}/steps.svg; open {0}/timeline.json in https://ui.perfetto.dev\n",
      folder.string(), plots == plots_of::steps ? std::string{} : folder.string() + "/loss.svg ");
    return;
  }
  print_if_possible(stdout, "no plots: {}; to draw them type\n  {}\n", drawn.error().message,
                    plot_command(folder, plots));
}

} // namespace troupe
