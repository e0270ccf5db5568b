// SPDX-License-Identifier: Apache-2.0
// Reads options, and checks them in the order in which they depend on each other.
#include "tools/train/command_line.hpp"

#include "tools/job/job_cluster.hpp"
#include "tools/options/config_file.hpp"
#include "tools/train/checks.hpp"

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

expected<void> settle(train_command& command) {
  if (auto done = settle(command, command.options); !done) return done;
  if (auto done = fit_learned(command.options, command.origins); !done) return done;
  if (auto done = fit_model(command.options, command.origins); !done) return done;
  if (auto done = settle(command.options, command.origins); !done) return done;
  fit_to_cluster(command, command.options);
  return check(command.options, command.origins);
}

} // namespace

expected<train_command> parse_train_options(int argument_count, const char* const* arguments) {
  train_command command;
  auto all = options_of_job(train_introduction, "values follow their option, as in --text FILE");
  add_options(all, command.options);
  if (auto done = read_job_command(all, command, argument_count, arguments); !done)
    return tl::unexpected<error>(done.error());
  if (!command.answer.empty()) return command;
  if (auto done = settle(command); !done) return tl::unexpected<error>(done.error());
  if (command.dumps_config) command.answer = config_text(command.options, command.origins);
  return command;
}

} // namespace troupe
