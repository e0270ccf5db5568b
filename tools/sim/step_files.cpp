// SPDX-License-Identifier: Apache-2.0
// Writing each step of a simulation to files.
#include "tools/sim/step_files.hpp"

#include <filesystem>
#include <fmt/format.h>
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
  if (!command.ledger.empty() && command.ledger == command.steps_csv)
    return misuse(
      fmt::format("--ledger and --steps-csv are both {}; name two files", command.ledger));
  for (const auto* file : {&command.ledger, &command.steps_csv})
    if (!file->empty() && *file == command.json)
      return misuse(fmt::format("--json and --{} are both {}; name two files",
                                file == &command.ledger ? "ledger" : "steps-csv", *file));
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
