// SPDX-License-Identifier: Apache-2.0
// The command line of `troupe launch`.
#pragma once

#include "actors/net/host_port.hpp"
#include "messages/errors/errc.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Whether a line that several tasks write at once is printed once.
enum class fold_choice : uint8_t {
  automatic, ///< If it is printed on a terminal.
  always,
  never,
};

/// The options of `troupe launch`.
struct launch_options {
  uint32_t workers = 0;
  uint32_t parameter_servers = 0;
  bool chief = false;     ///< A task of its own; without it worker 0 is the chief.
  std::string task;       ///< The only task to start, as in "worker:1"; empty: all of a job.
  bool evaluator = false; ///< A task that evaluates checkpoints of the others.
  std::string log_dir;    ///< A file for each task goes here; empty: none.
  fold_choice fold = fold_choice::automatic;
  /// How long tasks that are asked to end may take before they are killed.
  std::chrono::milliseconds grace{10'000};
  uint32_t restarts = 0; ///< How often tasks, or all of them, are started again after a failure.
  bool spares_workers = false; ///< Whether the job may go on when a worker has failed.
  bool spares_ps = false;      ///< Whether the job may go on when a parameter server has failed.
  std::optional<host_port> collect_output; ///< Where other launchers send lines of their tasks.
  std::optional<host_port> send_output;    ///< Where the launcher that collects output listens.
  bool insecure_network = false;           ///< Whether to listen beyond this machine.
  std::optional<std::chrono::milliseconds> kill_every; ///< Time between kills; empty: none.
  std::string kill_tasks;                              ///< As `kill_choice::among` takes them.
  std::optional<uint64_t> kill_seed;                   ///< Empty: one is drawn.
  std::string job_id;                                  ///< Empty: one is drawn.
  std::vector<std::string> program;                    ///< Looked up in PATH, and its arguments.
  std::string answer; ///< A text to print instead of starting tasks; empty: none.
};

/// The most tasks of one job: the three descriptors of each fit into the 1,024 of a process.
constexpr uint32_t launch_tasks_max = 256;

/// The launcher waits at least so long for bytes that are under way.
constexpr std::chrono::milliseconds launch_grace_min{500};

/// Whether a job may have this name: 1 to 64 letters, digits, '-', '_' and '.'.
[[nodiscard]] bool is_job_id(std::string_view text);

/// Reads the words behind `troupe launch`; those behind `--` belong to the program.
/// Errors: `invalid_argument`, one line that names the culprit.
[[nodiscard]] expected<launch_options> parse_launch_options(int argument_count,
                                                            const char* const* arguments);

} // namespace troupe
