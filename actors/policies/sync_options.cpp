// SPDX-License-Identifier: Apache-2.0
// Reading and checking the options of synchronous training.
#include "actors/policies/sync_options.hpp"

#include <cmath>
#include <fmt/format.h>
#include <string_view>
#include <vector>

namespace troupe {

std::vector<sync_policy> policies_that(bool (policy_traits::*is_true)() const) {
  std::vector<sync_policy> found;
  for (auto policy : all_sync_policies)
    if ((traits_of(policy).*is_true)()) found.push_back(policy);
  return found;
}

std::string names_of(std::span<const sync_policy> policies, std::string_view last) {
  std::string text{to_string(policies.front())};
  for (size_t i = 1; i < policies.size(); ++i)
    text += fmt::format("{}{}", i + 1 < policies.size() ? ", " : last, to_string(policies[i]));
  return text;
}

expected<sync_policy> parse_sync_policy(std::string_view name) {
  for (auto policy : all_sync_policies)
    if (name == to_string(policy)) return policy;
  return fail(errc::invalid_argument, fmt::format("no policy '{}'; there are {}", name,
                                                  names_of(all_sync_policies, " and ")));
}

namespace {

expected<void> check_numbers(const sync_options& options) {
  // A negative number has become one beyond 2^31 on its way here.
  for (auto [name, given] : {std::pair{"replicas_to_aggregate", options.replicas_to_aggregate},
                             std::pair{"total_num_replicas", options.total_num_replicas}})
    if (auto count = static_cast<int32_t>(given); count < 0)
      return fail(errc::invalid_argument, fmt::format("{} is {}; give 1 or more", name, count));
  if (options.replicas_to_aggregate == 0)
    return fail(errc::invalid_argument,
                "replicas_to_aggregate is 0; a step needs at least 1 gradient");
  if (options.total_num_replicas == 0)
    return fail(errc::invalid_argument,
                "total_num_replicas is 0; training needs at least 1 replica");
  auto tokens = options.initial_tokens;
  if (tokens < -1)
    return fail(errc::invalid_argument,
                fmt::format("initial_tokens is {}; give 0 or more, or -1 for the default", tokens));
  if (constexpr auto most = sync_options::initial_tokens_max; tokens > most)
    return fail(errc::invalid_argument,
                fmt::format("initial_tokens is {}; {} are the most", tokens, most));
  if (auto norm = options.clip_global_norm; !(norm >= 0 && std::isfinite(norm)))
    return fail(errc::invalid_argument,
                fmt::format("clip_global_norm is {}; give a norm, or 0 for none", norm));
  return {};
}

// Checks the options that go with some policies only.
expected<void> check_policy(const sync_options& options) {
  const auto& policy = traits_of(options.policy);
  if (options.slack > 0 && !policy.keeps_pace())
    return fail(errc::invalid_argument,
                fmt::format("slack is {}, but under {} no replica waits for a slower one's clock; "
                            "leave it out, or choose the policy ssp",
                            options.slack, policy.name));
  if (policy.keeps_pace() && options.replicas_to_aggregate != 1)
    return fail(errc::invalid_argument,
                fmt::format("replicas_to_aggregate is {}, but under {} every gradient is an "
                            "update; set it to 1, or choose {}",
                            options.replicas_to_aggregate, policy.name,
                            names_of(policies_that(&policy_traits::gathers_stale))));
  if (options.dynamic && !policy.may_adapt())
    return fail(errc::invalid_argument,
                fmt::format("the number of backups cannot be chosen for each step under {}; choose "
                            "the policy {}",
                            policy.name, names_of(policies_that(&policy_traits::may_adapt))));
  if (policy.is_asynchronous() && options.one_gradient_per_replica)
    return fail(errc::invalid_argument,
                fmt::format("one_gradient_per_replica drops a replica's second gradient to a step, "
                            "but under {} none is dropped; leave it out",
                            policy.name));
  return {};
}

expected<void> check_dynamic(const sync_options& options) {
  if (!options.dynamic) return {};
  const auto& [gain, power, curvature, window, memory] = *options.dynamic;
  if (!(power > 0 && std::isfinite(power)))
    return fail(errc::invalid_argument,
                fmt::format("the power of a gain is {}; give a number above 0", power));
  if (!(curvature >= 0 && curvature < 2))
    return fail(errc::invalid_argument,
                fmt::format("curvature is {}; give a number above 0 and below 2, or no update "
                            "could help; or 0, to have it estimated",
                            curvature));
  if (window == 0 || memory < window)
    return fail(errc::invalid_argument,
                fmt::format("means are made of {} steps, of which {} are remembered; give at least "
                            "1, and remember as many",
                            window, memory));
  if (options.losses_are_sums && options.measures())
    return fail(errc::invalid_argument,
                "losses_are_sums does not go with dynamic backups by gain_model::measured, which "
                "compares means; let losses be means, or choose gain_model::power");
  return {};
}

// Checks that the replicas can give as many gradients as a step needs.
expected<void> check_gradients(const sync_options& options) {
  const auto& policy = traits_of(options.policy);
  auto needed = options.replicas_to_aggregate;
  auto replicas = options.total_num_replicas;
  if (needed <= replicas || (policy.repeats && policy.is_asynchronous())) return {};
  if (options.one_gradient_per_replica)
    return fail(
      errc::invalid_argument,
      fmt::format("replicas_to_aggregate is {} with {} replicas, of which each may give only "
                  "one gradient to a step; lower it, or allow several",
                  needed, replicas));
  if (!policy.repeats)
    return fail(
      errc::invalid_argument,
      fmt::format("replicas_to_aggregate is {} with {} replicas, but under {} each gives only one "
                  "gradient to a step; lower it, or choose the policy tensorflow",
                  needed, replicas, policy.name));
  if (options.first_tokens() < needed - replicas)
    return fail(errc::invalid_argument,
                fmt::format("Too few tokens to finish the first step: {} (given) vs {} (needed)",
                            options.first_tokens(), needed - replicas));
  return {};
}

} // namespace

expected<void> sync_options::validate() const {
  for (auto* check : {check_numbers, check_policy, check_dynamic, check_gradients})
    if (auto done = check(*this); !done) return done;
  return {};
}

} // namespace troupe
