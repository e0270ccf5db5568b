// SPDX-License-Identifier: Apache-2.0
// The command `troupe sim`: check every row, simulate them, report.
#include "tools/sim/command.hpp"

#include "kernels/tensor/huge_pages.hpp"
#include "messages/failure.hpp"
#include "simulation/on_threads.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "tools/options/help.hpp"
#include "tools/sim/advise.hpp"
#include "tools/sim/command_line.hpp"
#include "tools/sim/fit.hpp"
#include "tools/sim/goodput.hpp"
#include "tools/sim/plots/sim_plots.hpp"
#include "tools/sim/replay.hpp"
#include "tools/sim/report.hpp"
#include "tools/sim/step_files.hpp"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <string_view>

namespace troupe {

namespace {

// A sweep must not fail in its last row after minutes.
expected<std::vector<sim_row>> prepare(const sim_command& command) {
  std::vector<sim_row> rows;
  auto all = command.rows();
  if (auto used = check_uses(all); !used) return tl::unexpected<error>(used.error());
  for (auto& options : all) {
    auto what = experiment_of(options);
    if (!what) return tl::unexpected<error>(what.error());
    what->hashes = !command.json.empty(); // tables have none
    rows.push_back({.options = std::move(options), .what = std::move(*what)});
  }
  return rows;
}

// Collecting for plots takes time and memory, so only if they are asked for.
void simulate_one(sim_row& row, step_files& files, bool with_profile, bool with_spans) {
  auto what = row.what;
  if (!files.is_empty()) what.on_step = [&](const step_record& step) { files.add(step); };
  if (!with_profile) {
    row.report = run(what);
    return;
  }
  run_profile profile{row.what, with_spans};
  what.on_step = [&](const step_record& step) {
    files.add(step);
    profile.add(step);
  };
  if (with_spans) what.on_delivery = [&](const delivery& came) { profile.add(came); };
  row.report = run(what);
  row.profile = profile.figures();
}

void simulate(const sim_command& command, std::vector<sim_row>& rows, step_files& files) {
  // Either rows or the runs of a row go side by side.
  const auto& first = rows.front();
  auto threads = first.what.runs > 1 ? 1 : first.what.threads;
  for_each_on_threads(rows.size(), threads, [&](size_t i) {
    simulate_one(rows[i], files, !command.plots.empty(), rows.size() == 1);
  });
  for (auto& row : rows)
    if (&row != &first) row.difference = step_time_difference(row.report, first.report);
}

expected<void> write(const sim_command& command, const std::vector<sim_row>& rows) {
  if (command.json != "-") fmt::print("{}", sim_table(command, rows));
  if (!command.plots.empty()) {
    auto told = write_sim_plots(command, rows);
    if (!told) return tl::unexpected<error>(told.error());
    fmt::print(command.json == "-" ? stderr : stdout, "{}", *told);
  }
  if (command.json.empty()) return {};
  return write_json(command.json, sim_json(command, rows));
}

} // namespace

int sim_command_main(int argument_count, const char* const* arguments) {
  prefer_huge_pages();
  auto word = std::string_view{argument_count > 1 ? arguments[1] : ""};
  if (word == "advise") return advise_command_main(argument_count - 1, arguments + 1);
  if (word == "fit") return fit_command_main(argument_count - 1, arguments + 1);
  if (word == "goodput") return goodput_command_main(argument_count - 1, arguments + 1);
  if (word == "replay") return replay_command_main(argument_count - 1, arguments + 1);
  auto command = parse_sim_options(argument_count, arguments);
  if (auto code = answered("troupe sim", command)) return *code;
  auto rows = prepare(*command);
  if (!rows) return refuse("troupe sim", rows.error());
  auto place = check_json(command->json);
  if (place) place = make_plots_folder(command->plots);
  if (!place) return refuse("troupe sim", place.error());
  auto files = step_files::create(*command);
  if (!files) return refuse("troupe sim", files.error());
  try {
    simulate(*command, *rows, *files);
  } catch (const failure& failed) {
    return refuse("troupe sim", failed.reason());
  }
  auto written = files->flush();
  if (written) written = write(*command, *rows);
  if (!written) return refuse("troupe sim", written.error(), exit_code::user_error);
  auto stalled
    = std::ranges::any_of(*rows, [](const sim_row& row) { return row.report.stalled.has_value(); });
  return static_cast<int>(stalled ? exit_code::stalled : exit_code::finished);
}

} // namespace troupe
