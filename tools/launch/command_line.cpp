// SPDX-License-Identifier: Apache-2.0
// The options of `troupe launch`, and checks of their relations.
#include "tools/launch/command_line.hpp"

#include "actors/recording/seconds.hpp"
#include "tools/launch/tasks.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/help.hpp"
#include "tools/options/restart_limit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

namespace troupe {

namespace {

constexpr size_t job_id_letters_max = 64;

// In the order of fold_choice.
constexpr std::array<std::string_view, 3> fold_names{"auto", "always", "never"};

constexpr std::string_view launch_sample = "troupe launch -n 4 -- PROGRAM ARGUMENTS";
constexpr const char* launch_introduction
  = "Starts a program once for each task of a job, on this machine, and waits for\n"
    "all. Each line of output says which task wrote it. When one fails, the others\n"
    "are ended, and the first is named.\n"
    "\n"
    "Usage: troupe launch -n N [OPTIONS] -- PROGRAM [ARGUMENTS]\n"
    "       troupe launch --task TYPE:INDEX [OPTIONS] -- PROGRAM [ARGUMENTS]\n";

expected<void> check_task(const launch_options& options) {
  if (auto task = parse_task_name(options.task); !task) return fail_at("--task", task.error());
  if (options.workers > 0 || options.parameter_servers > 0 || options.chief || options.evaluator
      || options.spares_workers || options.spares_ps)
    return misuse("--task starts one task of a job whose other tasks are started elsewhere: leave "
                  "out -n, --ps, --chief, --evaluator, --spare-workers and --spare-ps");
  if (options.collect_output && options.send_output)
    return misuse("give --collect-output where lines are printed, or --send-output elsewhere");
  return {};
}

expected<void> check(const launch_options& options) {
  if (options.insecure_network && !options.collect_output)
    return misuse("--insecure-network says where --collect-output may listen: give that, too");
  if (!options.kill_every && (!options.kill_tasks.empty() || options.kill_seed))
    return misuse("--kill-tasks and --kill-seed say how --kill-every kills: give that, too");
  if (!options.task.empty()) return check_task(options);
  if (options.workers == 0)
    return misuse(fmt::format("how many workers? Say -n: {}", launch_sample));
  if (options.collect_output || options.send_output)
    return misuse("--collect-output and --send-output are for a launcher of one task, on each host "
                  "of a job: say which with --task worker:1");
  auto count = task_count(options);
  if (count <= launch_tasks_max) return {};
  return misuse(fmt::format("{} tasks are too many for one machine: {} at most, including "
                            "those that are not workers",
                            count, launch_tasks_max));
}

option_value job_id_value(std::string& place) {
  return single_value(
    place, toml_form::text,
    fmt::format("at most {} letters, digits, '-', '_' and '.'", job_id_letters_max),
    [](const std::string& text) { return is_job_id(text) ? std::optional{text} : std::nullopt; },
    [](const std::string& text) { return text; });
}

option_value address_value(std::optional<host_port>& place) {
  return parsed_value(place, [](const std::string& text) {
    return parse_host_port(text).map([](host_port at) { return std::optional{std::move(at)}; });
  });
}

option_value interval_value(std::optional<std::chrono::milliseconds>& place) {
  constexpr option_range range{.low = 0.001, .high = 86'400};
  return single_value(
    place, toml_form::number, "seconds " + to_string(range),
    [range](std::string_view text) {
      if (text.ends_with('s')) text.remove_suffix(1); // 30s
      auto seconds = real_of(text, range);
      return seconds ? std::optional{std::chrono::milliseconds{std::llround(*seconds * 1000)}}
                     : std::nullopt;
    },
    [](std::chrono::milliseconds time) { return fmt::format("{}", seconds(time)); });
}

void add_options(command_options& all, launch_options& options) {
  all.add("-n,--workers", "N", "how many workers",
          unwritten(whole_value(options.workers, {1, launch_tasks_max})));
  all.add("--ps", "N", "parameter servers beside them",
          whole_value(options.parameter_servers, {0, launch_tasks_max}));
  all.add("--task", "TYPE:INDEX",
          "instead: start this task alone, of a job that is spread over hosts; the program finds "
          "the others by its own options or by what stands in the environment",
          text_value(options.task), "all tasks of a job");
  all.add_flag("--chief", options.chief, "a chief beside them [worker 0 is the chief]");
  all.add_flag("--evaluator", options.evaluator,
               "a process that evaluates checkpoints; the others go on without it if it fails");
  all.add("--log-dir", "DIR",
          "also write the output of each task to a file there, such as worker-2.log; an older "
          "file is replaced",
          text_value(options.log_dir), "none");
  all.add("--fold", "WHEN",
          "print a line only once if several tasks write it within half a second: auto (on a "
          "terminal), always, never",
          choice_value(options.fold, fold_names));
  all.add("--grace", "SECONDS", "how long tasks may take to end before they are killed",
          seconds_value(options.grace, {0, 86'400}));
  all.add("--restart", "N",
          "restart a worker that fails, or all tasks if the job cannot go on without the failed "
          "one: N restarts in all",
          whole_value(options.restarts, {0, restarts_max}));
  all.add_flag("--spare-workers", options.spares_workers,
               "let the job go on if a worker fails that is not its chief; a job of Troupe that "
               "may go on, as with backups, says so itself");
  all.add_flag("--spare-ps", options.spares_ps,
               "let the job go on if a parameter server fails, as with troupe train "
               "--replicate-owners 2; --restart starts it again like a worker");
  all.add("--collect-output", "HOST:PORT",
          "with --task: listen there, and print what tasks of other hosts write, too",
          address_value(options.collect_output), "no");
  all.add("--send-output", "HOST:PORT",
          "with --task: send what the task writes to the launcher that listens there",
          address_value(options.send_output), "no");
  all.add_flag(
    "--insecure-network", options.insecure_network,
    "let --collect-output listen beyond this machine, where every machine can write to it");
  all.add("--kill-every", "SECONDS",
          "test what a job does when it loses tasks: kill one, chosen at random, so often; with "
          "--restart it is started again like a task that fails",
          interval_value(options.kill_every), "none is killed");
  all.add("--kill-tasks", "TASKS", "of these types or names: worker,ps:0",
          text_value(options.kill_tasks), "workers other than the chief");
  all.add("--kill-seed", "N", "choose the same tasks again, as far as they run",
          whole_value(options.kill_seed, {.low = 0, .high = 1ULL << 53}), "drawn");
  all.add("--job-id", "ID", "name of the job", job_id_value(options.job_id), "drawn");
  all.add_help(options.answer);
}

std::string launch_environment() {
  return "\nIn a task's environment:\n"
         + help_entry(
           "TF_CONFIG",
           "all tasks with their addresses on 127.0.0.1, and which one this is; not with "
           "--task")
         + help_entry("TROUPE_JOB_ID", "the same in all tasks")
         + help_entry("TROUPE_RESTART_COUNT", "with --restart: how often all were started before")
         + help_entry("TROUPE_LAUNCHER", "where the job may say that it goes on without some tasks")
         + help_entry("OMP_NUM_THREADS", "the processors over the tasks, unless it is set")
         + "\nSignals:\n"
         + help_entry("SIGINT, SIGTERM, SIGHUP, SIGQUIT",
                      "passed on to all tasks and what they have started, SIGQUIT as SIGTERM; a "
                      "second one kills them")
         + help_entry("SIGUSR1, SIGUSR2", "passed on to all tasks")
         + "\nExit codes:\n"
           "  0      all tasks finished, but for those that the job could do without\n"
           "  2      an argument is invalid, or a task could not be started\n"
           "  other  the exit code of the task that failed first; 128+n if signal n ended it\n";
}

} // namespace

bool is_job_id(std::string_view text) {
  auto is_allowed = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')
           || (letter >= '0' && letter <= '9') || letter == '-' || letter == '_' || letter == '.';
  };
  return !text.empty() && text.size() <= job_id_letters_max
         && std::ranges::all_of(text, is_allowed);
}

expected<launch_options> parse_launch_options(int argument_count, const char* const* arguments) {
  std::span words{arguments, static_cast<size_t>(argument_count)};
  const auto dashes = std::ranges::find(words, std::string_view{"--"});
  launch_options options;
  command_options all{launch_introduction,
                      fmt::format("the program follows --, as in {}", launch_sample),
                      launch_environment()};
  add_options(all, options);
  auto parsed = all.parse(static_cast<int>(dashes - words.begin()), arguments);
  if (!parsed) return tl::unexpected<error>(parsed.error());
  if (!options.answer.empty()) return options;
  if (dashes == words.end())
    return misuse(fmt::format("which program? It follows --, as in {}", launch_sample));
  auto settled = all.store_given().and_then([&] { return check(options); });
  if (!settled) return tl::unexpected<error>(settled.error());
  options.program.assign(dashes + 1, words.end());
  if (options.program.empty() || options.program[0].empty())
    return misuse(fmt::format("there is no program behind --, as in {}", launch_sample));
  return options;
}

} // namespace troupe
