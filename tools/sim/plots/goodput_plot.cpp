// SPDX-License-Identifier: Apache-2.0
// The curves of useful work by backups, as a gnuplot script.
#include "tools/sim/plots/goodput_plot.hpp"

#include "actors/recording/csv.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

namespace {

using csv::field;

std::string goodput_table(const std::vector<goodput_row>& rows) {
  std::string table = "nodes,backups,useful,useful_of_all\n";
  for (const auto& row : rows)
    table += csv::line({field(row.model.nodes), std::to_string(row.model.backups),
                        field(row.useful), field(row.useful_of_all())});
  return table;
}

std::string goodput_curves(const std::vector<int64_t>& nodes) {
  std::string text = "plot ";
  auto shown = shown_rows(nodes.size());
  for (size_t i = 0; i < shown.size(); ++i)
    text += fmt::format("{}\"goodput.csv\" skip 1 using ($1 == {} ? $2 : NaN):(100 * $4) with "
                        "linespoints lw 2 pt 7 ps 0.6 lc rgb \"{}\" title \"{} nodes\"",
                        i == 0 ? "" : ", \\\n     ", nodes[shown[i]], line_colour(i, shown.size()),
                        nodes[shown[i]]);
  return text + "\n";
}

} // namespace

sim_plot goodput_plot(const goodput_command& command, const std::vector<goodput_row>& rows) {
  if (command.backups.size() < 2)
    return {.name = "goodput", .why_not = "needs two numbers of --backups to compare"};
  auto script = plot_beginning(
    {.name = "goodput",
     .title = "Useful work by the number of backups",
     .caption = fmt::format("{:g} days,  a node fails every {:g} h and is back after {:g} s,  "
                            "restart {:g} s,  checkpoint {:.4g} s",
                            command.days, command.mtbf_hours, command.node_return, command.restart,
                            command.checkpoint_cost)});
  script += fmt::format(R"gnuplot(
set rmargin at screen 0.8
set xlabel "backups"
set ylabel "useful work, % of the time of all nodes" offset 1.2,0
{}set key at screen 0.825, screen 0.855 left top Left reverse samplen 1.2 spacing 1.3 font ",11"
)gnuplot",
                        whole_tics("x", static_cast<size_t>(std::ranges::max(command.backups))));
  return {"goodput", goodput_table(rows), script + goodput_curves(command.nodes)};
}

} // namespace troupe
