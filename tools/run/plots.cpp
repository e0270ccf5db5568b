// SPDX-License-Identifier: Apache-2.0
// Writes the gnuplot scripts of a run, and runs them.
#include "tools/run/plots.hpp"

#include "actors/recording/output_file.hpp"
#include "tools/system/child_process.hpp"

#include <algorithm>
#include <fmt/ranges.h>
#include <fstream>

namespace troupe {

namespace {

constexpr std::string_view loss_script_name = "loss.gp";
constexpr std::string_view steps_script_name = "steps.gp";

std::vector<std::string_view> scripts_of(plots_of plots) {
  if (plots == plots_of::steps) return {steps_script_name};
  return {loss_script_name, steps_script_name};
}

// gnuplot's exit code is 0 even if the disk is full.
expected<void> check_picture(std::filesystem::path picture) {
  picture.replace_extension(".svg");
  std::ifstream file{picture, std::ios::binary | std::ios::ate};
  const auto end_bytes = std::clamp<std::streamoff>(file.tellg(), 0, 64);
  std::string end(static_cast<size_t>(end_bytes), ' ');
  file.seekg(-end_bytes, std::ios::end);
  file.read(end.data(), end_bytes);
  if (file && end.find("</svg>") != std::string::npos) return {};
  return fail(errc::resource, fmt::format("gnuplot has not written all of {}; is the disk full?",
                                          picture.native()));
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
  auto done = replace_file(folder / loss_script_name, loss_script(measure, std::move(baselines)));
  if (done) done = replace_file(folder / steps_script_name, steps_script());
  return done;
}

expected<void> draw_plots(const std::filesystem::path& folder, plots_of plots) {
  const auto scripts = scripts_of(plots);
  std::vector<std::string> words{"gnuplot"};
  words.insert(words.end(), scripts.begin(), scripts.end());
  auto drawn = run({std::move(words), folder});
  for (auto script : scripts)
    if (drawn) drawn = check_picture(folder / script);
  return drawn;
}

std::string plot_command(const std::filesystem::path& folder, plots_of plots) {
  return fmt::format("cd {} && gnuplot {}", shell_quoted(folder.native()),
                     fmt::join(scripts_of(plots), " "));
}

} // namespace troupe
