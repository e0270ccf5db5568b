// SPDX-License-Identifier: Apache-2.0
// The decisions about a step, and their errors.
#include "actors/policies/step_rules.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe {

uint32_t fewest_replicas(const sync_options& sync) {
  auto may_repeat = traits_of(sync.policy).repeats && !sync.one_gradient_per_replica;
  return may_repeat || sync.dynamic ? 1 : sync.replicas_to_aggregate;
}

expected<void> check_min_replicas(uint32_t min_replicas, const sync_options& sync) {
  auto refused = [&](const std::string& why) {
    return fail(errc::invalid_argument,
                fmt::format("min_replicas is {}, but {}", min_replicas, why));
  };
  if (traits_of(sync.policy).counts_tokens())
    return refused(fmt::format(
      "policy {} puts tokens for all replicas into its queue: those of absent ones grow stale "
      "there, and a replica that joins takes them; choose another policy, such as latest_token",
      traits_of(sync.policy).name));
  if (min_replicas > sync.total_num_replicas)
    return refused(
      fmt::format("there are {} replicas; choose at most as many", sync.total_num_replicas));
  if (auto fewest = fewest_replicas(sync); min_replicas < fewest)
    return refused(
      fmt::format("a step needs the gradients of {} replicas; choose at least as many", fewest));
  return {};
}

uint32_t choose_needed(const backup_choice& choice, uint32_t usual,
                       const replicas_present& replicas, job_time now) {
  if (choice.is_empty() || replicas.expected.empty())
    return std::min(usual, std::max(replicas.left, 1U));
  return choice.choose(replicas.expected, now);
}

std::vector<contribution> cancelled_by(const step_record& step, std::span<const uint32_t> live) {
  std::vector<contribution> cancelled;
  if (live.empty()) return cancelled;
  std::vector<bool> has_given(live.back() + size_t{1}, false);
  for (const auto& accepted : step.accepted)
    if (accepted.replica < has_given.size()) has_given[accepted.replica] = true;
  for (auto replica : live)
    if (!has_given[replica])
      cancelled.push_back({.replica = replica, .local_step = step.step - 1, .arrived = step.ended});
  return cancelled;
}

error to_error(const stalled_step& stalled) {
  const auto* why = stalled.live == 0     ? ""
                    : stalled.tokens == 0 ? ", all of them wait for a token, and no token is left"
                                          : ", and all of them have given the one that counts";
  auto lacking = stalled.lacking.empty() ? std::string{}
                                         : fmt::format("; too few gradients came for {}",
                                                       fmt::join(stalled.lacking, ", "));
  return {errc::stalled,
          fmt::format("step {} cannot end: it needs {} gradients, {} of {} replicas are live{}{}",
                      stalled.step, stalled.needed, stalled.live, stalled.replicas, why, lacking)};
}

} // namespace troupe
