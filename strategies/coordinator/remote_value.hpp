// SPDX-License-Identifier: Apache-2.0
// What a scheduled function will have returned, and fetching it.
#pragma once

#include "actors/world/world.hpp"
#include "strategies/values/closure_leaves.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

class closure_patience;

/// What becomes of one closure: told once, by the coordinator's actor, and waited for by whoever
/// fetches it. Thread: any.
class closure_outcome {
public:
  /// @param patience Of whoever fetches it.
  void wait_by(std::shared_ptr<const closure_patience> patience) {
    patience_ = std::move(patience);
  }

  void settle(expected<std::vector<closure_value>> result);

  [[nodiscard]] bool is_settled() const;

  /// Waits until it is settled. Errors: throws `failure`: the closure's; cancelled, if it was;
  /// stalled, if nothing is left that could ever settle it (virtual world only); else as
  /// `closure_patience::wait`.
  /// @returns The leaves, which live as long as this.
  [[nodiscard]] const std::vector<closure_value>& wait(world& world);

private:
  std::shared_ptr<const closure_patience> patience_; ///< Set before anybody waits.
  mutable std::mutex mutex_;
  std::optional<expected<std::vector<closure_value>>> result_;
  std::vector<std::function<void()>> waiting_;
};

/// What a scheduled function returns, some day. It is the result of one closure, whichever workers
/// ran it. A cheap value; copies mean the same. Thread: any.
template <class T>
class remote_value {
public:
  explicit remote_value(std::shared_ptr<closure_outcome> outcome) : outcome_(std::move(outcome)) {}

  /// Whether `fetch` would not wait.
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

/// How the remote values of a nest are fetched; this one is for leaves, which stay as they are.
template <class T>
struct fetching {
  static constexpr bool is_remote = false;

  static T fetch(const T& value, world&) { return value; }
};

template <class T>
struct fetching<remote_value<T>> {
  static constexpr bool is_remote = true;

  static T fetch(const remote_value<T>& value, world& world) { return value.fetch(world); }
};

/// What is left of a nest when its remote values are fetched.
template <class T>
using fetched_t = decltype(fetching<T>::fetch(std::declval<const T&>(), std::declval<world&>()));

/// Whether there are remote values in a nest.
template <class T>
concept has_remote_values = fetching<T>::is_remote;

template <class T>
struct fetching<std::vector<T>> {
  static constexpr bool is_remote = has_remote_values<T>;

  static std::vector<fetched_t<T>> fetch(const std::vector<T>& values, world& world) {
    std::vector<fetched_t<T>> fetched;
    fetched.reserve(values.size());
    for (const auto& value : values)
      fetched.push_back(fetching<T>::fetch(value, world));
    return fetched;
  }
};

template <class T, size_t count>
struct fetching<std::array<T, count>> {
  static constexpr bool is_remote = has_remote_values<T>;

  static std::array<fetched_t<T>, count> fetch(const std::array<T, count>& values, world& world) {
    return std::apply(
      [&](const auto&... value) {
        return std::array<fetched_t<T>, count>{fetching<T>::fetch(value, world)...};
      },
      values);
  }
};

template <class Key, class T>
struct fetching<std::map<Key, T>> {
  static constexpr bool is_remote = has_remote_values<T>;

  static std::map<Key, fetched_t<T>> fetch(const std::map<Key, T>& values, world& world) {
    std::map<Key, fetched_t<T>> fetched;
    for (const auto& [key, value] : values)
      fetched.emplace(key, fetching<T>::fetch(value, world));
    return fetched;
  }
};

template <class T>
struct fetching<std::optional<T>> {
  static constexpr bool is_remote = has_remote_values<T>;

  static std::optional<fetched_t<T>> fetch(const std::optional<T>& value, world& world) {
    if (!value) return std::nullopt;
    return fetching<T>::fetch(*value, world);
  }
};

template <class... Parts>
struct fetching<std::tuple<Parts...>> {
  static constexpr bool is_remote = (has_remote_values<Parts> || ...);

  static std::tuple<fetched_t<Parts>...> fetch(const std::tuple<Parts...>& values, world& world) {
    return std::apply(
      [&](const Parts&... part) {
        return std::tuple<fetched_t<Parts>...>{fetching<Parts>::fetch(part, world)...};
      },
      values);
  }
};

template <class First, class Second>
struct fetching<std::pair<First, Second>> {
  static constexpr bool is_remote = has_remote_values<First> || has_remote_values<Second>;

  static std::pair<fetched_t<First>, fetched_t<Second>>
  fetch(const std::pair<First, Second>& values, world& world) {
    return {fetching<First>::fetch(values.first, world),
            fetching<Second>::fetch(values.second, world)};
  }
};

} // namespace troupe
