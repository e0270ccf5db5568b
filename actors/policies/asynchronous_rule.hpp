// SPDX-License-Identifier: Apache-2.0
// The rule by which a replica of asynchronous training goes on, without actors.
#pragma once

#include "actors/policies/sync_options.hpp"
#include "messages/errors/assert.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

namespace troupe {

/// Where training is asynchronous, nothing is stale: an update is made of the next `gradients`
/// gradients, however old they are. A replica waits at most for the update that its own gradient is
/// part of.
///
/// | policy        | a replica whose gradient ...  | goes on                                    |
/// |---------------|-------------------------------|--------------------------------------------|
/// | k_async       | is any of an update           | when that update is made                   |
/// | k_batch_async | is not the last of an update  | at once, with the variables as they are    |
/// | k_batch_async | is the last of an update      | when that update is made                   |
/// | ssp           | is an update                  | when it is made, if `slack_gate` allows it |
///
/// So under k_async no replica gives two gradients to one update (of several variables, unless
/// gradients have overtaken each other). Source: Dutta et al., "Slow and
/// stale gradients can win the race", AISTATS 2018, sections 2 and 3.
struct asynchronous_rule {
  sync_policy policy = sync_policy::k_batch_async;
  uint32_t gradients = 1; ///< K: of each update, at least 1.

  /// The rule of these options; nothing if they are synchronous.
  [[nodiscard]] static std::optional<asynchronous_rule> of(const sync_options& options) {
    if (!traits_of(options.policy).is_asynchronous()) return std::nullopt;
    return asynchronous_rule{options.policy, options.replicas_to_aggregate};
  }

  /// The first step that a replica may go on with, as one accumulator sees it.
  /// @param step The step that the accumulator collects for.
  /// @param position The place of the replica's gradient among those that wait for an update, from
  /// 1; above K if updates are behind.
  [[nodiscard]] uint64_t next_step(uint64_t step, uint64_t position) const {
    TROUPE_ASSERT(position > 0, step);
    auto waits = traits_of(policy).waits_all;
    return step + (position + (waits ? gradients - 1 : 0)) / gradients;
  }

  /// The most updates until a gradient that came is part of one; nothing if the options are
  /// synchronous. Before it may lie the gradients of all replicas, and as many again of which other
  /// variables never got their parts.
  [[nodiscard]] static std::optional<uint32_t> updates_awaited(const sync_options& options) {
    if (!traits_of(options.policy).is_asynchronous()) return std::nullopt;
    return 1 + 2 * options.total_num_replicas / options.replicas_to_aggregate;
  }

  /// The last step that a gradient may be part of if its replica was told `next_step`; exactly that
  /// step, if the replica waits for it.
  [[nodiscard]] uint64_t last_step(uint64_t next_step) const {
    if (!traits_of(policy).waits_all && gradients > 1) return next_step;
    return std::max<uint64_t>(next_step, 1) - 1;
  }

  /// The first step that a replica may go on with. @param steps That step by each accumulator of
  /// its variables; two of them may see gradients in another order. Where all replicas wait, the
  /// earliest counts: else each replica could wait for ever for a variable that lacks the others'
  /// gradients. Otherwise the latest counts: a replica that completes an update anywhere waits for
  /// it.
  [[nodiscard]] static uint64_t join(sync_policy policy, std::span<const uint64_t> steps) {
    if (steps.empty()) return 0;
    return traits_of(policy).waits_all ? std::ranges::min(steps) : std::ranges::max(steps);
  }
};

} // namespace troupe
