// SPDX-License-Identifier: Apache-2.0
// Reading and checking the options of synchronous training.
#include "actors/sync_policy.hpp"

#include <cmath>
#include <fmt/format.h>

namespace troupe {

expected<sync_policy> parse_sync_policy(std::string_view name) {
  for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel})
    if (name == to_string(policy)) return policy;
  return fail(errc::invalid_argument,
              fmt::format("no policy '{}'; there are tensorflow, latest_token and cancel", name));
}

expected<void> sync_options::validate() const {
  if (replicas_to_aggregate == 0)
    return fail(errc::invalid_argument,
                "replicas_to_aggregate is 0; a step needs at least 1 gradient");
  if (total_num_replicas == 0)
    return fail(errc::invalid_argument,
                "total_num_replicas is 0; training needs at least 1 replica");
  if (initial_tokens < -1)
    return fail(
      errc::invalid_argument,
      fmt::format("initial_tokens is {}; give 0 or more, or -1 for the default", initial_tokens));
  if (!(clip_global_norm >= 0 && std::isfinite(clip_global_norm)))
    return fail(
      errc::invalid_argument,
      fmt::format("clip_global_norm is {}; give a norm, or 0 for none", clip_global_norm));
  if (replicas_to_aggregate <= total_num_replicas) return {};
  if (one_gradient_per_replica)
    return fail(
      errc::invalid_argument,
      fmt::format("replicas_to_aggregate is {} with {} replicas, of which each may give only "
                  "one gradient to a step; lower it, or allow several",
                  replicas_to_aggregate, total_num_replicas));
  if (policy != sync_policy::tensorflow)
    return fail(
      errc::invalid_argument,
      fmt::format("replicas_to_aggregate is {} with {} replicas, but under {} each gives only one "
                  "gradient to a step; lower it, or choose the policy tensorflow",
                  replicas_to_aggregate, total_num_replicas, to_string(policy)));
  uint32_t tokens_needed = replicas_to_aggregate - total_num_replicas;
  if (first_tokens() < tokens_needed)
    return fail(errc::invalid_argument,
                fmt::format("Too few tokens to finish the first step: {} (given) vs {} (needed)",
                            first_tokens(), tokens_needed));
  return {};
}

} // namespace troupe
