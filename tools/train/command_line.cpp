// SPDX-License-Identifier: Apache-2.0
// The options of a run, and the order in which sources of options count.
#include "tools/train/command_line.hpp"

#include "strategies/jobs/exit_codes.hpp"
#include "tools/options/cluster_arguments.hpp"
#include "tools/options/config_file.hpp"
#include "tools/options/help.hpp"
#include "tools/train/checks.hpp"

#include <filesystem>

namespace troupe {

namespace {

constexpr const char* train_introduction
  = "Trains a language model on the bytes of a text, or a convolutional network on\n"
    "images, by several replicas together.\n"
    "\n"
    "Usage: troupe train [OPTIONS]\n"
    "\n"
    "Every option can also stand in a TOML file, without the dashes (--config). The\n"
    "command line overrides the file, the file overrides the default.\n";

std::string train_signals() {
  return "\nSignals:\n"
         + help_entry("SIGINT, SIGTERM",
                      "end the run with the step under way; the second one at once")
         + help_entry(
           "SIGUSR1",
           "write the last messages of every actor to flight.txt in the run's folder, as "
           "a stall or a crash does; the run goes on");
}

// A run that goes on has the options that it had, but for its folder.
expected<void> read_files(command_options& all) {
  const auto config = all.given("config");
  const auto resumed = all.given("resume");
  if (!config.empty() && !resumed.empty())
    return misuse(
      "--config and --resume exclude each other: a run that goes on has the options of its "
      "config.toml; leave out --config");
  if (!config.empty()) return read_config_file(config, "--config", all);
  if (resumed.empty()) return {};
  const auto path = std::filesystem::path{resumed} / "config.toml";
  return read_config_file(path.string(), "--resume", all).map([&] { all.forget("run-dir"); });
}

expected<void> settle(train_command& command) {
  if (auto done = settle(command.server); !done) return done;
  command.server.interface = command.cluster.interface;
  if (auto done = fit_strategy(command.options, command.origins); !done) return done;
  if (auto done = fit_learned(command.options, command.origins); !done) return done;
  if (auto done = fit_model(command.options, command.origins); !done) return done;
  if (auto done = settle(command.options, command.origins); !done) return done;
  return check(command.options, command.origins);
}

} // namespace

expected<train_command> parse_train_options(int argument_count, const char* const* arguments) {
  train_command command;
  std::string config;
  bool dump_config = false;
  command_options all{train_introduction, "values follow their option, as in --text FILE",
                      train_signals() + "\n" + exit_codes_text()};
  add_options(all, command.options);
  all.begin_group("A job of several processes (on the command line only)");
  add_options(all, command.cluster);
  add_options(all, command.server);
  all.begin_group("Files and help");
  all.add("--config", "FILE", "TOML file with options", text_value(config));
  all.add_flag("--dump-config", dump_config,
               "print all options as such a file, with where each came from");
  all.add_help();

  auto answer = all.parse(argument_count, arguments);
  if (!answer) return tl::unexpected(answer.error());
  command.answer = *answer;
  if (!command.answer.empty()) return command;
  auto done = read_files(all).and_then([&] { return all.store_given(); }).and_then([&] {
    command.origins = all.origins();
    return settle(command);
  });
  if (!done) return tl::unexpected(done.error());
  if (dump_config) command.answer = config_text(command.options, command.origins);
  return command;
}

} // namespace troupe
