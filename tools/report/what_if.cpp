// SPDX-License-Identifier: Apache-2.0
// Chooses changes, and replays the end of a ledger with each.
#include "tools/report/what_if.hpp"

#include "actors/recording/input_file.hpp"
#include "actors/recording/ledger_file.hpp"
#include "messages/errors/failure.hpp"
#include "tools/run/run_directory.hpp"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <set>

namespace troupe {

namespace {

constexpr size_t repaired_max = 2; // replicas that get a row of their own

std::string change_text(const replay_change& change, uint64_t replicas) {
  if (change.policy) return fmt::format("policy {}", to_string(*change.policy));
  if (change.replicas) return fmt::format("{} replicas", *change.replicas);
  if (change.aggregate && *change.aggregate == replicas) return "wait for all replicas";
  if (change.aggregate) return fmt::format("wait for {} gradients", *change.aggregate);
  return fmt::format("repair replica {}", change.repaired.front());
}

what_if_answer answer_of(const run_folder& run, const replay_change& change,
                         const std::function<bool()>& is_wanted) {
  auto report = replay(run, change, is_wanted);
  const auto& changed = *report.changed;
  what_if_answer answer{.change = change_text(change, run.sync.total_num_replicas),
                        .option = option_text(change),
                        .needed = report.changed_sync.replicas_to_aggregate,
                        .mean_step_seconds = estimate_of(changed.seconds).mean,
                        .prediction = report.prediction,
                        .is_lower_bound = report.is_lower_bound};
  if (changed.stalled) answer.stalled = changed.stalled->reason;
  return answer;
}

// The place of the first step of which no line is cut off.
size_t first_whole_step(std::string_view text) {
  auto begin = text.find('\n') + 1;
  auto step_at = [&](size_t at) { return text.substr(at, text.find(',', at) - at); };
  for (auto at = begin; at < text.size();) {
    auto next = text.find('\n', at);
    if (next == std::string_view::npos || next + 1 == text.size()) break;
    if (step_at(next + 1) != step_at(at)) return next + 1;
    at = next + 1;
  }
  return text.size();
}

} // namespace

expected<std::string> ledger_end(const std::filesystem::path& ledger, uint64_t bytes_max) {
  auto file = input_file::open(ledger);
  if (!file) return tl::unexpected<error>(file.error());
  auto text = file->text(file->bytes() - std::min(file->bytes(), bytes_max));
  if (!text || text->size() == file->bytes()) return text;
  return std::string{ledger_file::header} + text->substr(first_whole_step(*text));
}

std::vector<replay_change> changes_worth_asking(const job_options& options,
                                                const std::vector<uint32_t>& slow) {
  std::vector<replay_change> changes;
  if (!replicas_meet(options.strategy)) {
    const auto all = options.replicas;
    const auto needed = options.aggregate;
    for (auto aggregate : std::set{needed - 1, needed + 1, all - 1, all})
      if (aggregate >= 1 && aggregate <= all && aggregate != needed)
        changes.push_back({.aggregate = aggregate});
    changes.push_back({.replicas = all + 1});
    for (auto policy : policies_that(&policy_traits::is_synchronous))
      if (policy != options.policy && needed < all) changes.push_back({.policy = policy});
  }
  for (size_t i = 0; i < std::min(slow.size(), repaired_max); ++i)
    changes.push_back({.repaired = {slow[i]}});
  return changes;
}

namespace {

// Adds its rows to the table as they come.
void fill(what_if_table& table, const std::filesystem::path& folder, const job_options& options,
          const std::vector<uint32_t>& slow, const std::function<bool()>& is_wanted) {
  auto path = run_directory::at(folder).ledger();
  auto text = ledger_end(path, what_if_bytes_max);
  auto run = text ? run_of(options, *text, path.native()) : tl::unexpected<error>(text.error());
  if (!run) throw failure{run.error()};
  table.first_step = run->run.first_step + 1;
  table.last_step = run->run.first_step + run->run.step_count();
  table.mean_step_seconds = estimate_of(run->run.step_seconds()).mean;
  table.needed = run->sync.replicas_to_aggregate;
  for (const auto& change : changes_worth_asking(options, slow)) {
    if (is_wanted && !is_wanted()) {
      table.why_none
        = "the run was asked to stop before its ledger was replayed: troupe report does it";
      break;
    }
    try {
      table.answers.push_back(answer_of(*run, change, is_wanted));
    } catch (const failure& failed) {
      table.why_none = failed.reason().message;
    }
  }
}

} // namespace

what_if_table what_if(const std::filesystem::path& folder, const job_options& options,
                      const std::vector<uint32_t>& slow, const std::function<bool()>& is_wanted) {
  what_if_table table;
  try {
    fill(table, folder, options, slow, is_wanted);
  } catch (const std::exception& failed) { // also if there is no thread or memory left
    table.why_none = failed.what();
  }
  if (!table.answers.empty()) table.why_none.clear();
  return table;
}

} // namespace troupe
