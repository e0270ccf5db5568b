// SPDX-License-Identifier: Apache-2.0
// Reads the options of a job from command line and files, and completes them.
#include "tools/options/job_command.hpp"

#include "tools/options/cluster_arguments.hpp"
#include "tools/options/config_file.hpp"
#include "tools/options/help.hpp"
#include "tools/options/job_checks.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

std::string signals_text() {
  return "\nSignals:\n"
         + help_entry("SIGINT, SIGTERM, SIGHUP",
                      "end the run with the step under way; the second one at once")
         + help_entry(
           "SIGUSR1",
           "write the last messages of every actor to flight.txt in the run's folder, as "
           "a stall or a crash does; the run goes on");
}

constexpr const char* two_configurations
  = "--config and --resume exclude each other: a run that goes on has the options of its "
    "config.toml; leave out ";

// A file that names a run to go on with has other options than that run.
expected<void> check_begins_anew(const command_options& all) {
  if (!all.origins().contains("resume")) return {};
  return misuse(fmt::format("{}: {}this line, or --config", spelling(all.origins(), "resume"),
                            two_configurations));
}

// A run that goes on has the options that it had, but for its folder.
expected<void> read_files(command_options& all) {
  const auto config = all.given("config");
  const auto resumed = all.given("resume");
  if (!config.empty() && !resumed.empty())
    return misuse(fmt::format("{}--config", two_configurations));
  if (!config.empty())
    return read_config_file(config, "--config", all).and_then([&] {
      return check_begins_anew(all);
    });
  if (resumed.empty()) return {};
  const auto path = std::filesystem::path{resumed} / "config.toml";
  std::error_code missing; // reading it says so
  if (std::filesystem::is_empty(path, missing) && !missing)
    return misuse(fmt::format("--resume: {} is empty, and the options of that run stood there; "
                              "take a whole copy of the file",
                              path.string()));
  return read_config_file(path.string(), "--resume", all).map([&] { all.forget("run-dir"); });
}

} // namespace

command_options options_of_job(std::string introduction, std::string sample) {
  return command_options{std::move(introduction), std::move(sample),
                         signals_text() + "\n" + exit_codes_text()};
}

expected<void> read_job_command(command_options& all, job_command& command, int argument_count,
                                const char* const* arguments) {
  all.begin_group("A job of several processes (on the command line only)");
  add_options(all, command.cluster);
  add_options(all, command.server);
  all.begin_group("Files and help");
  all.add("--config", "FILE", "TOML file with options", text_value(command.config));
  all.add_flag("--dump-config", command.dumps_config,
               "print all options as such a file, with where each came from");
  all.add_help(command.answer);
  auto parsed = all.parse(argument_count, arguments);
  if (!parsed || !command.answer.empty()) return parsed;
  return read_files(all).and_then([&] { return all.store_given(); }).map([&] {
    command.origins = all.origins();
  });
}

expected<void> settle(job_command& command, job_options& options) {
  if (auto done = settle(command.server); !done) return done;
  command.server.interface = command.cluster.interface;
  return fit_strategy(options, command.origins);
}

} // namespace troupe
