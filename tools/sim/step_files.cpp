// SPDX-License-Identifier: Apache-2.0
// Writing each step of a simulation to files.
#include "tools/sim/step_files.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

template <class File>
expected<std::optional<File>> created(const std::string& option, const std::string& path) {
  if (path.empty()) return std::optional<File>{};
  std::error_code ignored; // the file says what is wrong
  std::filesystem::create_directories(std::filesystem::path{path}.parent_path(), ignored);
  auto file = File::create(path);
  if (!file) return fail(file.error().code, fmt::format("--{}: {}", option, file.error().message));
  return std::optional<File>{std::move(*file)};
}

// The file that a path names, however the path is spelt.
std::filesystem::path named(const std::string& path) {
  std::error_code failed;
  auto found = std::filesystem::weakly_canonical(std::filesystem::absolute(path, failed), failed);
  return failed ? std::filesystem::path{path} : found;
}

expected<void> check_apart(std::string_view option, const std::string& path,
                           std::string_view other_option, const std::string& other_path) {
  if (path.empty() || other_path.empty() || named(path) != named(other_path)) return {};
  return misuse(fmt::format("--{} {} and --{} {} are one file; name two", option, path,
                            other_option, other_path));
}

// A file remembers its first error, and `flush` tells it.
template <class File>
void append(std::optional<File>& file, const step_record& step) {
  if (file) static_cast<void>(file->append(step));
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
  auto ledger = created<ledger_file>("ledger", command.ledger);
  if (!ledger) return tl::unexpected<error>(ledger.error());
  files.ledger_ = std::move(*ledger);
  auto steps = created<metrics_file>("steps-csv", command.steps_csv);
  if (!steps) return tl::unexpected<error>(steps.error());
  files.steps_ = std::move(*steps);
  return files;
}

void step_files::add(const step_record& step) {
  append(ledger_, step);
  append(steps_, step);
}

expected<void> step_files::flush() {
  if (ledger_)
    if (auto done = ledger_->flush(); !done) return done;
  if (steps_)
    if (auto done = steps_->flush(); !done) return done;
  return {};
}

} // namespace troupe
