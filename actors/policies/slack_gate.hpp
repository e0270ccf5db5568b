// SPDX-License-Identifier: Apache-2.0
// The decision of bounded staleness which replicas are too far ahead, without actors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace troupe {

/// Under `ssp` every replica has a clock: the gradients that it has given. It may begin its next
/// one while its clock is at most `slack` ahead of the slowest live one's. With a slack of 0 all
/// begin together; with a slack beyond the end of the job none ever waits. A replica that leaves
/// holds up none.
///
/// `Waiter` holds all that the caller needs to answer a replica later. Cost: amortised, the
/// logarithm of the number of different clocks.
/// Source: Ho et al., "More effective distributed ML via a stale synchronous parallel parameter
/// server", NIPS 2013, section 3.
template <class Waiter>
class slack_gate {
public:
  /// @param replicas The number of replicas, there or not yet; their clocks are 0.
  explicit slack_gate(uint32_t replicas = 0, uint64_t slack = 0)
    : slack_(slack), clocks_(replicas, 0), is_gone_(replicas, false) {
    if (replicas > 0) live_at_[0] = replicas;
  }

  /// A replica has given a gradient and asks to go on. One that was gone and is back begins with
  /// the clock of the slowest.
  /// @returns The waiters that may go on now, in the order of asking; `waiter` may be among them.
  [[nodiscard]] std::vector<Waiter> arrive(uint32_t replica, Waiter waiter) {
    if (replica >= clocks_.size()) return {std::move(waiter)}; // it has no clock here
    auto clock = clocks_[replica];
    if (is_gone_[replica])
      clock = std::max(clock, slowest());
    else
      drop(clock);
    is_gone_[replica] = false;
    clocks_[replica] = ++clock;
    ++live_at_[clock];
    waiting_.emplace_back(clock, std::move(waiter));
    return admitted();
  }

  /// A replica has left, or will never come. @returns The waiters that may go on now.
  [[nodiscard]] std::vector<Waiter> leave(uint32_t replica) {
    if (replica >= clocks_.size() || is_gone_[replica]) return {};
    is_gone_[replica] = true;
    drop(clocks_[replica]);
    return admitted();
  }

  /// Lets all replicas go on. @returns Their waiters.
  [[nodiscard]] std::vector<Waiter> open() {
    std::vector<Waiter> all;
    for (auto& [clock, waiter] : waiting_)
      all.push_back(std::move(waiter));
    waiting_.clear();
    return all;
  }

  /// The waiter that is held up and of which `is_it` is true; null if there is none.
  template <class Predicate>
  [[nodiscard]] Waiter* find_waiter(Predicate is_it) {
    auto found
      = std::ranges::find_if(waiting_, [&is_it](const auto& item) { return is_it(item.second); });
    return found == waiting_.end() ? nullptr : &found->second;
  }

  /// The waiters that are held up, and their clocks, in the order of asking.
  [[nodiscard]] const std::vector<std::pair<uint64_t, Waiter>>& waiting() const { return waiting_; }

private:
  // The slowest clock of the live replicas.
  [[nodiscard]] uint64_t slowest() const { return live_at_.empty() ? 0 : live_at_.begin()->first; }

  void drop(uint64_t clock) {
    auto found = live_at_.find(clock);
    if (--found->second == 0) live_at_.erase(found);
  }

  // Takes out the waiters that may go on. All of them are looked at only if the slowest clock has
  // moved on, else only the last to come.
  std::vector<Waiter> admitted() {
    auto limit = slowest() + std::min(slack_, UINT64_MAX - slowest());
    std::vector<Waiter> result;
    if (std::exchange(last_limit_, limit) == limit) {
      if (waiting_.empty() || waiting_.back().first > limit) return {};
      result.push_back(std::move(waiting_.back().second));
      waiting_.pop_back();
      return result;
    }
    auto held = std::stable_partition(waiting_.begin(), waiting_.end(),
                                      [&](const auto& item) { return item.first > limit; });
    for (auto at = held; at != waiting_.end(); ++at)
      result.push_back(std::move(at->second));
    waiting_.erase(held, waiting_.end());
    return result;
  }

  uint64_t slack_;
  uint64_t last_limit_ = 0;
  std::vector<uint64_t> clocks_;
  std::vector<bool> is_gone_;
  std::map<uint64_t, uint32_t> live_at_; ///< How many replicas live at each clock.
  std::vector<std::pair<uint64_t, Waiter>> waiting_;
};

} // namespace troupe
