// SPDX-License-Identifier: Apache-2.0
// The result of a scheduled function, and fetching it.
#pragma once

#include "actors/world/world.hpp"
#include "strategies/values/closure_leaves.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

class closure_waiter;

/// The outcome of one closure: told once, by the coordinator's actor, and waited for by callers
/// that fetch it. Thread: any.
class closure_outcome {
public:
  /// @param waiter For the callers that fetch it.
  void wait_by(std::shared_ptr<const closure_waiter> waiter) { waiter_ = std::move(waiter); }

  void settle(expected<std::vector<closure_value>> result);

  [[nodiscard]] bool is_settled() const;

  /// Waits until it is settled. Errors: throws `failure`: the closure's; cancelled, if it was;
  /// stalled, if nothing is left that could ever settle it (virtual world only); else as
  /// `check_may_wait` and `closure_waiter::wait`.
  /// @returns The leaves, which live as long as this.
  [[nodiscard]] const std::vector<closure_value>& wait(world& world);

private:
  std::shared_ptr<const closure_waiter> waiter_; ///< Set before any caller waits.
  mutable std::mutex mutex_;
  std::optional<expected<std::vector<closure_value>>> result_;
  std::vector<std::function<void()>> waiting_;
};

/// The future result of a scheduled function: of one closure, whichever workers ran it. A cheap
/// value; copies mean the same. Thread: any.
template <class T>
class remote_value {
public:
  explicit remote_value(std::shared_ptr<closure_outcome> outcome) : outcome_(std::move(outcome)) {}

  // A move copies, so that a handle that was moved from still means the same.
  remote_value(const remote_value&) = default;
  remote_value& operator=(const remote_value&) = default;

  /// Whether `fetch` would not wait, where it may be called.
  [[nodiscard]] bool is_ready() const { return outcome_->is_settled(); }

  /// As `cluster_coordinator::fetch`.
  [[nodiscard]] T fetch(world& world) const {
    closure_leaves leaves{outcome_->wait(world)};
    auto value = read_leaves<T>(leaves);
    leaves.end();
    return value;
  }

private:
  std::shared_ptr<closure_outcome> outcome_;
};

template <class T>
struct per_worker_values;

namespace detail {

struct fetch_leaf {
  troupe::world& world;

  template <class T>
  T operator()(const std::vector<const T*>& value) {
    return *value.front();
  }

  template <class T>
  T operator()(const std::vector<const remote_value<T>*>& value) {
    return value.front()->fetch(world);
  }

  /// Fetches remote values that stand in values for each worker.
  template <class T>
  auto operator()(const std::vector<const per_worker_values<T>*>& value) {
    auto fetched = map_nest(*this, value.front()->values);
    return per_worker_values<typename decltype(fetched)::value_type>{std::move(fetched)};
  }
};

} // namespace detail

/// The type of a nest with its remote values fetched.
template <class T>
using fetched_t = zipped_t<detail::fetch_leaf, const T>;

/// Whether there are remote values in a nest.
template <class T>
concept has_remote_values = !std::is_same_v<T, fetched_t<T>>;

} // namespace troupe
