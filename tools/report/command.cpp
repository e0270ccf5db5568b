// SPDX-License-Identifier: Apache-2.0
// The command `troupe report`: reads its arguments, and writes the page of a run.
#include "tools/report/command.hpp"

#include "actors/recording/readable.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/help.hpp"
#include "tools/report/report.hpp"

#include <fmt/format.h>
#include <string>

namespace troupe {

namespace {

constexpr const char* report_introduction
  = "Writes a run as one page for a browser: report.html in its folder. The page needs\n"
    "no network and stays below a megabyte, however long the run.\n"
    "\n"
    "Usage: troupe report [OPTIONS] RUN_DIR\n"
    "\n"
    "RUN_DIR is the folder of a run, finished or killed; or one with\n"
    "the ledger.csv and metrics.csv that troupe sim --ledger and --steps-csv write.\n";

constexpr const char* report_exit_codes
  = "\n"
    "Exit codes:\n"
    "  0      the page was written\n"
    "  1      the page could not be written\n"
    "  2      an argument is not as it must be, or RUN_DIR is no run\n";

/// The arguments of `troupe report`, as parsed.
struct report_options {
  std::string run_dir;
  std::string output;
  std::string answer; ///< To be printed instead, if not empty.
};

expected<report_options> parse_report(int argument_count, const char* const* arguments) {
  report_options options;
  command_options all{report_introduction, "one run is shown on a page", report_exit_codes};
  all.add("run", "", "", text_value(options.run_dir));
  all.add("-o,--output", "FILE", "where the page goes", text_value(options.output),
          "report.html in the folder of the run");
  all.add_help(options.answer);
  if (auto done = all.read(argument_count, arguments); !done) return tl::unexpected(done.error());
  if (!options.answer.empty() || !options.run_dir.empty()) return options;
  return misuse("which run? Give its folder: troupe report runs/NAME");
}

} // namespace

int report_command_main(int argument_count, const char* const* arguments) {
  auto options = parse_report(argument_count, arguments);
  if (auto code = answered("troupe report", options)) return *code;
  std::filesystem::path folder{options->run_dir};
  auto page
    = options->output.empty() ? folder / report_name : std::filesystem::path{options->output};
  auto report = write_report(folder, page);
  if (!report) {
    auto is_unwritable = report.error().code == errc::resource;
    return refuse("troupe report", report.error(),
                  is_unwritable ? exit_code::user_error : exit_code::usage);
  }
  fmt::print("{}: {} steps, {} KB; open it in a browser\n", report->path.string(),
             readable::count(report->step_count), (report->bytes + 999) / 1000);
  return static_cast<int>(exit_code::finished);
}

} // namespace troupe
