// SPDX-License-Identifier: Apache-2.0
// Looks for checkpoints, and checks that they fit.
#include "tools/job/resumption.hpp"

#include "messages/errors/failure.hpp"
#include "tools/options/config_file.hpp"
#include "tools/options/option_value.hpp"
#include "tools/run/run_directory.hpp"
#include "tools/system/standard_streams.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

// Whether it is the program of Troupe itself. Programs of users may be renamed between runs.
bool is_train(std::string_view program) {
  return program == "troupe train";
}

expected<job_beginning> find_resumed(std::string_view program, const std::string& folder,
                                     const job_subject& subject, std::optional<uint64_t> end = {}) {
  if (folder.empty()) return job_beginning{};
  if (auto other = program_of_config(run_directory::at(folder).config());
      is_train(other) != is_train(program) && !other.empty())
    return fail(
      errc::failed_precondition,
      fmt::format("--resume {}: that is a run of {}; it goes on with that program", folder, other));
  auto found = newest_checkpoint(program, folder, "--resume " + folder, end);
  if (!found) return tl::unexpected<error>(found.error());
  if (subject.can_resume)
    if (auto fits = subject.can_resume(*found); !fits)
      return fail_at("--resume " + folder, fits.error());
  return job_beginning{folder, std::move(found->snapshot)};
}

bool has_no_whole_checkpoint(const error& reason) {
  return reason.code == errc::not_found || reason.code == errc::malformed;
}

} // namespace

expected<found_checkpoint> newest_checkpoint(std::string_view program,
                                             const std::filesystem::path& run,
                                             std::string_view label, std::optional<uint64_t> end) {
  try {
    auto warn = [program](const std::string& line) {
      print_if_possible(stderr, "{}: {}\n", program, line);
    };
    auto found = find_checkpoint(run_directory::at(run).checkpoints(), warn, end);
    if (found) return *std::move(found);
    return fail(errc::not_found, fmt::format("{}: no checkpoints are there", label));
  } catch (const failure& failed) {
    return fail_at(label, failed.reason());
  }
}

expected<job_beginning> find_beginning(std::string_view program, const std::string& resumed_run,
                                       const attempt_folders& attempts, const job_subject& subject,
                                       uint64_t steps) {
  std::optional<error> damaged;
  for (const auto& folder : attempts.earlier) {
    auto found = find_resumed(program, folder, subject);
    if (found && found->resume && found->resume->step >= steps) {
      found = find_resumed(program, folder, subject, steps);
      if (!found && has_no_whole_checkpoint(found.error())) {
        print_if_possible(
          stderr,
          "{}: {} has made all its {} steps, and has no whole checkpoint before the "
          "last: they are made again\n",
          program, folder, steps);
        continue;
      }
    }
    if (found || !has_no_whole_checkpoint(found.error())) return found;
    if (found.error().code == errc::not_found) continue;
    print_if_possible(stderr, "{}: {}\n", program, found.error().message);
    if (!damaged)
      damaged
        = error{errc::malformed,
                fmt::format("{}: its checkpoints are damaged, and without them the job would "
                            "begin at step 0; name a run to go on with by --resume, or remove "
                            "that folder to begin anew",
                            folder)};
  }
  if (damaged && resumed_run.empty()) return tl::unexpected<error>(*damaged);
  auto found = find_resumed(program, resumed_run, subject);
  if (found && found->resume && found->resume->step >= steps)
    return fail(errc::invalid_argument,
                fmt::format("--resume {}: that run has made all its {} steps; ask for more with "
                            "--steps",
                            resumed_run, found->resume->step));
  return found;
}

void hand_over_checkpoint(const job_beginning& beginning,
                          const std::filesystem::path& checkpoints) {
  if (!beginning.resume) return;
  auto name = fmt::format("checkpoint-{}.safetensors", beginning.resume->step);
  auto from = run_directory::at(beginning.folder).checkpoints();
  std::error_code ignored; // then the next checkpoint is the first
  std::filesystem::create_directories(checkpoints, ignored);
  auto partial = checkpoints / fmt::format(".{}.partial", name);
  if (std::filesystem::copy_file(from / name, partial, ignored))
    std::filesystem::rename(partial, checkpoints / name, ignored);
  std::filesystem::remove(partial, ignored); // half of it would fill a disk that is too small
}

} // namespace troupe
