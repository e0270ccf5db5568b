// SPDX-License-Identifier: Apache-2.0
// Whether options of a job that are each fine by themselves make sense together.
#pragma once

#include "messages/errc.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/job_options.hpp"
#include "tools/options/option_origin.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Resets an option that has no meaning beside the value of `chosen`, if `chosen` comes from a
/// stronger source; else refuses the option.
/// @param why As the line goes on behind "has no meaning". @param options As `reset` takes them.
/// Errors: `invalid_argument`; the line names the option.
template <class Options>
[[nodiscard]] expected<void> drop(std::string_view option, std::string_view chosen,
                                  const std::string& why, Options& options,
                                  option_origins& origins) {
  const std::string key{option};
  if (!origins.contains(key)) return {};
  if (origin_of(origins, key).from >= origin_of(origins, chosen).from)
    return misuse(fmt::format("{} has no meaning {}", spelling(origins, key), why));
  reset(key, options);
  origins.erase(key);
  return {};
}

/// Refuses options that have no meaning under the chosen strategy. An option from a weaker source
/// than the strategy is reset instead. Where replicas meet, every update takes
/// the gradients of all; under `ssp` it takes one, unless something else was asked for.
/// Errors: `invalid_argument`; the line names the option and the strategy.
[[nodiscard]] expected<void> fit_strategy(job_options& options, option_origins& origins);

/// Where the default number of replicas cannot be shared evenly by the workers of a cluster, each
/// has one, and an update waits for all but one, unless something else was asked for, replicas
/// meet, or the policy is `ssp`.
/// @param workers At least 1.
void fit(job_options& options, const option_origins& origins, uint64_t workers);

/// Checks the relations between options.
/// Errors: `invalid_argument`; the line names the option to change, and a value that would do.
[[nodiscard]] expected<void> check(const job_options& options, const option_origins& origins);

} // namespace troupe
