// SPDX-License-Identifier: Apache-2.0
// Creates the files, and writes each step of a simulation to them.
#include "tools/sim/step_files.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

template <class File>
expected<std::optional<File>> create_file(const std::string& option, const std::string& path) {
  if (path.empty()) return std::optional<File>{};
  std::error_code ignored; // creating the file then fails, too
  std::filesystem::create_directories(std::filesystem::path{path}.parent_path(), ignored);
  auto file = File::create(path);
  if (!file) return fail_at("--" + option, file.error());
  return std::optional<File>{std::move(*file)};
}

// One path for all spellings of it.
std::filesystem::path canonical(const std::string& path) {
  std::error_code failed;
  auto result = std::filesystem::weakly_canonical(std::filesystem::absolute(path, failed), failed);
  return failed ? std::filesystem::path{path} : result;
}

expected<void> check_apart(std::string_view option, const std::string& path,
                           std::string_view other_option, const std::string& other_path) {
  if (path.empty() || other_path.empty() || canonical(path) != canonical(other_path)) return {};
  return misuse(fmt::format("--{} {} and --{} {} are one file; name two", option, path,
                            other_option, other_path));
}

} // namespace

expected<step_files> step_files::create(const sim_command& command) {
  const auto* option = !command.ledger.empty() ? "ledger" : "steps-csv";
  if (!command.ledger.empty() || !command.steps_csv.empty()) {
    if (!command.sweep.key.empty())
      return misuse(fmt::format("--{} is of one run; leave out --sweep", option));
    if (command.options.runs > 1)
      return misuse(fmt::format("--{} is of one run; leave out --runs", option));
  }
  for (const auto& done : {check_apart("ledger", command.ledger, "steps-csv", command.steps_csv),
                           check_apart("json", command.json, "ledger", command.ledger),
                           check_apart("json", command.json, "steps-csv", command.steps_csv)})
    if (!done) return tl::unexpected<error>(done.error());
  step_files files;
  auto ledger = create_file<ledger_file>("ledger", command.ledger);
  if (!ledger) return tl::unexpected<error>(ledger.error());
  files.ledger_ = std::move(*ledger);
  auto steps = create_file<metrics_file>("steps-csv", command.steps_csv);
  if (!steps) return tl::unexpected<error>(steps.error());
  files.steps_ = std::move(*steps);
  return files;
}

// A file keeps its first error, which `flush` returns.
void step_files::add(const step_record& step) {
  if (ledger_) static_cast<void>(ledger_->append(step));
  if (steps_) static_cast<void>(steps_->append(step));
}

expected<void> step_files::flush() {
  if (ledger_)
    if (auto done = ledger_->flush(); !done) return done;
  if (steps_)
    if (auto done = steps_->flush(); !done) return done;
  return {};
}

} // namespace troupe
