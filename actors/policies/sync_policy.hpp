// SPDX-License-Identifier: Apache-2.0
// The protocols of a step, by name, and the traits in which they differ.
#pragma once

#include "messages/errors/errc.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The policy for replicas that a step did not wait for.
///
/// | policy        | a late replica                         | tokens of an update             |
/// |---------------|----------------------------------------|---------------------------------|
/// | tensorflow    | finishes, is dropped, takes the oldest | max(n, N), one FIFO, anonymous  |
/// | latest_token  | finishes, is dropped, takes the newest | as many as replicas ask         |
/// | cancel        | is told to stop, takes the newest      | as many as replicas ask         |
/// | k_async       | finishes, and counts for a later step  | for the givers of its gradients |
/// | k_batch_async | finishes, and counts for a later step  | no replica waits for one        |
/// | ssp           | finishes, and counts for a later step  | for those not too far ahead     |
///
/// `tensorflow` is exactly what SyncReplicasOptimizer does: leftover tokens grow stale in the
/// queue, so a dead or slow replica can cost up to half the speed, and one round is wasted at the
/// start; a fast replica may give several gradients to one step. Under the other two each replica
/// gives at most one gradient to a step. Source:
/// tensorflow/python/training/sync_replicas_optimizer.py.
///
/// The last three are asynchronous (`asynchronous_rule`): nothing is dropped, an update is made of
/// the next N gradients however old they are, and each of them says by how many updates it is late.
///
/// The numbers stand in files. `policy_table` says how a policy behaves.
enum class sync_policy : uint8_t {
  tensorflow = 0,
  latest_token = 1,
  cancel = 2,
  k_async = 3,
  k_batch_async = 4,
  ssp = 5,
};

/// The token that a replica gets when it asks for one (`token_ledger`).
enum class token_supply : uint8_t {
  counted, ///< The oldest of those that updates made, if one is left.
  newest,  ///< One of the newest step, if the replica is behind.
  due,     ///< One of the newest step, if that has come which the replica's gradient leads to.
  paced,   ///< One of the newest step, if the replica is not too far ahead (`slack_gate`).
};

/// The fate of a gradient that its step did not wait for.
enum class late_gradient : uint8_t {
  dropped,   ///< It is computed, pushed and found stale.
  cancelled, ///< Its replica is told to stop as soon as the step has what it needs.
  counted,   ///< It is part of a later update: training is asynchronous.
};

/// The traits in which policies differ: actors ask for these, and know no policy by name.
struct policy_traits {
  std::string_view name;  ///< As flags and reports spell it.
  std::string_view about; ///< The words behind its name in the help of `troupe train`.
  token_supply tokens;
  late_gradient late;
  bool repeats; ///< One replica may give several gradients to an update.
  /// Where training is asynchronous: all replicas of an update wait for it, not only the one that
  /// completed it.
  bool waits_all;

  /// Tokens are made by updates, and may run out.
  [[nodiscard]] constexpr bool counts_tokens() const { return tokens == token_supply::counted; }

  /// Replicas have clocks, and every gradient is an update of its own.
  [[nodiscard]] constexpr bool keeps_pace() const { return tokens == token_supply::paced; }

  [[nodiscard]] constexpr bool cancels() const { return late == late_gradient::cancelled; }

  /// Stale gradients count.
  [[nodiscard]] constexpr bool is_asynchronous() const { return late == late_gradient::counted; }

  /// An update is made of gradients of the newest step only.
  [[nodiscard]] constexpr bool is_synchronous() const { return !is_asynchronous(); }

  /// Stale gradients count, and an update may be made of several.
  [[nodiscard]] constexpr bool gathers_stale() const { return is_asynchronous() && !keeps_pace(); }

  /// Each step may need another number of gradients (`dynamic_backups`): no token is left over, and
  /// no gradient is kept for a step that needs fewer.
  [[nodiscard]] constexpr bool may_adapt() const { return tokens == token_supply::newest; }
};

/// One line for each policy, in the order of their numbers.
inline constexpr std::array policy_table{
  // clang-format off
  //            name             about
  //            tokens                 late                      repeats waits_all
  policy_traits{"tensorflow",    "as SyncReplicasOptimizer does",
                token_supply::counted, late_gradient::dropped,   true,   false},
  policy_traits{"latest_token",  "the one for backups",
                token_supply::newest,  late_gradient::dropped,   false,  false},
  policy_traits{"cancel",        "late ones are told to stop",
                token_supply::newest,  late_gradient::cancelled, false,  false},
  policy_traits{"k_async",       "a replica waits for the update that its gradient is part of",
                token_supply::due,     late_gradient::counted,   false,  true},
  policy_traits{"k_batch_async", "no replica waits",
                token_supply::due,     late_gradient::counted,   true,   false},
  policy_traits{"ssp",           "every gradient is an update, no replica runs far ahead",
                token_supply::paced,   late_gradient::counted,   true,   false},
  // clang-format on
};

[[nodiscard]] constexpr const policy_traits& traits_of(sync_policy policy) {
  return policy_table[static_cast<size_t>(policy)];
}

/// Every policy, in the order of its numbers.
inline constexpr auto all_sync_policies = [] {
  std::array<sync_policy, policy_table.size()> all{};
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<sync_policy>(i);
  return all;
}();

/// The policy's name, as flags and reports spell it.
[[nodiscard]] constexpr std::string_view to_string(sync_policy policy) {
  return traits_of(policy).name;
}

/// The policies of which a trait is true, in the order of their numbers.
[[nodiscard]] std::vector<sync_policy> policies_that(bool (policy_traits::*is_true)() const);

/// The names of policies in one line: "tensorflow, latest_token or cancel".
/// @pre There is at least one.
[[nodiscard]] std::string names_of(std::span<const sync_policy> policies,
                                   std::string_view last = " or ");

/// The policy of that name. Errors: invalid_argument, naming those there are.
[[nodiscard]] expected<sync_policy> parse_sync_policy(std::string_view name);

} // namespace troupe
