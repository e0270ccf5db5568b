// SPDX-License-Identifier: Apache-2.0
// The cluster as a table, with all that is wrong with it.
#include "tools/cluster.hpp"

#include "actors/net/host_port.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "tools/options/arguments.hpp"
#include "tools/options/help.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace troupe {

namespace {

constexpr size_t text_width = 100;
constexpr size_t label_width = 11;
constexpr std::chrono::seconds lookup_patience{10};

// A label, and beside it a text of as many lines as it takes.
std::string report_line(std::string_view label, std::string_view text) {
  return fmt::format("{:<{}}{}\n", label, label_width, wrapped(text, label_width, text_width));
}

std::string task_count(const resolved_cluster& cluster) {
  if (cluster.source.empty()) return "one process: nobody says that there are others";
  auto count = cluster.tasks.size();
  if (count == 0) return fmt::format("{} names no task", cluster.source);
  return fmt::format("{} task{}, says {}", count, count == 1 ? "" : "s", cluster.source);
}

// Where others connect to, or why they do not.
std::string address_of(const resolved_cluster& cluster, const cluster_task& task) {
  if (!task.address.empty()) return task.address;
  return cluster.has_problem() ? "(not known)" : "(nobody dials it)";
}

std::string task_table(const resolved_cluster& cluster) {
  size_t name_width = 0;
  size_t address_width = 0;
  for (const auto& task : cluster.tasks) {
    name_width = std::max(name_width, to_string(task).size());
    address_width = std::max(address_width, address_of(cluster, task).size());
  }
  std::string text;
  for (size_t i = 0; i < cluster.tasks.size(); ++i) {
    const auto& task = cluster.tasks[i];
    auto line
      = fmt::format("  {:<{}}  {:<{}}  {}", to_string(task), name_width, address_of(cluster, task),
                    address_width, cluster.own == i ? "<- this one" : "");
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string card_text(const cluster_report& report) {
  if (!report.card) return {};
  if (!*report.card) return report_line("listens", report.card->error().message);
  const auto& [name, address] = **report.card;
  auto dialled = parse_host_port(report.cluster.self().address);
  return report_line(
    "listens", fmt::format("on {}, card {}", to_string(host_port{address, dialled->port}), name));
}

// Cards matter where a task connects from elsewhere.
bool is_dialled(const resolved_cluster& cluster) {
  return !cluster.has_problem() && cluster.own && !cluster.is_alone() && !cluster.is_evaluator()
         && parse_host_port(cluster.self().address);
}

} // namespace

expected<cluster_command> parse_cluster_options(int argument_count, const char* const* arguments) {
  cluster_command command;
  cluster_arguments raw;
  bool help = false;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.add_flag("-h,--help", help);
  app.add_flag("--json", command.json);
  add_cluster_options(app, raw);
  if (auto taken = take_apart(app, argument_count, arguments); !taken)
    return tl::unexpected(taken.error());
  if (help) {
    command.answer = cluster_help();
    return command;
  }
  if (auto rest = app.remaining(); !rest.empty()) {
    std::vector<std::string_view> names{"json", "help"};
    names.insert(names.end(), cluster_option_names.begin(), cluster_option_names.end());
    return fail(errc::invalid_argument,
                unexpected_argument(rest.front(), "--task worker:1", names));
  }
  auto options = settled(raw);
  if (!options) return tl::unexpected(options.error());
  command.options = std::move(*options);
  return command;
}

bool cluster_report::has_problem() const {
  return cluster.has_problem() || (card && !*card && !wanted_card.empty());
}

cluster_report report_cluster(const cluster_options& options, const environment_reader& environment,
                              const machine_networks& machine) {
  cluster_report report{.cluster = resolve(options, environment)};
  if (!is_dialled(report.cluster)) return report;
  report.wanted_card = wanted_card(report.cluster, options.interface, environment);
  report.card = listening_card(report.cluster, report.wanted_card, machine);
  if (*report.card)
    report.card_note = listening_note(report.cluster, report.wanted_card, **report.card);
  return report;
}

std::string cluster_text(const cluster_report& report) {
  const auto& cluster = report.cluster;
  auto text = report_line("cluster", task_count(cluster));
  if (!cluster.ignored.empty())
    text += report_line("ignored", fmt::format("{}", fmt::join(cluster.ignored, ", ")));
  if (!cluster.source.empty()) text += task_table(cluster);
  text += card_text(report);
  for (const auto& finding : cluster.findings)
    text += report_line(finding.is_problem() ? "wrong" : "note", finding.reason.message);
  if (!report.card_note.empty()) text += report_line("note", report.card_note);
  if (cluster.mended.empty()) return text;
  auto mended = cluster.mended;
  for (auto end = mended.find('\n'); end != std::string::npos; end = mended.find('\n', end + 1))
    mended.insert(end + 1, label_width, ' ');
  // It is there to be copied, so its lines are not broken.
  auto label = cluster.has_problem() ? "mended" : "clearer";
  return text + fmt::format("{:<{}}{}\n", label, label_width, mended);
}

std::string cluster_json(const cluster_report& report) {
  auto all = nlohmann::ordered_json::parse(to_json(report.cluster));
  all["card"] = nullptr;
  if (report.card && *report.card)
    all["card"] = {{"name", (*report.card)->name}, {"address", (*report.card)->address}};
  if (report.card && !*report.card)
    all[report.wanted_card.empty() ? "notes" : "problems"].push_back(report.card->error().message);
  if (!report.card_note.empty()) all["notes"].push_back(report.card_note);
  return all.dump(2);
}

int cluster_command_main(int argument_count, const char* const* arguments) {
  auto refuse = [](const std::string& line) {
    fmt::print(stderr, "troupe cluster: {}\n", line);
    return static_cast<int>(exit_code::usage);
  };
  auto command = parse_cluster_options(argument_count, arguments);
  if (!command) return refuse(command.error().message);
  if (!command->answer.empty()) {
    fmt::print("{}", command->answer);
    return static_cast<int>(exit_code::finished);
  }
  auto machine = own_networks(lookup_patience);
  if (!machine) return refuse(machine.error().message);
  auto report = report_cluster(command->options, process_environment(), *machine);
  fmt::print("{}", command->json ? cluster_json(report) + "\n" : cluster_text(report));
  return static_cast<int>(report.has_problem() ? exit_code::usage : exit_code::finished);
}

} // namespace troupe
