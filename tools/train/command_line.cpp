// SPDX-License-Identifier: Apache-2.0
// The table of options as flags, and the order in which sources of options count.
#include "tools/train/command_line.hpp"

#include "tools/options/arguments.hpp"
#include "tools/options/cluster_arguments.hpp"
#include "tools/options/config_dump.hpp"
#include "tools/options/config_file.hpp"
#include "tools/options/help.hpp"
#include "tools/options/option_table.hpp"
#include "tools/options/option_value.hpp"
#include "tools/options/server_arguments.hpp"
#include "tools/train/checks.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <vector>

namespace troupe {

namespace {

// The command line as it was written, before it is checked.
struct raw_train_arguments {
  std::map<std::string_view, std::vector<std::string>> texts;
  cluster_arguments cluster;
  server_arguments server;
  std::string config;
  bool dump_config = false;
  bool help = false;
};

// CLI11 splits the arguments; what they mean, and the help, come from the table.
void add_options(CLI::App& app, raw_train_arguments& raw) {
  app.set_help_flag();
  app.allow_extras();
  app.add_flag("-h,--help", raw.help);
  app.add_flag("--dump-config", raw.dump_config);
  app.add_option("--config", raw.config)->take_last();
  add_cluster_options(app, raw.cluster);
  add_server_options(app, raw.server);
  for (const auto& option : train_option_table()) {
    app.add_option("--" + std::string{option.key}, raw.texts[option.key])->allow_extra_args(false);
  }
}

std::vector<std::string_view> train_option_names() {
  std::vector<std::string_view> names{"help", "config", "dump-config"};
  names.insert(names.end(), cluster_option_names.begin(), cluster_option_names.end());
  names.insert(names.end(), server_option_names.begin(), server_option_names.end());
  for (const auto& option : train_option_table())
    names.push_back(option.key);
  return names;
}

expected<void> take_arguments(const raw_train_arguments& raw, train_command& command) {
  for (const auto& option : train_option_table()) {
    const auto& texts = raw.texts.at(option.key);
    if (texts.empty()) continue;
    const std::string key{option.key};
    command.origins[key] = {option_origin::source::command_line, ""};
    if (auto done = assign(option, command.options, texts, "--" + key); !done) return done;
  }
  return {};
}

// A run that goes on has the options that it had, but for its folder.
expected<void> read_files(const raw_train_arguments& raw, train_command& command) {
  const auto& resumed = raw.texts.at("resume");
  if (raw.config.empty() && resumed.empty()) return {};
  if (!raw.config.empty() && !resumed.empty())
    return fail(
      errc::invalid_argument,
      "--config and --resume exclude each other: a run that goes on has the options of its "
      "config.toml; leave out --config");
  if (!raw.config.empty()) return read_config_file(raw.config, command.options, command.origins);
  auto path = std::filesystem::path{resumed.back()} / "config.toml";
  return read_config_file(path.string(), command.options, command.origins, "--resume").map([&] {
    command.options.run_dir.clear();
    command.origins.erase("run-dir");
  });
}

expected<train_command> settled(const raw_train_arguments& raw) {
  train_command command;
  auto cluster = settled(raw.cluster);
  if (!cluster) return tl::unexpected(cluster.error());
  command.cluster = std::move(*cluster);
  auto server = settled(raw.server);
  if (!server) return tl::unexpected(server.error());
  command.server = std::move(*server);
  command.server.interface = command.cluster.interface;
  if (auto done = read_files(raw, command); !done) return tl::unexpected(done.error());
  if (auto done = take_arguments(raw, command); !done) return tl::unexpected(done.error());
  if (auto done = fit_strategy(command.options, command.origins); !done)
    return tl::unexpected(done.error());
  if (auto done = settle(command.options, command.origins); !done)
    return tl::unexpected(done.error());
  if (auto done = check(command.options, command.origins); !done)
    return tl::unexpected(done.error());
  if (raw.dump_config) command.answer = config_text(command.options, command.origins);
  return command;
}

} // namespace

expected<train_command> parse_train_options(int argument_count, const char* const* arguments) {
  raw_train_arguments raw;
  CLI::App app;
  add_options(app, raw);
  if (auto taken = take_apart(app, argument_count, arguments); !taken)
    return tl::unexpected(taken.error());
  if (raw.help) {
    train_command command;
    command.answer = train_help();
    return command;
  }
  if (const auto extra = app.remaining(); !extra.empty())
    return fail(errc::invalid_argument,
                unexpected_argument(extra.front(), "--text FILE", train_option_names()));
  return settled(raw);
}

} // namespace troupe
