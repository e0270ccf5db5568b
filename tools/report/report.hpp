// SPDX-License-Identifier: Apache-2.0
// Writes report.html: a run on one page, which needs no network and no server.
#pragma once

#include "messages/errors/errc.hpp"
#include "tools/options/job_options.hpp"
#include "tools/report/run_files.hpp"
#include "tools/report/run_json.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// The file in the folder of a run.
inline constexpr std::string_view report_name = "report.html";

/// The page with the result of `run_json` in it: one file with all that it needs.
[[nodiscard]] std::string page_of(std::string_view run_json);

/// The heading of a run, but for its state.
/// @param measure The column of its evaluations: "bits_per_byte"; empty: there are none.
/// @param options The options of its config.toml; nothing: it was simulated.
[[nodiscard]] run_heading heading_of(const std::filesystem::path& folder, const run_view& view,
                                     std::string_view measure,
                                     const std::optional<job_options>& options);

/// A report that was written, for a line about it.
struct written_report {
  std::filesystem::path path;
  std::string run_json; ///< Its content.
  uint64_t step_count = 0;
  uint64_t bytes = 0;
};

/// Reads the folder of a run and writes its page. A folder without config.toml is a simulated run.
/// @param is_wanted Asked before each replay; false: the page has only those made until then.
/// Cost: reads all of the ledger; replays its end, which takes seconds.
/// Errors: as `read_run_files`; invalid_argument, if config.toml is none; resource.
[[nodiscard]] expected<written_report> write_report(const std::filesystem::path& folder,
                                                    const std::filesystem::path& page,
                                                    const std::function<bool()>& is_wanted = {});

/// page.html with style.css and the scripts in it.
extern const std::string_view page_template;

} // namespace troupe
