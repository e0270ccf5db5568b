// SPDX-License-Identifier: Apache-2.0
// Taking the words apart and judging each.
#include "tools/launch/command_line.hpp"

#include "tools/options/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <span>
#include <string_view>

namespace troupe {

namespace {

constexpr std::array<std::string_view, 11> launch_option_names{
  "workers",       "ps",       "chief",  "evaluator", "log-dir", "grace", "restart",
  "spare-workers", "spare-ps", "job-id", "help"};
constexpr double grace_seconds_max = 86'400;
constexpr uint32_t restarts_max = 1'000'000;
constexpr size_t job_id_letters_max = 64;

constexpr std::string_view launch_sample = "troupe launch -n 4 -- PROGRAM ARGUMENTS";

/// What stood before `--`.
struct raw_launch_arguments {
  std::string workers;
  std::string parameter_servers;
  bool chief = false;
  bool evaluator = false;
  std::string log_dir;
  std::string grace;
  std::string restarts;
  bool spares_workers = false;
  bool spares_ps = false;
  std::string job_id;
  bool help = false;
};

expected<uint32_t> count_of(const std::string& text, std::string_view name, uint32_t least,
                            uint32_t most = launch_tasks_max) {
  auto number = number_of<uint32_t>(text);
  if (number && *number >= least && *number <= most) return *number;
  return misuse(
    fmt::format("{} must be a whole number from {} to {}, not '{}'", name, least, most, text));
}

expected<std::chrono::milliseconds> grace_of(const std::string& text) {
  auto seconds = number_of<double>(text);
  if (seconds && *seconds >= 0 && *seconds <= grace_seconds_max)
    return std::chrono::milliseconds{std::llround(*seconds * 1000)};
  return misuse(fmt::format("--grace must be seconds from 0 to 86,400, not '{}'", text));
}

bool is_job_id(std::string_view text) {
  auto is_usual = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')
           || (letter >= '0' && letter <= '9') || letter == '-' || letter == '_' || letter == '.';
  };
  return !text.empty() && text.size() <= job_id_letters_max && std::ranges::all_of(text, is_usual);
}

expected<void> settle_counts(const raw_launch_arguments& raw, launch_options& options) {
  if (raw.workers.empty())
    return misuse(fmt::format("how many workers? Say -n: {}", launch_sample));
  auto workers = count_of(raw.workers, "-n", 1);
  if (!workers) return tl::unexpected<error>(workers.error());
  options.workers = *workers;
  if (!raw.parameter_servers.empty()) {
    auto servers = count_of(raw.parameter_servers, "--ps", 0);
    if (!servers) return tl::unexpected<error>(servers.error());
    options.parameter_servers = *servers;
  }
  options.chief = raw.chief;
  options.evaluator = raw.evaluator;
  auto all = options.workers + options.parameter_servers + (options.chief ? 1 : 0)
             + (options.evaluator ? 1 : 0);
  if (all <= launch_tasks_max) return {};
  return misuse(fmt::format("{} tasks are too many for one machine: {} at most, with all "
                            "that are no workers",
                            all, launch_tasks_max));
}

expected<launch_options> settled(const raw_launch_arguments& raw) {
  launch_options options{.log_dir = raw.log_dir,
                         .spares_workers = raw.spares_workers,
                         .spares_ps = raw.spares_ps,
                         .job_id = raw.job_id};
  if (auto counts = settle_counts(raw, options); !counts)
    return tl::unexpected<error>(counts.error());
  if (!raw.grace.empty()) {
    auto grace = grace_of(raw.grace);
    if (!grace) return tl::unexpected<error>(grace.error());
    options.grace = *grace;
  }
  if (!raw.restarts.empty()) {
    auto restarts = count_of(raw.restarts, "--restart", 0, restarts_max);
    if (!restarts) return tl::unexpected<error>(restarts.error());
    options.restarts = *restarts;
  }
  if (!raw.job_id.empty() && !is_job_id(raw.job_id)) {
    return misuse(fmt::format("--job-id takes at most {} letters, digits, '-', '_' and '.', not "
                              "'{}'",
                              job_id_letters_max, raw.job_id));
  }
  return options;
}

expected<raw_launch_arguments> read_options(std::span<const char* const> words) {
  raw_launch_arguments raw;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.add_flag("-h,--help", raw.help);
  app.add_option("-n,--workers", raw.workers)->take_last();
  app.add_option("--ps", raw.parameter_servers)->take_last();
  app.add_flag("--chief", raw.chief);
  app.add_flag("--evaluator", raw.evaluator);
  app.add_option("--log-dir", raw.log_dir)->take_last();
  app.add_option("--grace", raw.grace)->take_last();
  app.add_option("--restart", raw.restarts)->take_last();
  app.add_flag("--spare-workers", raw.spares_workers);
  app.add_flag("--spare-ps", raw.spares_ps);
  app.add_option("--job-id", raw.job_id)->take_last();
  if (auto taken = take_apart(app, static_cast<int>(words.size()), words.data()); !taken)
    return tl::unexpected<error>(taken.error());
  auto rest = app.remaining();
  if (rest.empty() || raw.help) return raw;
  if (rest[0].starts_with("-"))
    return misuse(unexpected_argument(rest[0], "-n 4", launch_option_names));
  return misuse(fmt::format("unexpected argument '{}': the program follows --, as in {}", rest[0],
                            launch_sample));
}

} // namespace

expected<launch_options> parse_launch_options(int argument_count, const char* const* arguments) {
  std::span words{arguments, static_cast<size_t>(argument_count)};
  auto dashes = std::ranges::find(words, std::string_view{"--"});
  auto raw = read_options(words.first(static_cast<size_t>(dashes - words.begin())));
  if (!raw) return tl::unexpected<error>(raw.error());
  if (raw->help) return launch_options{.help = true};
  if (dashes == words.end())
    return misuse(fmt::format("which program? It follows --, as in {}", launch_sample));
  auto options = settled(*raw);
  if (!options) return options;
  options->program.assign(dashes + 1, words.end());
  if (options->program.empty() || options->program[0].empty())
    return misuse(fmt::format("there is no program behind --, as in {}", launch_sample));
  return options;
}

} // namespace troupe
