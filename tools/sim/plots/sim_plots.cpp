// SPDX-License-Identifier: Apache-2.0
// Writes numbers and scripts of all pictures, and has gnuplot draw them.
#include "tools/sim/plots/sim_plots.hpp"

#include "actors/recording/output_file.hpp"
#include "actors/recording/step_timeline.hpp"
#include "actors/recording/timeline_file.hpp"
#include "tools/sim/plots/plot_list.hpp"
#include "tools/system/gnuplot.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

namespace fs = std::filesystem;

// Pictures of many points take their time.
constexpr std::chrono::minutes gnuplot_timeout{2};

constexpr uint64_t timeline_bytes_max = uint64_t{32} << 20;

expected<void> write_timeline_json(const fs::path& path, const replica_spans& spans) {
  timeline_options options{.job = "troupe sim", .file_bytes_max = timeline_bytes_max};
  for (uint32_t i = 0; i < spans.replica_count(); ++i)
    options.tracks.push_back(replica_track(i));
  auto file = timeline_file::create(path, options);
  if (!file) return tl::unexpected<error>(file.error());
  for (const auto& span : spans.spans()) {
    auto done = file->append({.actor = replica_track(span.replica),
                              .name = std::string{to_string(span.what)},
                              .start = span.start,
                              .duration = span.end - span.start,
                              .step = span.step});
    if (!done) return done;
  }
  return file->flush();
}

/// The pictures of which numbers and scripts were written, and those that there are not.
struct written_plots {
  std::vector<std::string> names;
  std::string refused; ///< A line for each picture that there is not.
};

expected<written_plots> write_all(const fs::path& folder, const std::vector<sim_plot>& plots) {
  written_plots written;
  for (const auto& plot : plots) {
    if (!plot.why_not.empty()) {
      written.refused += fmt::format("not drawn: {}: {}\n", plot.name, plot.why_not);
      continue;
    }
    auto done = replace_file(folder / (plot.name + ".csv"), plot.csv);
    if (done) done = replace_file(folder / (plot.name + ".gp"), plot.script);
    if (!done) return tl::unexpected<error>(done.error());
    written.names.push_back(plot.name);
  }
  return written;
}

// A picture that fails must not take the others with it.
std::string draw(const fs::path& folder, const std::vector<std::string>& names) {
  std::string drawn;
  std::string problems;
  for (const auto& name : names) {
    auto done = draw_pictures(folder, {&name, 1}, gnuplot_timeout);
    if (done) {
      drawn += fmt::format(" {}.svg", name);
      continue;
    }
    problems += fmt::format("not drawn: {}: {}; to draw it, run gnuplot {}.gp there\n", name,
                            done.error().message, name);
    if (done.error().code != errc::not_found) continue;
    return fmt::format("no plots: {}; the numbers and scripts are in {}: run gnuplot *.gp there\n",
                       done.error().message, folder.string());
  }
  return fmt::format("plots in {}:{}\n", folder.string(), drawn) + problems;
}

} // namespace

std::vector<sim_plot> sim_plots(const sim_command& command, const sim_rows& rows) {
  return {step_time_plot(command, rows),     arrivals_plot(command, rows),
          backups_plot(command, rows),       convergence_plot(command, rows),
          grid_plot(command, rows),          loss_plot(command, rows),
          work_plot(command, rows),          staleness_plot(command, rows),
          contributions_plot(command, rows), timeline_plot(command, rows),
          slow_down_plot(command, rows)};
}

expected<std::string> write_plots(const std::string& folder, const std::vector<sim_plot>& plots) {
  auto written = write_all(folder, plots);
  if (!written) return tl::unexpected<error>(written.error());
  return (written->names.empty() ? "" : draw(folder, written->names)) + written->refused;
}

expected<std::string> write_sim_plots(const sim_command& command,
                                      const std::vector<sim_row>& rows) {
  fs::path folder{command.plots};
  auto written = write_all(folder, sim_plots(command, rows));
  if (!written) return tl::unexpected<error>(written.error());
  auto text = draw(folder, written->names);
  if (rows.size() == 1 && !rows[0].profile->spans->bounds().empty()) {
    auto done = write_timeline_json(folder / "timeline.json", *rows[0].profile->spans);
    if (!done) return tl::unexpected<error>(done.error());
    text += fmt::format("for https://ui.perfetto.dev: {}\n", (folder / "timeline.json").string());
  }
  return text + written->refused;
}

} // namespace troupe
