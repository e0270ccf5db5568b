// SPDX-License-Identifier: Apache-2.0
// The `troupe` command.
#include "strategies/jobs/exit_codes.hpp"
#include "tools/cluster.hpp"
#include "tools/commands.hpp"
#include "tools/flight/command.hpp"
#include "tools/launch/command.hpp"
#include "tools/options/help.hpp"
#include "tools/report/command.hpp"
#include "tools/sim/command.hpp"
#include "tools/system/standard_streams.hpp"
#include "tools/top/command.hpp"
#include "tools/train/command.hpp"
#include "tools/train/sample_command.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <string_view>
#include <system_error>

namespace {

int run(int argument_count, char** arguments) {
  std::string_view command = argument_count > 1 ? arguments[1] : "--help";
  if (command == "train") return troupe::train_command_main(argument_count - 1, arguments + 1);
  if (command == "launch") return troupe::launch_command_main(argument_count - 1, arguments + 1);
  if (command == "sample") return troupe::sample_command_main(argument_count - 1, arguments + 1);
  if (command == "report") return troupe::report_command_main(argument_count - 1, arguments + 1);
  if (command == "top") return troupe::top_command_main(argument_count - 1, arguments + 1);
  if (command == "flight") return troupe::flight_command_main(argument_count - 1, arguments + 1);
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

} // namespace

int main(int argument_count, char** arguments) {
  troupe::open_standard_streams();
  try {
    return troupe::code_after_output("troupe", run(argument_count, arguments));
  } catch (const std::system_error& failed) { // as fmt has it
    return troupe::refuse(
      "troupe",
      {troupe::errc::resource,
       fmt::format("cannot write to standard output: {}", failed.code().message())},
      troupe::exit_code::user_error);
  } catch (const std::bad_alloc&) {
    std::fputs("troupe: there is not enough memory for what was asked\n", stderr);
    return static_cast<int>(troupe::exit_code::user_error);
  }
}
