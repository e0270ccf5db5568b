// SPDX-License-Identifier: Apache-2.0
// Makes the job that a command line asks for, and runs it.
#include "tools/launch/command.hpp"

#include "strategies/jobs/exit_codes.hpp"
#include "tools/launch/free_ports.hpp"
#include "tools/launch/job.hpp"
#include "tools/options/help.hpp"

#include <fmt/format.h>
#include <random>
#include <utility>

namespace troupe {

namespace {

std::string drawn_job_id() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}", source(), source());
}

expected<std::vector<launch_task>> tasks_of(const launch_options& options) {
  if (!options.task.empty())
    return parse_task_name(options.task).map([](const launch_task& task) {
      return std::vector{task};
    });
  return free_ports(task_count(options)).map([&](const std::vector<uint16_t>& ports) {
    return launch_tasks(options, ports);
  });
}

expected<std::optional<kill_plan>> kills_of(const launch_options& options,
                                            std::span<const launch_task> tasks) {
  if (!options.kill_every) return std::nullopt;
  auto seed = options.kill_seed.value_or(std::random_device{}());
  return kill_choice::among(tasks, options.kill_tasks, seed).map([&](kill_choice choice) {
    return std::optional{kill_plan{*options.kill_every, std::move(choice)}};
  });
}

} // namespace

int launch_command_main(int argument_count, const char* const* arguments) {
  auto options = parse_launch_options(argument_count, arguments);
  if (auto code = answered("troupe launch", options)) return *code;
  auto tasks = tasks_of(*options);
  if (!tasks) return refuse("troupe launch", tasks.error());
  auto notices = notice_socket::open();
  if (!notices) return refuse("troupe launch", notices.error());
  auto kills = kills_of(*options, *tasks);
  if (!kills) return refuse("troupe launch", kills.error());
  auto is_whole_job = options->task.empty();
  if (options->job_id.empty() && is_whole_job) options->job_id = drawn_job_id();
  launch_job job{*options, *tasks, std::move(*notices), std::move(*kills)};
  if (auto started = job.start(); !started) return refuse("troupe launch", started.error());
  return job.run();
}

} // namespace troupe
