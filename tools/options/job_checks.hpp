// SPDX-License-Identifier: Apache-2.0
// Checks that options of a job make sense together.
#pragma once

#include "messages/errors/errc.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/job_options.hpp"
#include "tools/options/option_origin.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

class distribution;

/// Resets an option that has no meaning beside the value of `chosen`, if `chosen` comes from a
/// stronger source; else refuses the option.
/// @param why Goes on behind "has no meaning". @param options As `reset` takes them.
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
/// than the strategy is reset instead. Where replicas meet, every update takes the gradients of
/// all; under `ssp` it takes one unless --aggregate is given.
/// Errors: `invalid_argument`; the line names the option and the strategy.
[[nodiscard]] expected<void> fit_strategy(job_options& options, option_origins& origins);

/// Gives each worker of a cluster one replica if the default number of replicas cannot be shared
/// evenly. An update then waits for all but one, unless --aggregate is given, replicas meet, or the
/// policy is `ssp`. @param workers At least 1.
void fit(job_options& options, const option_origins& origins, uint64_t workers);

/// Refuses computing or service times that name a node that is not there.
/// @param option As the user spelt it. @param count Nodes of that kind; at least 1.
/// Errors: `invalid_argument`.
[[nodiscard]] expected<void> check_named_nodes(std::string_view option, const distribution& times,
                                               uint64_t count, std::string_view kind = "replica");

/// Checks the relations between options.
/// Errors: `invalid_argument`; the line names the option to change, and a value that would do.
[[nodiscard]] expected<void> check(const job_options& options, const option_origins& origins);

} // namespace troupe
