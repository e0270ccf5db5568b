// SPDX-License-Identifier: Apache-2.0
// Writes the files of `troupe sim --ledger FILE --steps-csv FILE`, as a real run does.
#pragma once

#include "actors/recording/ledger_file.hpp"
#include "actors/recording/metrics_file.hpp"
#include "tools/sim/command_line.hpp"

#include <optional>

namespace troupe {

/// The files that a command asks for. `create` comes before the simulation, so that minutes of it
/// are not lost to a wrong name.
class step_files {
public:
  /// Errors: invalid_argument, for a sweep or several runs, since a file is of one run, and
  /// for two options that name one file; resource, naming the file.
  [[nodiscard]] static expected<step_files> create(const sim_command& command);

  [[nodiscard]] bool is_empty() const { return !ledger_ && !steps_; }

  /// Adds a line for the step, or for each of its gradients. `flush` returns an error of it.
  void add(const step_record& step);

  /// Writes all lines to the files. Errors: resource, naming the file.
  [[nodiscard]] expected<void> flush();

private:
  std::optional<ledger_file> ledger_;
  std::optional<metrics_file> steps_;
};

} // namespace troupe
