// SPDX-License-Identifier: Apache-2.0
// The command `troupe sim`: checks the experiments of all rows, runs them and reports.
#include "tools/sim/command.hpp"

#include "kernels/tensor/huge_pages.hpp"
#include "messages/errors/failure.hpp"
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
#include <string_view>
#include <utility>

namespace troupe {

namespace {

/// A word behind `troupe sim`, and its command.
struct subcommand {
  std::string_view name;
  int (*main)(int argument_count, const char* const* arguments);
};

constexpr subcommand subcommands[] = {{"advise", advise_command_main},
                                      {"fit", fit_command_main},
                                      {"goodput", goodput_command_main},
                                      {"replay", replay_command_main}};

// Makes all rows before the first simulation: a sweep must not fail in its last row after minutes.
expected<std::vector<sim_row>> rows_of(const sim_command& command) {
  std::vector<sim_row> rows;
  auto all = command.rows();
  if (auto used = check_uses(all); !used) return tl::unexpected<error>(used.error());
  for (auto& options : all) {
    auto experiment = experiment_of(options);
    if (!experiment) return tl::unexpected<error>(experiment.error());
    experiment->hashes = !command.json.empty(); // tables have none
    rows.push_back({.options = std::move(options), .experiment = std::move(*experiment)});
  }
  return rows;
}

// Collects for files and plots only if there are any, since that takes time and memory.
void simulate(sim_row& row, step_files& files, bool with_profile, bool with_spans) {
  auto experiment = row.experiment;
  std::optional<run_profile> profile;
  if (with_profile) profile.emplace(experiment, with_spans);
  if (with_profile || !files.is_empty())
    experiment.on_step = [&](const step_record& step) {
      files.add(step);
      if (profile) profile->add(step);
    };
  if (with_profile && with_spans)
    experiment.on_delivery = [&](const delivery& delivery) { profile->add(delivery); };
  row.report = run(experiment);
  if (profile) row.profile = profile->figures();
}

void simulate(const sim_command& command, std::vector<sim_row>& rows, step_files& files) {
  // Either rows or the runs of a row go side by side.
  const auto& first = rows.front();
  auto threads = first.experiment.runs > 1 ? 1 : first.experiment.threads;
  for_each_on_threads(rows.size(), threads, [&](size_t i) {
    simulate(rows[i], files, !command.plots.empty(), rows.size() == 1);
  });
  for (auto& row : rows)
    if (&row != &first) row.difference = step_time_difference(row.report, first.report);
}

expected<void> write(const sim_command& command, const std::vector<sim_row>& rows) {
  return write_report(command.json, command.plots,
                      {.text = [&] { return sim_table(command, rows); },
                       .json = [&] { return sim_json(command, rows); },
                       .plots = [&] { return write_sim_plots(command, rows); }});
}

} // namespace

int sim_command_main(int argument_count, const char* const* arguments) {
  prefer_huge_pages();
  for (const auto& subcommand : subcommands)
    if (argument_count > 1 && arguments[1] == subcommand.name)
      return subcommand.main(argument_count - 1, arguments + 1);
  auto command = parse_sim_options(argument_count, arguments);
  if (auto code = answered("troupe sim", command)) return *code;
  auto rows = rows_of(*command);
  if (!rows) return refuse("troupe sim", rows.error());
  if (auto outputs = check_outputs(command->json, command->plots); !outputs)
    return refuse("troupe sim", outputs.error());
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
