// SPDX-License-Identifier: Apache-2.0
// The `troupe` command.
#include "tools/cluster.hpp"
#include "tools/exit_codes.hpp"
#include "tools/help.hpp"
#include "tools/launch/command.hpp"
#include "tools/sim.hpp"
#include "tools/top.hpp"
#include "tools/train.hpp"

#include <fmt/format.h>
#include <string_view>

int main(int argument_count, char** arguments) {
  std::string_view command = argument_count > 1 ? arguments[1] : "--help";
  if (command == "train") return troupe::train_command_main(argument_count - 1, arguments + 1);
  if (command == "launch") return troupe::launch_command_main(argument_count - 1, arguments + 1);
  if (command == "top") return troupe::top_command_main(argument_count - 1, arguments + 1);
  if (command == "sim") return troupe::sim_command_main(argument_count - 1, arguments + 1);
  if (command == "cluster") return troupe::cluster_command_main(argument_count - 1, arguments + 1);
  if (command == "--help" || command == "-h") {
    fmt::print("{}", troupe::troupe_help());
    return 0;
  }
  if (command == "--version") {
    fmt::print("troupe {}\n", TROUPE_VERSION);
    return 0;
  }
  fmt::print(stderr, "troupe: {}\n", troupe::unknown_command(command));
  return static_cast<int>(troupe::exit_code::usage);
}
