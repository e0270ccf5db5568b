// SPDX-License-Identifier: Apache-2.0
// The `troupe` command.
#include "messages/errors/failure.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "tools/cluster.hpp"
#include "tools/flight/command.hpp"
#include "tools/launch/command.hpp"
#include "tools/options/help.hpp"
#include "tools/options/nearest_name.hpp"
#include "tools/report/command.hpp"
#include "tools/sim/command.hpp"
#include "tools/system/signal_watch.hpp"
#include "tools/system/standard_streams.hpp"
#include "tools/top/command.hpp"
#include "tools/train/command.hpp"
#include "tools/train/sample_command.hpp"

#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace {

int print_help(int argument_count, const char* const* arguments);

int print_version(int, const char* const*) {
  fmt::print("troupe {}\n", TROUPE_VERSION);
  return 0;
}

struct command {
  std::string_view name;
  std::string_view help;
  int (*run)(int argument_count, const char* const* arguments); ///< Arguments from the name on.
};

// The commands, then the options.
constexpr command commands[] = {
  {"train", "train a model on a text or on images, by several replicas together",
   troupe::train_command_main},
  {"launch", "start the tasks of a job on this machine, and end them together",
   troupe::launch_command_main},
  {"sample", "print text that the model of a run writes", troupe::sample_command_main},
  {"report", "write a run as one page for a browser", troupe::report_command_main},
  {"top", "show a running job in the terminal", troupe::top_command_main},
  {"flight", "merge the last messages of a run's tasks, and name the slow one",
   troupe::flight_command_main},
  {"sim", "simulate what stragglers and backups cost", troupe::sim_command_main},
  {"cluster", "show the cluster that a job started here would be part of",
   troupe::cluster_command_main},
  {"--help", "this text; troupe COMMAND --help tells more about a command", print_help},
  {"--version", "the version", print_version},
};

int print_help(int, const char* const*) {
  std::string text = "Distributed training by actors.\n"
                     "\n"
                     "Usage: troupe COMMAND [OPTIONS]\n"
                     "\n"
                     "Commands:\n";
  for (const auto& [name, help, run_command] : commands)
    text += fmt::format("{}  {:<11}{}\n", name == "--help" ? "\nOptions:\n" : "", name, help);
  fmt::print("{}\n{}", text, troupe::exit_codes_text());
  return 0;
}

int run(int argument_count, char** arguments) {
  std::string_view word = argument_count > 1 ? arguments[1] : "--help";
  if (word == "-h") word = "--help";
  std::vector<std::string_view> names;
  for (const auto& [name, help, run_command] : commands) {
    if (word == name) return run_command(argument_count - 1, arguments + 1);
    names.push_back(name);
  }
  return troupe::refuse("troupe",
                        {troupe::errc::invalid_argument,
                         fmt::format("unknown command '{}'; the nearest known one is '{}' (troupe "
                                     "--help lists all)",
                                     word, troupe::nearest_name(word, names))});
}

} // namespace

int main(int argument_count, char** arguments) {
  troupe::open_standard_streams();
  troupe::ignore_size_limit_signal();
  try {
    return troupe::code_after_output("troupe", run(argument_count, arguments));
  } catch (const std::system_error& failed) {
    // fmt throws it for a failed write, the standard library for a thread that cannot start.
    if (std::ferror(stdout) == 0)
      return troupe::refuse("troupe", troupe::reason_of(std::current_exception()),
                            troupe::exit_code::user_error);
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
