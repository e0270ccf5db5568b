// SPDX-License-Identifier: Apache-2.0
// The style of all plots of `troupe sim`: their beginnings, colours, captions and units.
#pragma once

#include "tools/sim/report.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A picture: NAME.gp draws NAME.svg from NAME.csv.
struct sim_plot {
  std::string name;
  std::string csv;
  std::string script;
  std::string why_not = {}; ///< If not empty, why there is no such picture of this run.
};

/// The beginning of a picture.
struct plot_heading {
  std::string name; ///< Name of the files, without ending.
  std::string title;
  std::string caption;
  int width = 900;
  int height = 560;
};

/// A line that puts tics at whole numbers, for an axis that counts so few that gnuplot would put
/// others between them; empty if it counts more. @param axis "x" or "y".
[[nodiscard]] std::string whole_tics(std::string_view axis, size_t count);

/// The first lines of a script: the terminal, title, caption, and the look of axes.
[[nodiscard]] std::string plot_beginning(const plot_heading& heading);

/// A text in quotes that gnuplot shows as it is, in one line of UTF-8: other bytes become U+FFFD.
[[nodiscard]] std::string gnuplot_text(std::string_view text);

/// A name as a field of a picture's CSV file. gnuplot takes the first of two quotes for the end of
/// the field, so quotes become apostrophes.
[[nodiscard]] std::string name_field(std::string_view name);

/// The first letters of a text, the last of them replaced by `ending` if it has more.
[[nodiscard]] std::string shortened(std::string_view text, size_t letters_max,
                                    std::string_view ending = "..");

/// A name, or the beginning and the end of a long one: names of rows are expressions, which differ
/// at their ends as well.
[[nodiscard]] std::string without_middle(std::string_view name);

/// The count of letters of a UTF-8 text.
[[nodiscard]] size_t letter_count(std::string_view text);

/// Lines that one picture can show without clutter.
constexpr size_t lines_max = 8;

/// Rows that get a line in a picture: all, or `lines_max` of them, evenly chosen, with both ends.
[[nodiscard]] std::vector<size_t> shown_rows(size_t row_count);

/// The colour of the i-th of `count` lines, "#rrggbb": from dark blue over green to orange.
[[nodiscard]] std::string line_colour(size_t index, size_t count);

/// "n = 100,  N = 96,  policy latest_token,  computing chen2016-like,  seed 0", without the options
/// of the sweep, and without N if rows differ in it. @pre There is a row.
[[nodiscard]] std::string caption_of(const sim_command& command, std::span<const sim_row> rows);

/// Why there is no picture of steps of which the longest is 0 s.
inline constexpr const char* no_time = "no step takes any time";

/// Whether there are steps after the warm-up, of which the longest of all rows is 0 s.
[[nodiscard]] bool takes_no_time(std::span<const sim_row> rows);

/// "aggregate 96"; of a long value, its ends alone; "all steps" without a sweep.
[[nodiscard]] std::string line_name(const sim_command& command, const sim_row& row);

/// Numbers to write below an axis with logarithmic scale, with commas between: 1, 2, 5, 10, ...
/// @pre 0 < low <= high.
[[nodiscard]] std::string logarithmic_tics(double low, double high);

/// A panel beside a distribution, with its longest tenth.
struct tail_panel {
  double left = 0; ///< Position on the screen, from 0 to 1, as `top`.
  double top = 0;
  double label_height = 0; ///< Position of the label, in heights of the panel.
  double low = 0;          ///< The shortest shown time; above 0.
  double high = 0;         ///< The longest shown time.
};

/// The lines of a script before the panel's curves.
[[nodiscard]] std::string tail_panel_beginning(const tail_panel& panel);

/// A unit of time.
struct time_unit {
  double per_second = 1;
  std::string name = "s";
};

/// The unit in which times of this size are read best.
[[nodiscard]] time_unit unit_for(double seconds);

} // namespace troupe
