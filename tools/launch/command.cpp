// SPDX-License-Identifier: Apache-2.0
// From the words to the job.
#include "tools/launch/command.hpp"

#include "strategies/jobs/exit_codes.hpp"
#include "tools/launch/free_ports.hpp"
#include "tools/launch/job.hpp"
#include "tools/options/help.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <random>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace {

std::string drawn_job_id() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}", source(), source());
}

expected<std::optional<kill_choice>> kills_of(const launch_options& options,
                                              std::span<const launch_task> tasks) {
  if (!options.kill_every) return std::nullopt;
  auto seed = options.kill_seed.value_or(std::random_device{}());
  return kill_choice::among(tasks, options.kill_tasks, seed).map([](auto choice) {
    return std::optional{std::move(choice)};
  });
}

// If we were started without some of them, our pipes would be taken for them.
void open_standard_descriptors() {
  int opened = ::open("/dev/null", O_RDWR);
  while (opened >= 0 && opened <= STDERR_FILENO)
    opened = ::dup(opened);
  if (opened > STDERR_FILENO) ::close(opened);
}

} // namespace

int launch_command_main(int argument_count, const char* const* arguments) {
  auto options = parse_launch_options(argument_count, arguments);
  if (auto code = answered("launch", options)) return *code;
  open_standard_descriptors();
  auto ports = free_ports(task_count(*options));
  if (!ports) return refuse("launch", ports.error());
  auto notices = notice_socket::open();
  if (!notices) return refuse("launch", notices.error());
  auto tasks = launch_tasks(*options, *ports);
  auto kills = kills_of(*options, tasks);
  if (!kills) return refuse("launch", kills.error());
  launch_job job{*options, std::move(tasks), std::move(*notices), std::move(*kills)};
  auto job_id = options->job_id.empty() ? drawn_job_id() : options->job_id;
  if (auto started = job.start(job_id); !started) return refuse("launch", started.error());
  return job.run();
}

} // namespace troupe
