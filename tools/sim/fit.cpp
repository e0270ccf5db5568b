// SPDX-License-Identifier: Apache-2.0
// Reads a trace, fits distributions to it, and reports the best.
#include "tools/sim/fit.hpp"

#include "actors/recording/readable.hpp"
#include "simulation/statistics.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/help.hpp"
#include "tools/sim/plots/fit_plot.hpp"
#include "tools/sim/plots/sim_plots.hpp"
#include "tools/sim/report.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;

constexpr const char* fit_introduction
  = "Says which distribution measured computing times have, as --compute takes it, and\n"
    "which replicas and periods are slow.\n"
    "\n"
    "Usage: troupe sim fit TRACE [OPTIONS]\n"
    "\n"
    "TRACE is a CSV file: a line for each step and a column for each replica, with or\n"
    "without headings and an index; or the columns step,replica,seconds, or\n"
    "replica,start,duration.\n";

// Beyond this distance, a simulation with the fit is like one of another cluster.
constexpr double distance_max = 0.05;

constexpr size_t listed_max = 10;

// A line of a list, of which the first has the heading.
std::string listed(std::string_view heading, const std::string& line, bool is_first) {
  return fmt::format("{:<11}{}\n", is_first ? heading : "", line);
}

std::string table_of(const std::vector<family_fit>& families, size_t time_count) {
  size_t width = 12;
  for (const auto& family : families)
    width = std::max(width, family.expression.size());
  auto text = fmt::format("\n{:<{}}  log likelihood a time  BIC - the best  distance\n",
                          "distribution", width);
  for (const auto& family : families)
    text += fmt::format("{:<{}}  {:>21.4f}  {:>14.1f}  {:>8.3f}\n", family.expression, width,
                        family.log_likelihood / static_cast<double>(time_count),
                        family.criterion - families.front().criterion, family.distance);
  return text + "\n";
}

std::string slow_text(const trace_fit& fit) {
  if (fit.slow.empty()) return listed("slow", "no replica is slow for good", true);
  std::string text;
  for (size_t i = 0; i < fit.slow.size() && i < listed_max; ++i) {
    const auto& slow = fit.slow[i];
    text += listed("slow",
                   fmt::format("replica {}: {:#.3g} times as long as a typical one, {:#.4g} s "
                               "instead of {:#.4g} s",
                               slow.replica, slow.factor, slow.median_seconds, fit.median_seconds),
                   i == 0);
  }
  if (fit.slow.size() > listed_max)
    text += listed("", fmt::format("and {} more replicas", fit.slow.size() - listed_max), false);
  return text;
}

std::string period_text(const slow_period& period, bool is_of_all) {
  auto replicas
    = is_of_all ? std::string{"all replicas"} : fmt::format("replica {}", period.replica);
  return fmt::format("{}: {} draws from draw {} on, {:#.4g} s", replicas, period.draw_count,
                     period.first_draw, period.seconds);
}

std::string periods_text(const trace_fit& fit) {
  std::string text;
  for (const auto* periods : {&fit.of_all, &fit.of_one}) {
    if (periods->list.empty()) continue;
    auto is_of_all = periods == &fit.of_all;
    text += listed("periods",
                   fmt::format("{}: {} slow period{}, {:#.4g} s together, {:#.3g} times as long as "
                               "usual",
                               is_of_all ? "all replicas" : "single replicas", periods->list.size(),
                               periods->list.size() == 1 ? "" : "s", periods->seconds(),
                               periods->factor),
                   text.empty());
    for (size_t i = 0; i < periods->list.size() && i < listed_max; ++i)
      text += listed("", "  " + period_text(periods->list[i], is_of_all), false);
    if (periods->list.size() > listed_max)
      text += listed("", fmt::format("  and {} more", periods->list.size() - listed_max), false);
  }
  return text.empty() ? listed("periods", "no period is slow", true) : text;
}

json periods_json(const slow_periods& periods, bool is_of_all) {
  json list = json::array();
  for (const auto& period : periods.list) {
    json entry{
      {"first_draw", period.first_draw}, {"draws", period.draw_count}, {"seconds", period.seconds}};
    if (!is_of_all) entry["replica"] = period.replica;
    list.push_back(std::move(entry));
  }
  return {{"factor", periods.factor}, {"seconds", periods.seconds()}, {"list", std::move(list)}};
}

// Steps of the trace and of its fit; nothing for a fit beyond the times that are simulated.
std::optional<step_comparison> steps_of(const trace_table& table, const trace_fit& fit) {
  auto compute = distribution::parse(fit.expression());
  if (!compute) return std::nullopt;
  return compare_steps(table, *compute);
}

expected<void> write(const fit_command& command, const trace_table& table, const trace_fit& fit) {
  return write_report(
    command.json, command.plots,
    {.text = [&] { return fit_text(command, table, fit); },
     .json = [&] { return fit_json(command, table, fit); },
     .plots = [&] { return write_plots(command.plots, {fit_plot(command.trace, fit)}); }});
}

expected<fit_command> parse_fit_options(int argument_count, const char* const* arguments) {
  fit_command command;
  command_options all{fit_introduction, "values follow their option, as in --plots DIR",
                      "\n" + sim_exit_codes_text(false)};
  all.add("trace", "", "", text_value(command.trace));
  all.add("--plots", "DIR", "draw what was measured and what fits best, with the numbers beside it",
          text_value(command.plots));
  all.add("--json", "FILE", "write the report to a file; to standard output for -",
          text_value(command.json));
  all.add_help(command.answer);
  if (auto done = all.read(argument_count, arguments); !done) return tl::unexpected(done.error());
  if (!command.answer.empty() || !command.trace.empty()) return command;
  return misuse("which trace? Give its file: troupe sim fit times.csv");
}

} // namespace

std::string fit_text(const fit_command& command, const trace_table& table, const trace_fit& fit) {
  sorted_values usual{fit.usual};
  const auto& best = fit.families.front();
  auto text = fmt::format(
    "fits       {}\n"
    "of         {}: {} times of {} replicas; {} of them usual: median {:#.4g} s, p90 {:#.4g}, p99 "
    "{:#.4g}, longest {:#.4g}\n",
    fit.expression(), command.trace, readable::count(fit.time_count), table.seconds.size(),
    readable::count(fit.usual.size()), usual.quantile(0.5), usual.quantile(0.9),
    usual.quantile(0.99), usual.quantile(1));
  text += slow_text(fit) + periods_text(fit);
  if (fit.families.size() > 1)
    text
      += table_of(fit.families, even_selection(fit.usual).size())
         + "The best has the lowest Bayesian information criterion (BIC). The distance is that of\n"
           "Kolmogorov and Smirnov: the largest difference between measured and fitted shares.\n\n";
  if (best.distance > distance_max)
    text += fmt::format("note       no distribution comes close (distance {:.3f}): --compute "
                        "'trace(\"{}\")' simulates with the times themselves\n",
                        best.distance, command.trace);
  if (auto steps = steps_of(table, fit); steps && steps->is_different)
    text += fmt::format("note       a step of all {} replicas takes {:#.4g} s in the trace and "
                        "{:#.4g} s by this fit: --compute 'trace(\"{}\")' keeps which draws are "
                        "slow together\n",
                        table.seconds.size(), steps->measured_seconds, steps->fitted_seconds,
                        command.trace);
  return text
         + fmt::format("try        troupe sim --replicas {} --compute '{}'\n", table.seconds.size(),
                       fit.expression());
}

std::string fit_json(const fit_command& command, const trace_table& table, const trace_fit& fit) {
  sorted_values usual{fit.usual};
  json result{{"trace", command.trace},
              {"expression", fit.expression()},
              {"replicas", table.seconds.size()},
              {"times", fit.time_count},
              {"median", fit.median_seconds},
              {"usual",
               {{"times", fit.usual.size()},
                {"p50", usual.quantile(0.5)},
                {"p90", usual.quantile(0.9)},
                {"p99", usual.quantile(0.99)},
                {"max", usual.quantile(1)}}},
              {"step_of_all", nullptr},
              {"families", json::array()},
              {"slow_replicas", json::array()},
              {"periods_of_all", periods_json(fit.of_all, true)},
              {"periods_of_one", periods_json(fit.of_one, false)}};
  if (auto steps = steps_of(table, fit))
    result["step_of_all"] = {{"measured", steps->measured_seconds},
                             {"fitted", steps->fitted_seconds},
                             {"is_different", steps->is_different}};
  for (const auto& family : fit.families)
    result["families"].push_back({{"expression", family.expression},
                                  {"log_likelihood", family.log_likelihood},
                                  {"criterion", family.criterion},
                                  {"distance", family.distance}});
  for (const auto& slow : fit.slow)
    result["slow_replicas"].push_back(
      {{"replica", slow.replica}, {"factor", slow.factor}, {"median", slow.median_seconds}});
  return json_text(result);
}

int fit_command_main(int argument_count, const char* const* arguments) {
  auto command = parse_fit_options(argument_count, arguments);
  if (auto code = answered("troupe sim fit", command)) return *code;
  auto table = load_trace_table(command->trace);
  if (!table) return refuse("troupe sim fit", table.error());
  if (auto outputs = check_outputs(command->json, command->plots); !outputs)
    return refuse("troupe sim fit", outputs.error());
  if (auto written = write(*command, *table, fit_trace(*table)); !written)
    return refuse("troupe sim fit", written.error(), exit_code::user_error);
  return static_cast<int>(exit_code::finished);
}

} // namespace troupe
