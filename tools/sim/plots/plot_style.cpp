// SPDX-License-Identifier: Apache-2.0
// Makes the beginnings, colours, captions and tics of plots.
#include "tools/sim/plots/plot_style.hpp"

#include "actors/recording/csv.hpp"
#include "messages/errors/assert.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace troupe {

namespace {

constexpr size_t caption_part_max = 60; // letters of an expression for computing times

constexpr size_t line_name_max = 14; // letters, beside a picture

std::string needed_text(const sim_row& row) {
  const auto& sync = row.experiment.sync;
  return sync.dynamic ? "N dynamic" : fmt::format("N = {}", sync.replicas_to_aggregate);
}

bool begins_letter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

// The place at which a letter of a UTF-8 text begins; the text's end if it has fewer.
size_t place_of_letter(std::string_view text, size_t letter) {
  size_t at = 0;
  while (at < text.size() && (!begins_letter(text[at]) || letter-- > 0))
    ++at;
  return at;
}

// A line end would end a string of a script, or a row of a table.
std::string in_one_line(std::string_view text) {
  std::string line{text};
  for (char& letter : line)
    if (static_cast<unsigned char>(letter) < 0x20) letter = ' ';
  return line;
}

std::string as_utf8(const std::string& text) {
  using json = nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace));
}

} // namespace

std::string plot_beginning(const plot_heading& heading) {
  return fmt::format(R"gnuplot(# Draws {0}.svg from {0}.csv:  gnuplot {0}.gp
reset session
set terminal svg size {1},{2} dynamic noenhanced font "DejaVu Sans,13" background "#ffffff"
set output "{0}.svg"
set datafile separator ","
set border 3 lc rgb "#888888"
set tics nomirror out textcolor rgb "#444444"
set grid ytics lt 1 lw 1 lc rgb "#e4e4e4"
set style fill solid 1 noborder
set xlabel offset 0,0.3
set label {3} at screen {4:.4f}, screen {5:.4f} left front font ",17"
set label {6} at screen {4:.4f}, screen {7:.4f} left front font ",12" textcolor rgb "#666666"
set lmargin at screen {4:.4f}
set tmargin at screen {8:.4f}
set bmargin at screen {9:.4f}
)gnuplot",
                     heading.name, heading.width, heading.height, gnuplot_text(heading.title),
                     80.0 / heading.width, 1 - 28.0 / heading.height, gnuplot_text(heading.caption),
                     1 - 52.0 / heading.height, 1 - 82.0 / heading.height, 72.0 / heading.height);
}

size_t letter_count(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, begins_letter));
}

std::string shortened(std::string_view text, size_t letters_max, std::string_view ending) {
  if (letter_count(text) <= letters_max) return std::string{text};
  return fmt::format("{}{}", text.substr(0, place_of_letter(text, letters_max - ending.size())),
                     ending);
}

std::string without_middle(std::string_view name) {
  auto count = letter_count(name);
  if (count <= line_name_max) return std::string{name};
  auto kept = (line_name_max - 2) / 2;
  return shortened(name, kept + 2) + std::string{name.substr(place_of_letter(name, count - kept))};
}

std::string name_field(std::string_view name) {
  auto line = in_one_line(name);
  std::ranges::replace(line, '"', '\'');
  return csv::field(line);
}

std::string gnuplot_text(std::string_view text) {
  std::string quoted{'\''};
  for (char letter : as_utf8(in_one_line(text))) {
    if (letter == '\'') quoted += '\'';
    quoted += letter;
  }
  return quoted + '\'';
}

std::vector<size_t> shown_rows(size_t row_count) {
  std::vector<size_t> rows;
  auto count = std::min(row_count, lines_max);
  for (size_t i = 0; i < count; ++i)
    rows.push_back(count < 2 ? 0 : (i * (row_count - 1) + (count - 1) / 2) / (count - 1));
  return rows;
}

std::string line_colour(size_t index, size_t count) {
  constexpr std::array<std::array<double, 3>, 5> stops{{{0x2b, 0x2a, 0x6e},
                                                        {0x1f, 0x6f, 0xb4},
                                                        {0x2a, 0xa1, 0x87},
                                                        {0xd9, 0xa5, 0x21},
                                                        {0xd1, 0x41, 0x0c}}};
  if (count < 2) return "#0b5394";
  auto place = static_cast<double>(index) / static_cast<double>(count - 1) * (stops.size() - 1);
  auto below = std::min(static_cast<size_t>(place), stops.size() - 2);
  auto part = place - static_cast<double>(below);
  std::string colour = "#";
  for (size_t i = 0; i < 3; ++i)
    colour += fmt::format("{:02x}",
                          std::lround(stops[below][i] * (1 - part) + stops[below + 1][i] * part));
  return colour;
}

std::string caption_of(const sim_command& command, std::span<const sim_row> rows) {
  const auto& row = rows.front();
  auto is_swept
    = [&](std::string_view key) { return command.sweep.key == key || command.across.key == key; };
  std::vector<std::string> parts;
  const auto& sync = row.experiment.sync;
  if (!is_swept("replicas")) parts.push_back(fmt::format("n = {}", sync.total_num_replicas));
  auto is_alike = [&](const sim_row& other) { return needed_text(other) == needed_text(row); };
  if (!is_swept("aggregate") && std::ranges::all_of(rows, is_alike))
    parts.push_back(needed_text(row));
  if (!is_swept("policy")) parts.push_back("policy " + row.options.policy);
  if (!is_swept("compute"))
    parts.push_back("computing " + shortened(row.options.compute, caption_part_max, "..."));
  if (row.experiment.dead > 0 && !is_swept("dead"))
    parts.push_back(fmt::format("{} dead", row.experiment.dead));
  if (!is_swept("seed")) parts.push_back(fmt::format("seed {}", row.experiment.seed));
  return fmt::format("{}", fmt::join(parts, ",  "));
}

bool takes_no_time(std::span<const sim_row> rows) {
  auto has_steps = [](const sim_row& row) { return row.report.timed_steps > 0; };
  auto takes_time = [](const sim_row& row) { return row.report.step_time.max > 0; };
  return std::ranges::any_of(rows, has_steps) && std::ranges::none_of(rows, takes_time);
}

std::string line_name(const sim_command& command, const sim_row& row) {
  auto name = row_name(command, row);
  if (name.empty()) return "all steps";
  if (letter_count(name) > line_name_max) return without_middle(name);
  return command.across.key.empty() ? fmt::format("{} {}", command.sweep.key, name) : name;
}

std::string whole_tics(std::string_view axis, size_t count) {
  constexpr size_t few = 10;
  return count > few ? "" : fmt::format("set {}tics 0,1\n", axis);
}

std::string logarithmic_tics(double low, double high) {
  TROUPE_ASSERT(0 < low && low <= high, low, high);
  constexpr double decades_of_parts = 2;
  constexpr double powers_max = 6;
  std::string tics;
  auto decades = std::log10(high / low);
  auto stride = std::max(1, static_cast<int>(std::ceil(decades / powers_max)));
  auto last = static_cast<int>(std::floor(std::log10(high)));
  for (auto exponent = static_cast<int>(std::floor(std::log10(low))); exponent <= last;
       exponent += stride) {
    for (double part : {1.0, 2.0, 5.0}) {
      auto place = part * std::pow(10, exponent);
      if (part > 1 && decades > decades_of_parts) break;
      if (place >= low && place <= high)
        tics += fmt::format("{}{:g}", tics.empty() ? "" : ", ", place);
    }
  }
  if (tics.find(',') != std::string::npos) return tics;
  return fmt::format("{:.2g}, {:.2g}, {:.2g}", low, std::sqrt(low * high), high);
}

std::string tail_panel_beginning(const tail_panel& panel) {
  return fmt::format(R"gnuplot(
unset label
unset key
set lmargin at screen {0:.2f}
set rmargin at screen 0.97
set bmargin at screen 0.1286
set tmargin at screen {1:.2f}
set label "The longest tenth, %" at graph 0, graph {2} left font ",11" textcolor rgb "#444444"
set tics font ",10"
set logscale x
unset xlabel
unset ylabel
set xrange [{3:.6g}:{4:.6g}]
set yrange [90:100]
set ytics 90,5,100
set xtics ({5})
)gnuplot",
                     panel.left, panel.top, panel.label_height, panel.low, panel.high,
                     logarithmic_tics(panel.low, panel.high));
}

time_unit unit_for(double seconds) {
  if (seconds < 1e-3) return {1e6, "us"};
  if (seconds < 0.5) return {1e3, "ms"};
  if (seconds < 600) return {1, "s"};
  if (seconds < 3600 * 3) return {1.0 / 60, "minutes"};
  if (seconds < 86400 * 3) return {1.0 / 3600, "hours"};
  return {1.0 / 86400, "days"};
}

} // namespace troupe
