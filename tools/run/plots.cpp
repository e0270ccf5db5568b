// SPDX-License-Identifier: Apache-2.0
// Writes the gnuplot scripts of a run, and runs them.
#include "tools/run/plots.hpp"

#include "actors/recording/output_file.hpp"
#include "tools/system/gnuplot.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/ranges.h>

namespace troupe {

namespace {

constexpr std::chrono::seconds gnuplot_timeout{30};

std::vector<std::string> names_of(plots_of plots) {
  if (plots == plots_of::steps) return {"steps"};
  return {"loss", "steps"};
}

// A word in quotes, so that the shell takes it as one.
std::string shell_quoted(const std::string& word) {
  const auto is_plain = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0
           || std::string_view{"-_./"}.find(letter) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string quoted{'\''};
  for (char letter : word) {
    if (letter == '\'')
      quoted += "'\\''";
    else
      quoted += letter;
  }
  return quoted + '\'';
}

} // namespace

expected<void> write_plot_scripts(const std::filesystem::path& folder,
                                  const quality_measure& measure,
                                  std::vector<plot_baseline> baselines) {
  auto done = replace_file(folder / "loss.gp", loss_script(measure, std::move(baselines)));
  if (done) done = replace_file(folder / "steps.gp", steps_script());
  return done;
}

expected<void> draw_plots(const std::filesystem::path& folder, plots_of plots) {
  return draw_pictures(folder, names_of(plots), gnuplot_timeout);
}

std::string plot_command(const std::filesystem::path& folder, plots_of plots) {
  return fmt::format("cd {} && gnuplot {}.gp", shell_quoted(folder.native()),
                     fmt::join(names_of(plots), ".gp "));
}

} // namespace troupe
