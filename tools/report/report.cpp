// SPDX-License-Identifier: Apache-2.0
// Makes the page of a run from its folder.
#include "tools/report/report.hpp"

#include "actors/recording/output_file.hpp"
#include "tools/replay/run_folder.hpp"
#include "tools/run/quality_measure.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

constexpr std::string_view run_mark = "\"RUN\"";

// A simulated run has no options: its ledger is all that is known.
std::string setup_of(const run_view& view, const std::optional<job_options>& options) {
  auto count = options ? options->replicas : view.totals().replicas().size();
  auto text = fmt::format("{} replicas, {} gradients a step", count, view.last().needed);
  if (!options) return text + ", simulated";
  return text + ", "
         + std::string{replicas_meet(options->strategy) ? to_string(options->strategy)
                                                        : to_string(options->policy)};
}

// The options of a run that counts epochs do not say its last step, but its last notice does:
// "asked to stop after step 40 of 100".
bool has_notice_of_early_end(const run_files& files) {
  const auto part = fmt::format(" after step {} of ", files.last_step);
  return std::ranges::any_of(files.view.notices(), [&](const run_notice& notice) {
    return notice.text.find(part) != std::string::npos;
  });
}

std::string state_of(const run_files& files, const std::optional<job_options>& options) {
  if (!options) return "simulated";
  if (!files.is_over) return "not finished: it was killed, or still runs";
  auto is_short
    = options->steps ? files.last_step < *options->steps : has_notice_of_early_end(files);
  std::string text = is_short ? "ended before its last step" : "finished";
  if (files.view.last().step < files.last_step)
    text += fmt::format("; its ledger ends with step {}", files.view.last().step);
  return text;
}

const quality_measure* measure_named(std::string_view column) {
  for (const auto* measure : {&quality_measures::bits_per_byte, &quality_measures::error_rate})
    if (measure->column == column) return measure;
  return nullptr;
}

expected<std::optional<job_options>> options_of(const std::filesystem::path& folder) {
  auto options = read_run_options(folder.native());
  if (options) return std::optional{std::move(*options)};
  if (options.error().code == errc::not_found) return std::nullopt;
  return tl::unexpected<error>(options.error());
}

} // namespace

std::string page_of(std::string_view run_json) {
  std::string page{page_template};
  return page.replace(page.find(run_mark), run_mark.size(), run_json);
}

run_heading heading_of(const std::filesystem::path& folder, const run_view& view,
                       std::string_view measure, const std::optional<job_options>& options) {
  std::error_code ignored;
  auto path = std::filesystem::weakly_canonical(folder, ignored);
  run_heading heading{.name = path.filename().string(),
                      .written = fmt::format("{:%Y-%m-%d %H:%M:%S} UTC",
                                             fmt::gmtime(std::chrono::system_clock::to_time_t(
                                               std::chrono::system_clock::now()))),
                      .setup = setup_of(view, options),
                      .measure = std::string{measure}};
  if (options) heading.step_count = options->steps;
  if (const auto* quality = measure_named(measure)) {
    heading.measure = quality->words;
    heading.loss_unit = quality->loss_unit;
    heading.loss_scale = 1 / quality->nats;
  }
  return heading;
}

expected<written_report> write_report(const std::filesystem::path& folder,
                                      const std::filesystem::path& page,
                                      const std::function<bool()>& is_wanted) {
  auto options = options_of(folder);
  if (!options) return tl::unexpected<error>(options.error());
  auto files = read_run_files(folder);
  if (!files) return tl::unexpected<error>(files.error());
  if (*options) files->view.expect(static_cast<uint32_t>((*options)->replicas));
  what_if_table answers;
  if (*options)
    answers = what_if(folder, **options, slow_replicas(files->view), is_wanted);
  else
    answers.why_none = "a simulated run says nothing of its policy: ask troupe sim --sweep";
  auto heading = heading_of(folder, files->view, files->measure, *options);
  heading.state = state_of(*files, *options);
  auto shown = run_json(files->view, heading, &answers);
  auto text = page_of(shown);
  auto written = replace_file(page, text);
  if (!written) return tl::unexpected<error>(written.error());
  return written_report{page, std::move(shown), files->view.step_count(), text.size()};
}

} // namespace troupe
