// SPDX-License-Identifier: Apache-2.0
// Reads the command line of a trainer, and passes calls on to the job that it asks for.
#include "tools/job/job.hpp"

#include "messages/errors/throw_failure.hpp"
#include "tools/job/job_cluster.hpp"
#include "tools/job/running_job.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/config_file.hpp"
#include "tools/options/help.hpp"
#include "tools/options/job_checks.hpp"
#include "tools/options/job_command.hpp"
#include "tools/system/signal_watch.hpp"
#include "tools/system/standard_streams.hpp"

#include <CLI/Error.hpp>
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

std::string introduction(const std::string& program, const std::string& about) {
  return fmt::format(
    "{}{}"
    "Usage: {} [OPTIONS]\n"
    "\n"
    "Every option can also stand in a TOML file, without the dashes (--config). The\n"
    "command line overrides the file, the file overrides the default.\n",
    about, about.empty() ? "" : "\n\n", program);
}

constexpr option_range any_count{0, 1e18};
constexpr option_range any_number{std::numeric_limits<double>::lowest(),
                                  std::numeric_limits<double>::max()};

} // namespace

/// The command line of a trainer, with the program's own options before those of the job.
struct job::command_line {
  command_line(int argument_count, const char* const* arguments, job_settings settings)
    : argument_count(argument_count), arguments(arguments),
      program(std::filesystem::path{arguments[0]}.filename().string()),
      options(std::move(settings.defaults)),
      all(options_of_job(introduction(program, settings.about),
                         "values follow their option, as in --steps 1000")) {}

  void add(const std::string& name, const std::string& argument, const std::string& help,
           option_value value) {
    if (reading)
      throw_failure(errc::failed_precondition,
                    "job: option(\"{}\") after the command line was read: call it before run and "
                    "find_cluster",
                    name);
    own.push_back({name, argument, help, std::move(value)});
  }

  // CLI11 throws if a name is there twice, or cannot be an option's; this returns an error.
  [[nodiscard]] expected<void> check_own() const {
    std::string value;
    job_options job_defaults;
    job_command unused_command;
    command_options known;
    add_options(known, job_defaults);
    if (auto described = read_job_command(known, unused_command, 1, arguments); !described)
      return described;
    for (const auto& option : own) {
      try {
        known.add(option.name, option.argument, option.help, text_value(value));
      } catch (const CLI::OptionAlreadyAdded&) {
        return misuse(fmt::format("there are two options {}: the program must give its own "
                                  "another name",
                                  option.name));
      } catch (const CLI::ConstructionError& wrong) {
        return misuse(fmt::format("the program's option '{}' has no name for an option: {}",
                                  option.name, wrong.what()));
      }
    }
    return {};
  }

  // A run writes its values into a file, which a resumed one reads.
  [[nodiscard]] expected<void> check_defaults() const {
    for (const auto& option : all.options()) {
      const auto texts = option.value.texts();
      if (!option.in_files || texts.empty()) continue;
      if (auto readable = option.value.store(texts); !readable)
        return misuse(
          fmt::format("the program's default of --{}{}", option.key, readable.error().message));
    }
    return {};
  }

  // The first call reads; later ones have its result.
  expected<void> read() {
    if (!reading) reading = read_now();
    return *reading;
  }

  expected<void> read_now() {
    if (auto valid = check_own(); !valid) return valid;
    if (!own.empty()) all.begin_group("Options of " + program, true);
    for (auto& option : own)
      all.add(option.name, option.argument, option.help, std::move(option.value), "none");
    add_options(all, options);
    auto done = check_defaults();
    if (done) done = read_job_command(all, command, argument_count, arguments);
    if (!done || !command.answer.empty()) return done;
    done = settle(command, options);
    if (done) fit_to_cluster(command, options);
    if (done) done = check(options, command.origins);
    if (done && command.dumps_config) command.answer = config(true);
    return done;
  }

  [[nodiscard]] std::string config(bool with_run_dir) const {
    auto is_left_out = [this](std::string_view key) {
      return std::ranges::count(without_meaning(options.strategy), key) > 0;
    };
    return config_text(
      all, command.origins,
      {.program = program, .is_left_out = is_left_out, .commented = config_comments(with_run_dir)});
  }

  int argument_count;
  const char* const* arguments;
  std::string program;
  job_options options;
  job_command command;
  command_options all; ///< Below the members that it refers to.

  struct own_option {
    std::string name;
    std::string argument;
    std::string help;
    option_value value;
  };

  std::vector<own_option> own;
  std::optional<expected<void>> reading; ///< Nothing before the command line was read.
};

job::job(int argument_count, const char* const* arguments, job_settings settings)
  : command_line_(std::make_unique<command_line>(argument_count, arguments, settings)) {
  open_standard_streams();
  ignore_size_limit_signal();
  auto& line = *command_line_;
  running_
    = std::make_unique<running_job>(job_request{.program = line.program,
                                                .command = line.command,
                                                .options = line.options,
                                                .described = line.all,
                                                .config = [&line] { return line.config(false); }});
  running_->describe({.measure = settings.measure, .evaluate = std::move(settings.evaluate)});
}

job::job(job_request request) : running_(std::make_unique<running_job>(std::move(request))) {}

job::~job() = default;

void job::option(const std::string& name, const std::string& argument, const std::string& help,
                 std::string& place) {
  command_line_->add(name, argument, help, text_value(place));
}

void job::option(const std::string& name, const std::string& argument, const std::string& help,
                 uint64_t& place) {
  command_line_->add(name, argument, help, whole_value(place, any_count));
}

void job::option(const std::string& name, const std::string& argument, const std::string& help,
                 double& place) {
  command_line_->add(name, argument, help, real_value(place, any_number));
}

void job::describe(job_subject subject) {
  running_->describe(std::move(subject));
}

expected<void> job::find_cluster() {
  if (!command_line_) return running_->find_cluster();
  if (auto read = command_line_->read(); !read) return read;
  if (command_line_->command.answer.empty()) return running_->find_cluster();
  running_->be_alone();
  return {};
}

int job::run(const std::function<void()>& body) {
  if (auto refused = running_->begin()) return *refused;
  if (!command_line_) return running_->run(body);
  auto& line = *command_line_;
  if (auto read = line.read(); !read) return refuse(line.program, read.error());
  auto code = static_cast<int>(exit_code::finished);
  if (line.command.answer.empty())
    code = running_->run(body);
  else
    print_if_possible(stdout, "{}", line.command.answer);
  return code_after_output(line.program, code);
}

const job_options& job::options() const {
  return running_->options();
}

bool job::is_chief() const {
  return running_->is_chief();
}

world& job::world() {
  running_->require_body("world()");
  return running_->world();
}

server& job::server() {
  running_->require_body("server()");
  return running_->server();
}

strategy& job::strategy() {
  running_->require_body("strategy()");
  return running_->strategy();
}

void job::add_hook(std::shared_ptr<session_hook> hook) {
  running_->add_hook(std::move(hook));
}

job_optimizer job::optimizer(const update_plan& plan, double clip_global_norm) const {
  if (replicas_meet(options().strategy))
    return {troupe::optimizer{
              plan, {.aggregation = reduce_op::mean, .clip_global_norm = clip_global_norm}},
            plan};
  auto aggregated = sync();
  aggregated.clip_global_norm = clip_global_norm;
  return {sync_replicas_optimizer{plan, aggregated}, plan};
}

job_optimizer job::optimizer(const update_rule& rule) const {
  return optimizer(update_plan{.rule = rule});
}

job_report job::train(const job_optimizer& optimizer, const step_function& step) {
  running_->require_body("train()");
  return train(running_->strategy(), optimizer, step);
}

job_report job::train(troupe::strategy& strategy, const job_optimizer& optimizer,
                      const step_function& step) {
  running_->require_body("train()");
  return running_->train(strategy, optimizer, step);
}

} // namespace troupe
