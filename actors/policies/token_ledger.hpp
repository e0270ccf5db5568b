// SPDX-License-Identifier: Apache-2.0
// The token queue's decisions which replica gets which token, without actors.
#pragma once

#include "actors/policies/sync_policy.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace troupe {

/// A token is the permission to work on a step, and stamps the gradient that comes of it. Counted
/// tokens are anonymous and wait in one FIFO. Else there is always one for a replica that is
/// behind, stamped with the newest step. Where training is asynchronous, no replica is behind: each
/// names the first step that it may go on with (`asynchronous_rule`).
///
/// Where tokens are counted, a replica may name such a step, too. If it gives a step one gradient
/// only, since no other counts or it reads the step's mean, and that one is given, it waits for the
/// step to end, and takes the oldest token then.
/// So no replica takes two tokens of the current step, and those of an update are enough for all.
///
/// `Waiter` holds all that the caller needs to answer a replica later; waiters are served in the
/// order in which they came.
template <class Waiter>
class token_ledger {
public:
  /// A waiter that has its token now.
  struct served {
    Waiter waiter;
    uint64_t step = 0;
  };

  /// @param tokens The tokens that an interrupted job left in the queue, from the head on.
  explicit token_ledger(sync_policy policy, uint64_t first_step = 0,
                        std::span<const uint64_t> tokens = {})
    : policy_(traits_of(policy)), newest_(first_step), tokens_(tokens.begin(), tokens.end()) {}

  /// A replica that worked on `local_step` asks for a token.
  /// @param not_before Where training is asynchronous: the step that it needs at least. Where
  /// tokens are counted: the step that must have begun.
  /// @returns The token's step, or nothing: then the waiter is kept until `put`.
  [[nodiscard]] std::optional<uint64_t> take(Waiter waiter, uint64_t local_step,
                                             uint64_t not_before = 0) {
    if (policy_.is_asynchronous()) return take_asynchronous(std::move(waiter), not_before);
    auto is_there
      = policy_.counts_tokens() ? newest_ >= not_before && !tokens_.empty() : newest_ > local_step;
    if (is_there) return next_token();
    waiting_.push_back(std::move(waiter));
    return std::nullopt;
  }

  /// `slack_gate` has let these replicas go on. @param not_before As in `take`, of the one that
  /// came last: those that waited for it are to see what it gave.
  /// @returns The waiters that have their token now; the others are kept until `put`.
  [[nodiscard]] std::vector<served> take_all(std::vector<Waiter> admitted, uint64_t not_before) {
    std::vector<served> result;
    for (auto& waiter : admitted)
      if (auto step = take(waiter, waiter.local_step, std::max(waiter.not_before, not_before)))
        result.push_back({std::move(waiter), *step});
    return result;
  }

  /// The chief has made `count` tokens for `step`.
  /// @returns The waiters that now have their token, first come first served.
  [[nodiscard]] std::vector<served> put(uint64_t step, uint32_t count) {
    newest_ = step;
    if (policy_.is_asynchronous()) return release_due();
    if (!policy_.counts_tokens()) return release(waiting_.size());
    tokens_.insert(tokens_.end(), count, step);
    return release(std::min(tokens_.size(), waiting_.size()));
  }

  /// The waiter of which `is_it` is true; null if there is none.
  template <class Predicate>
  [[nodiscard]] Waiter* find_waiter(Predicate is_it) {
    auto found = std::find_if(waiting_.begin(), waiting_.end(), is_it);
    return found == waiting_.end() ? nullptr : &*found;
  }

  /// Waiters for which `is_gone` is true wait no longer, and get no token.
  template <class Predicate>
  void forget(Predicate is_gone) {
    auto waiting = std::exchange(waiting_, {});
    auto needs = std::exchange(needs_, {});
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (is_gone(waiting[i])) continue;
      if (i < needs.size()) needs_.push_back(needs[i]);
      waiting_.push_back(std::move(waiting[i]));
    }
  }

  /// No more tokens will come. @returns The waiters that leave empty-handed.
  [[nodiscard]] std::deque<Waiter> close() {
    needs_.clear();
    return std::exchange(waiting_, {});
  }

  /// The steps of the tokens that were not taken, from the head on; none where they are not
  /// counted.
  [[nodiscard]] const std::deque<uint64_t>& tokens() const { return tokens_; }

  /// The waiters, in the order of asking.
  [[nodiscard]] const std::deque<Waiter>& waiting() const { return waiting_; }

private:
  // The oldest token, if they are counted; else one of the newest step. @pre There is one.
  uint64_t next_token() {
    if (!policy_.counts_tokens()) return newest_;
    auto token = tokens_.front();
    tokens_.pop_front();
    return token;
  }

  std::optional<uint64_t> take_asynchronous(Waiter waiter, uint64_t not_before) {
    if (newest_ >= not_before) return newest_;
    waiting_.push_back(std::move(waiter));
    needs_.push_back(not_before);
    return std::nullopt;
  }

  // Takes out the waiters that needed a step which has come.
  std::vector<served> release_due() {
    std::vector<served> released;
    auto waiting = std::exchange(waiting_, {});
    auto needs = std::exchange(needs_, {});
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (needs[i] <= newest_) {
        released.push_back({std::move(waiting[i]), newest_});
        continue;
      }
      waiting_.push_back(std::move(waiting[i]));
      needs_.push_back(needs[i]);
    }
    return released;
  }

  std::vector<served> release(size_t count) {
    std::vector<served> released;
    released.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      released.push_back({std::move(waiting_.front()), next_token()});
      waiting_.pop_front();
    }
    return released;
  }

  policy_traits policy_;
  uint64_t newest_;
  std::deque<uint64_t> tokens_;
  std::deque<Waiter> waiting_;
  std::deque<uint64_t> needs_; ///< Where training is asynchronous, the step that each one needs.
};

} // namespace troupe
