// SPDX-License-Identifier: Apache-2.0
// Writes the cluster as a table, with everything that is wrong with it.
#include "tools/cluster.hpp"

#include "actors/net/host_port.hpp"
#include "messages/errors/printable.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "tools/options/help.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace troupe {

namespace {

constexpr size_t text_width = 100;
constexpr size_t label_width = 11;
constexpr std::chrono::seconds lookup_timeout{10};

constexpr const char* cluster_introduction
  = "Shows the cluster that a job started here would be part of: its tasks, which of\n"
    "them this process is, which source says so, and what is wrong with it.\n"
    "\n"
    "Usage: troupe cluster [OPTIONS]\n"
    "\n"
    "Asks, in this order: the options, --cluster-file, --kubernetes, TF_CONFIG,\n"
    "torchrun, Slurm, Open MPI.\n";
constexpr const char* cluster_exit_codes
  = "\n"
    "Exit codes:\n"
    "  0      no problem was found; it was not checked whether the hosts answer\n"
    "  2      a problem was found; the output says which, and how to mend it\n";

// A label, with a text of one or more lines beside it.
std::string report_line(std::string_view label, std::string_view text) {
  return fmt::format("{:<{}}{}\n", label, label_width, wrapped(text, label_width, text_width));
}

std::string source_text(const resolved_cluster& cluster) {
  if (cluster.source.empty()) return "one process: no option or environment variable names others";
  auto count = cluster.tasks.size();
  if (count == 0) return fmt::format("{} names no task", cluster.source);
  return fmt::format("{} task{}, says {}", count, count == 1 ? "" : "s", cluster.source);
}

// The address that others connect to, or why they do not connect.
std::string address_of(const resolved_cluster& cluster, const cluster_task& task) {
  if (!task.address.empty()) return task.address;
  return cluster.has_problem() ? "(not known)" : "(no task dials it)";
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
  auto self = parse_host_port(report.cluster.self().address);
  return report_line(
    "listens", fmt::format("on {}, card {}", to_string(host_port{address, self->port}), name));
}

// Whether another task connects to this one: only then does its card matter.
bool is_dialled(const resolved_cluster& cluster) {
  return !cluster.has_problem() && cluster.own && !cluster.is_alone() && !cluster.is_evaluator()
         && parse_host_port(cluster.self().address);
}

} // namespace

expected<cluster_command> parse_cluster_options(int argument_count, const char* const* arguments) {
  cluster_command command;
  command_options all{cluster_introduction, "values follow their option, as in --task worker:1",
                      cluster_exit_codes};
  add_options(all, command.options);
  all.add_flag("--json", command.json, "print the same for programs");
  all.add_help(command.answer);
  return all.read(argument_count, arguments).map([&] { return command; });
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
  auto text = report_line("cluster", source_text(cluster));
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
  // The text is there to be copied, so its lines are not broken.
  auto label = cluster.has_problem() ? "mended" : "clearer";
  return text + fmt::format("{:<{}}{}\n", label, label_width, mended);
}

std::string cluster_json(const cluster_report& report) {
  auto object = nlohmann::ordered_json::parse(to_json(report.cluster));
  object["card"] = nullptr;
  if (report.card && *report.card)
    object["card"] = {{"name", (*report.card)->name}, {"address", (*report.card)->address}};
  if (report.card && !*report.card)
    object[report.wanted_card.empty() ? "notes" : "problems"].push_back(
      report.card->error().message);
  if (!report.card_note.empty()) object["notes"].push_back(report.card_note);
  return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

int cluster_command_main(int argument_count, const char* const* arguments) {
  auto command = parse_cluster_options(argument_count, arguments);
  if (auto code = answered("troupe cluster", command)) return *code;
  auto machine = own_networks(lookup_timeout);
  if (!machine) return refuse("troupe cluster", machine.error());
  auto report = report_cluster(command->options, process_environment(), *machine);
  fmt::print("{}",
             command->json ? cluster_json(report) + "\n" : printable(cluster_text(report), "\n"));
  return static_cast<int>(report.has_problem() ? exit_code::usage : exit_code::finished);
}

} // namespace troupe
