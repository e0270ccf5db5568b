// SPDX-License-Identifier: Apache-2.0
// The command `troupe flight`: reads the flight records of a run, and prints them as one.
#include "tools/flight/command.hpp"

#include "tools/flight/merge.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/help.hpp"
#include "tools/system/file_content.hpp"
#include "tools/system/standard_streams.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <system_error>

namespace troupe {

namespace {

constexpr const char* flight_introduction
  = "Merges the flight records of a run's tasks by time, and says which task fell behind,\n"
    "and at what. A job of several tasks writes them when its chief gets SIGUSR1, a replica\n"
    "is lost, or a step does not end.\n"
    "\n"
    "Usage: troupe flight [OPTIONS] RUN_DIR\n"
    "\n"
    "RUN_DIR is the folder of a run; the records are the files *.jsonl in its folder flight.\n";

constexpr const char* flight_exit_codes
  = "\n"
    "Exit codes:\n"
    "  0      printed\n"
    "  2      an argument is not as it must be, or RUN_DIR has no flight records\n";

/// The arguments of `troupe flight`, as parsed.
struct flight_options {
  std::string run_dir;
  uint64_t messages_max = 40;
  std::string answer; ///< To be printed instead, if not empty.
};

expected<flight_options> parse_flight(int argument_count, const char* const* arguments) {
  flight_options options;
  command_options all{flight_introduction, "one run is shown at a time", flight_exit_codes};
  all.add("run", "", "", text_value(options.run_dir));
  all.add("--last", "COUNT", "how many of the last messages to print",
          whole_value(options.messages_max, {0, 1e9}));
  all.add_help(options.answer);
  if (auto done = all.read(argument_count, arguments); !done) return tl::unexpected(done.error());
  if (!options.answer.empty() || !options.run_dir.empty()) return options;
  return misuse("which run? Give its folder: troupe flight runs/NAME");
}

// A pipe or a device would be waited for.
expected<std::vector<std::string>> record_files(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator{folder, failed}) {
    if (entry.path().extension() != ".jsonl") continue;
    if (std::error_code ignored; entry.is_regular_file(ignored))
      files.push_back(entry.path().string());
    else
      print_if_possible(stderr, "troupe flight: {} is left out: it is no regular file\n",
                        entry.path().string());
  }
  if (std::error_code ignored; !std::filesystem::exists(folder.parent_path(), ignored))
    return fail(errc::not_found,
                fmt::format("{}: there is no such folder of a run", folder.parent_path().string()));
  if (files.empty())
    return fail(errc::not_found,
                fmt::format("{}: there are no flight records; they are written when the chief of a "
                            "job of several tasks gets SIGUSR1, a replica is lost, or a step does "
                            "not end; what a job of one process says lies in flight.txt",
                            folder.string()));
  std::ranges::sort(files);
  return files;
}

expected<std::vector<flight_task>> read_records(const std::filesystem::path& folder) {
  constexpr uint64_t bytes_max = uint64_t{64} << 20;
  auto files = record_files(folder);
  if (!files) return tl::unexpected<error>(files.error());
  std::vector<flight_task> tasks;
  for (const auto& file : *files) {
    auto text = file_content(file, bytes_max);
    if (!text) return tl::unexpected<error>(text.error());
    auto task = read_flight_task(*text, file);
    if (!task) return tl::unexpected<error>(task.error());
    tasks.push_back(std::move(*task));
  }
  return tasks;
}

} // namespace

int flight_command_main(int argument_count, const char* const* arguments) {
  auto options = parse_flight(argument_count, arguments);
  if (auto code = answered("troupe flight", options)) return *code;
  auto tasks = read_records(std::filesystem::path{options->run_dir} / "flight");
  if (!tasks) return refuse("troupe flight", tasks.error());
  fmt::print("{}", flight_page(*tasks, options->messages_max));
  return static_cast<int>(exit_code::finished);
}

} // namespace troupe
