// SPDX-License-Identifier: Apache-2.0
// Counts attempts, and names their folders.
#include "tools/run/restart.hpp"

#include "messages/text.hpp"
#include "tools/options/restart_limit.hpp"
#include "tools/run/run_directory.hpp"

#include <filesystem>
#include <fmt/format.h>

namespace troupe {

namespace {

namespace fs = std::filesystem;

constexpr const char* own_counter = "TROUPE_RESTART_COUNT";
constexpr const char* torchrun_counter = "TORCHELASTIC_RESTART_COUNT";

// torchrun sets its counter without restarts, too, and gives the attempts of a job no common name.
bool is_counted_by_torchrun(const std::string& run_dir, const environment_reader& environment) {
  return !run_dir.empty() && environment("TORCHELASTIC_MAX_RESTARTS").value_or("0") != "0";
}

// How often the job was started before, by a launcher that starts failed jobs again; nothing if
// there is no such launcher.
expected<std::optional<uint32_t>> restart_count(const std::string& run_dir,
                                                const environment_reader& environment) {
  const auto* counter = own_counter;
  auto text = environment(own_counter);
  if (!text && is_counted_by_torchrun(run_dir, environment)) {
    counter = torchrun_counter;
    text = environment(torchrun_counter);
  }
  if (!text) return std::nullopt;
  auto count = number_of<uint32_t>(*text);
  if (!count || *count > restarts_max)
    return fail(errc::invalid_argument,
                fmt::format("{} is '{}', but it counts how often the job was started before: 0, "
                            "1, ..., at most {}",
                            counter, *text, restarts_max));
  return count;
}

std::string attempt_folder(const std::string& base, uint32_t restarts) {
  return restarts == 0 ? base : fmt::format("{}-{}", base, uint64_t{restarts} + 1);
}

// The same folder without slashes and dots behind its name.
fs::path trimmed(fs::path folder) {
  while ((!folder.has_filename() || folder.filename() == ".") && folder.has_relative_path()
         && folder.has_parent_path())
    folder = folder.parent_path();
  return folder;
}

// The same folder, as written but with its name at the end: "run/-2" and "run/.-2" would lie in
// "run". The folders "." and ".." get their names.
std::string named_at_end(const std::string& run_dir) {
  auto folder = trimmed(run_dir);
  if (folder.filename() != "." && folder.filename() != "..") return folder.string();
  std::error_code problem;
  auto found = fs::weakly_canonical(fs::absolute(folder, problem), problem);
  return (problem ? folder : trimmed(found)).string();
}

// The run folder of a job without --run-dir: the same in every attempt.
std::string default_folder(const environment_reader& environment) {
  return "runs/job-" + environment("TROUPE_JOB_ID").value_or("0");
}

// The number of the attempt after the first that a folder's name belongs to; 0: none. A date like
// 20261120 is more than any number of attempts.
uint64_t later_attempt(std::string_view name, const std::string& first) {
  if (!name.starts_with(first + "-")) return 0;
  name.remove_prefix(first.size() + 1);
  auto number = number_of<uint64_t>(name).value_or(0);
  return number > 1 && number <= restarts_max + uint64_t{1} ? number : 0;
}

expected<void> check_later_attempts(const std::string& base) {
  std::error_code ignored; // making a folder there will name the problem
  fs::path path{base};
  auto parent = path.has_parent_path() ? path.parent_path() : fs::path{"."};
  for (const auto& entry : fs::directory_iterator{parent, ignored}) {
    auto number = later_attempt(entry.path().filename().native(), path.filename().native());
    if (number == 0 || run_directory::check(entry.path())) continue;
    return fail(errc::failed_precondition,
                fmt::format("--run-dir: {}-{} is where attempt {} of this job would go on, but it "
                            "is taken; remove it, or pass another name",
                            base, number, number));
  }
  return {};
}

} // namespace

expected<attempt_folders> find_attempt(const std::string& run_dir, bool is_watched,
                                       const environment_reader& environment) {
  auto restarts = restart_count(run_dir, environment);
  if (!restarts) return tl::unexpected<error>(restarts.error());
  auto is_named = is_watched && environment("TROUPE_JOB_ID");
  if (!*restarts && !is_named) return attempt_folders{.own = run_dir};
  auto base = run_dir.empty() ? default_folder(environment) : named_at_end(run_dir);
  attempt_folders folders{.own = attempt_folder(base, restarts->value_or(0))};
  for (auto earlier = restarts->value_or(0); earlier-- > 0;)
    folders.earlier.push_back(attempt_folder(base, earlier));
  if (*restarts != 0U) return folders;
  return check_later_attempts(base).map([&] { return std::move(folders); });
}

} // namespace troupe
