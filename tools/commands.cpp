// SPDX-License-Identifier: Apache-2.0
// The help of `troupe`, and the answer to a command that it does not have.
#include "tools/commands.hpp"

#include "strategies/jobs/exit_codes.hpp"
#include "tools/options/nearest_name.hpp"

#include <array>
#include <fmt/format.h>

namespace troupe {

std::string troupe_help() {
  return "Distributed training by actors.\n"
         "\n"
         "Usage: troupe COMMAND [OPTIONS]\n"
         "\n"
         "Commands:\n"
         "  train      train a model on a text or on images, by several replicas together\n"
         "  launch     start the tasks of a job on this machine, and end them together\n"
         "  sample     print text that the model of a run writes\n"
         "  report     write a run as one page for a browser\n"
         "  top        show a running job in the terminal\n"
         "  flight     merge the last messages of a run's tasks, and name the slow one\n"
         "  sim        simulate what stragglers and backups cost\n"
         "  cluster    show the cluster that a job started here would be part of\n"
         "\n"
         "Options:\n"
         "  --help     this text; troupe COMMAND --help tells more about a command\n"
         "  --version  the version\n"
         "\n"
         + exit_codes_text();
}

std::string unknown_command(std::string_view command) {
  constexpr std::array<std::string_view, 10> known{"train",  "launch",   "sample", "report",
                                                   "top",    "flight",   "sim",    "cluster",
                                                   "--help", "--version"};
  return fmt::format(
    "unknown command '{}'; the nearest known one is '{}' (troupe --help lists all)", command,
    nearest_name(command, known));
}

} // namespace troupe
