// SPDX-License-Identifier: Apache-2.0
// Counting attempts, and naming their folders.
#include "tools/restart.hpp"

#include <charconv>
#include <fmt/format.h>

namespace troupe {

expected<std::optional<uint32_t>> restart_count(const environment_reader& environment) {
  auto text = environment("TROUPE_RESTART_COUNT");
  if (!text) return std::nullopt;
  uint32_t count = 0;
  const auto* end = text->data() + text->size();
  auto [stop, wrong] = std::from_chars(text->data(), end, count);
  if (wrong != std::errc{} || stop != end)
    return fail(errc::invalid_argument,
                fmt::format("TROUPE_RESTART_COUNT is '{}', but it counts how often the job was "
                            "started before: 0, 1, ...",
                            *text));
  return count;
}

std::string restartable_folder(const environment_reader& environment) {
  return "runs/job-" + environment("TROUPE_JOB_ID").value_or("0");
}

expected<std::string> watched_folder(const std::string& asked_for,
                                     const environment_reader& environment) {
  auto restarts = restart_count(environment);
  if (!restarts) return tl::unexpected<error>(restarts.error());
  if (asked_for.empty() && !*restarts && !environment("TROUPE_JOB_ID")) return std::string{};
  auto base = asked_for.empty() ? restartable_folder(environment) : asked_for;
  return attempt_folder(base, restarts->value_or(0));
}

std::string attempt_folder(const std::string& base, uint32_t restarts) {
  return restarts == 0 ? base : fmt::format("{}-{}", base, uint64_t{restarts} + 1);
}

std::vector<std::string> earlier_attempts(const std::string& base, uint32_t restarts) {
  std::vector<std::string> folders;
  while (restarts-- > 0)
    folders.push_back(attempt_folder(base, restarts));
  return folders;
}

} // namespace troupe
