// SPDX-License-Identifier: Apache-2.0
// Reads config.toml and ledger.csv, and makes of them a run that can be replayed.
#include "tools/replay/run_folder.hpp"

#include "tools/options/command_options.hpp"
#include "tools/options/config_file.hpp"
#include "tools/run/run_directory.hpp"
#include "tools/system/file_content.hpp"

#include <fmt/format.h>
#include <utility>

namespace troupe {

expected<job_options> read_run_options(const std::string& path) {
  job_options options;
  command_options all;
  add_options(all, options);
  auto config_path = run_directory::at(path).config().string();
  if (!run_directory::is_begun(path))
    return fail(errc::not_found,
                fmt::format("not the folder of a run: there is no {}", config_path));
  auto config = read_known_options(config_path, "--config", all);
  if (!config) return fail_at("not the folder of a run", config.error());
  if (replicas_meet(options.strategy)) { // a step takes all, and has no backups to drop
    options.aggregate = options.replicas;
    options.policy = sync_policy::latest_token;
  }
  return options;
}

expected<run_folder> run_of(const job_options& options, std::string_view ledger,
                            const std::string& name) {
  auto run = read_ledger(ledger, name);
  if (!run) return tl::unexpected<error>(run.error());
  auto replicas = static_cast<uint32_t>(options.replicas);
  if (run->times.size() > replicas)
    return fail(errc::malformed, fmt::format("{}: tells of replica {}, but the run had {}", name,
                                             run->times.size() - 1, replicas));
  run->set_replica_count(replicas);
  if (options.backups == backup_kind::dynamic) {
    return fail(errc::failed_precondition,
                fmt::format("{}: that run chose its number of backups anew for every step, by what "
                            "its gradients were; no ledger tells of that",
                            name));
  }
  return run_folder{name, std::move(*run), sync_of(options), options.seed};
}

expected<run_folder> read_run_folder(const std::string& path) {
  auto options = read_run_options(path);
  if (!options) return tl::unexpected<error>(options.error());
  auto ledger = run_directory::at(path).ledger().string();
  auto text = file_content(ledger, job_defaults::ledger_bytes);
  if (!text) return tl::unexpected<error>(text.error());
  return run_of(*options, *text, ledger);
}

} // namespace troupe
