// SPDX-License-Identifier: Apache-2.0
// Writes options as lines, and finds the first line that differs.
#include "tools/job/option_agreement.hpp"

#include "actors/training/agreement.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/contexts/gathered_texts.hpp"
#include "tools/options/config_file.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string>

namespace troupe {

namespace {

constexpr std::array<std::string_view, 7> process_options{
  "resume",       "run-dir",         "timeline-bytes", "ledger-bytes",
  "metrics-port", "metrics-address", "observe-period"};

// Where there is a chief, these concern the chief alone, or each process that computes.
constexpr std::array<std::string_view, 9> process_options_beside_chief{
  "slow",           "device",           "variable-device",
  "evaluate-every", "checkpoint-every", "keep-checkpoints",
  "deadline",       "on-loss",          "rejoin-timeout"};

} // namespace

std::string agreement_of(const command_options& all, const job_options& options,
                         std::span<const std::string> own) {
  auto is_own = [own, has_chief = !replicas_meet(options.strategy)](const std::string& key) {
    return std::ranges::count(own, key) > 0 || std::ranges::count(process_options, key) > 0
           || (has_chief && std::ranges::count(process_options_beside_chief, key) > 0);
  };
  std::string lines;
  for (const auto& option : all.options())
    if (option.in_files && !is_own(option.key))
      lines += fmt::format("{} = {}\n", option.key, toml_text(option));
  return lines;
}

std::string agreement_on_meeting(strategy_kind strategy, const std::string& agreement) {
  return fmt::format("strategy = \"{}\"\n{}", to_string(strategy),
                     replicas_meet(strategy) ? "" : agreement);
}

void check_same_options(strategy& strategy, const std::string& agreement) {
  auto texts = gather_texts(strategy, "options", agreement);
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    auto differs = first_difference(texts[rank], texts.front());
    if (!differs) continue;
    const auto& names = strategy.layout().group->names;
    throw failure{
      {errc::failed_precondition,
       fmt::format("{} has {}, {} has {}; start all processes {}", names[rank],
                   line_or_nothing(differs->first), names[0], line_or_nothing(differs->second),
                   mend_of(differs->first, differs->second, "options"))}};
  }
}

} // namespace troupe
