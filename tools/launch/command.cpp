// SPDX-License-Identifier: Apache-2.0
// From the words to the job.
#include "tools/launch/command.hpp"

#include "strategies/jobs/exit_codes.hpp"
#include "tools/launch/free_ports.hpp"
#include "tools/launch/job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <random>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace {

int refuse_launch(const error& reason) {
  fmt::print(stderr, "troupe launch: {}\n", reason.message);
  return static_cast<int>(exit_code::usage);
}

std::string drawn_job_id() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}", source(), source());
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
  if (!options) return refuse_launch(options.error());
  if (!options->answer.empty()) {
    fmt::print("{}", options->answer);
    return static_cast<int>(exit_code::finished);
  }
  open_standard_descriptors();
  auto ports = free_ports(task_count(*options));
  if (!ports) return refuse_launch(ports.error());
  auto notices = notice_socket::open();
  if (!notices) return refuse_launch(notices.error());
  launch_job job{*options, launch_tasks(*options, *ports), std::move(*notices)};
  auto job_id = options->job_id.empty() ? drawn_job_id() : options->job_id;
  if (auto started = job.start(job_id); !started) return refuse_launch(started.error());
  return job.run();
}

} // namespace troupe
