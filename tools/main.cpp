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
#include <new>
#include <string_view>
#include <system_error>

namespace {

struct command {
  std::string_view name;
  int (*run)(int argument_count, const char* const* arguments); ///< Arguments from the name on.
};

constexpr command commands[] = {
  {"train", troupe::train_command_main},   {"launch", troupe::launch_command_main},
  {"sample", troupe::sample_command_main}, {"report", troupe::report_command_main},
  {"top", troupe::top_command_main},       {"flight", troupe::flight_command_main},
  {"sim", troupe::sim_command_main},       {"cluster", troupe::cluster_command_main},
};

int run(int argument_count, char** arguments) {
  std::string_view word = argument_count > 1 ? arguments[1] : "--help";
  for (const auto& [name, run_command] : commands)
    if (word == name) return run_command(argument_count - 1, arguments + 1);
  if (word == "--help" || word == "-h") {
    fmt::print("{}", troupe::troupe_help());
    return 0;
  }
  if (word == "--version") {
    fmt::print("troupe {}\n", TROUPE_VERSION);
    return 0;
  }
  fmt::print(stderr, "troupe: {}\n", troupe::unknown_command(word));
  return static_cast<int>(troupe::exit_code::usage);
}

} // namespace

int main(int argument_count, char** arguments) {
  troupe::open_standard_streams();
  try {
    return troupe::code_after_output("troupe", run(argument_count, arguments));
  } catch (const std::system_error& failed) { // thrown by fmt
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
