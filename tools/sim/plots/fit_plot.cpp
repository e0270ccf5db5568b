// SPDX-License-Identifier: Apache-2.0
// The curves of measured times and fitted distributions, as a gnuplot script.
#include "tools/sim/plots/fit_plot.hpp"

#include "actors/recording/csv.hpp"
#include "simulation/reports/run_profile.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

namespace {

using csv::field;

constexpr size_t shown_fits = 2;
constexpr size_t legend_max = 44; // letters

std::string fit_curves(const trace_fit& fit, const time_unit& unit, bool with_titles) {
  constexpr const char* colours[] = {"#d1410c", "#d9a521"};
  auto curve = [&](size_t column, std::string_view look, const std::string& title) {
    return fmt::format("\"fit.csv\" skip 1 using ({} * $1):(100 * ${}) with {} {}", unit.per_second,
                       column, look,
                       with_titles ? "title " + gnuplot_text(title) : std::string{"notitle"});
  };
  auto text = "plot " + curve(2, "steps lw 3 lc rgb \"#6fa8dc\"", "measured");
  for (size_t i = 0; i < std::min(shown_fits, fit.families.size()); ++i)
    text += ", \\\n     "
            + curve(3 + i, fmt::format("lines lw 1.5 dt {} lc rgb \"{}\"", i + 1, colours[i]),
                    shortened(fit.families[i].expression, legend_max, "..."));
  return text + "\n";
}

} // namespace

sim_plot fit_plot(const std::string& trace, const trace_fit& fit) {
  auto shown = std::min(shown_fits, fit.families.size());
  auto points = distribution_of(fit.usual);
  std::string table = "seconds,measured_share";
  for (size_t i = 0; i < shown; ++i)
    table += "," + field(fit.families[i].expression);
  table += '\n';
  for (auto [share, seconds] : points) {
    table += field(seconds) + "," + field(share);
    for (size_t i = 0; i < shown; ++i)
      table += "," + field(fit.families[i].cumulative(seconds));
    table += '\n';
  }
  auto shortest = points.front().seconds;
  auto longest = points.back().seconds;
  if (shortest == longest)
    return {.name = "fit", .why_not = fmt::format("all usual times are {} s", shortest)};
  auto tenth = *std::ranges::find_if(points, [](const auto& point) { return point.share >= 0.9; });
  auto end = std::min(longest, shortest + 1.3 * (tenth.seconds - shortest));
  if (tenth.seconds == 0) end = longest; // most take no time: a logarithmic panel shows none
  auto unit = unit_for(end);
  auto script = plot_beginning(
    {.name = "fit",
     .title = "Share of usual times that are no longer",
     .caption = fmt::format("{},  {} times,  {} slow replica{},  {} slow period{}", trace,
                            fit.usual.size(), fit.slow.size(), fit.slow.size() == 1 ? "" : "s",
                            fit.of_all.list.size() + fit.of_one.list.size(),
                            fit.of_all.list.size() + fit.of_one.list.size() == 1 ? "" : "s")});
  script
    += fmt::format(R"gnuplot(
set multiplot
set rmargin at screen 0.6
set xlabel "time of a gradient, {0}"
set ylabel "share of times, %" offset 1.2,0
set xrange [{1:.6g}:{2:.6g}]
set yrange [0:100]
set key at screen 0.625, screen 0.855 left top Left reverse samplen 1.2 spacing 1.3 font ",10"
)gnuplot",
                   unit.name, unit.per_second * std::max(0.0, shortest - 0.05 * (end - shortest)),
                   unit.per_second * end);
  script += fit_curves(fit, unit, true);
  if (tenth.seconds == 0) return {"fit", table, script + "unset multiplot\n"};
  script += tail_panel_beginning({.left = 0.68,
                                  .top = 0.55,
                                  .label_height = 1.08,
                                  .low = unit.per_second * tenth.seconds,
                                  .high = unit.per_second * 1.1 * longest});
  return {"fit", table, script + fit_curves(fit, unit, false) + "unset multiplot\n"};
}

} // namespace troupe
