// SPDX-License-Identifier: Apache-2.0
// One worker's part of an argument: of what each worker has of its own, anywhere in a nest.
#pragma once

#include "strategies/coordinator/closure_service.hpp"
#include "strategies/coordinator/per_worker.hpp"
#include "strategies/coordinator/remote_value.hpp"

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

// A function that takes a nest of values, `std::pair<int, tensor>`, may be given a nest with
// `per_worker_values<int>` in the place of a value. Where the function has a
// `std::reference_wrapper<T>`, or takes a `T&`, it is given a `per_worker_resource<T>`. The
// coordinator does not know yet which worker will make a call, and after a loss it is another one:
// so the leaves of a nest that differs between workers are written for each of them.

/// Stands in an argument for what the worker that makes the call has of its own.
template <class T>
struct own_of_worker {
  worker_resource which;
};

template <class T>
struct closure_codec<own_of_worker<T>> {
  static void write(const own_of_worker<T>& value, std::vector<closure_value>& to) {
    to.emplace_back(value.which);
  }
};

/// Whose part is taken.
struct worker_part {
  const closure_service* of;
  uint32_t worker;

  /// Errors: throws `failure` with invalid_argument unless there is a value for each worker.
  void check_one_for_each(size_t values) const;
};

/// How a worker's part of a nest is taken; this one is for leaves, which are the same for all.
template <class T>
struct worker_nest {
  static constexpr bool differs = false; ///< Whether there are values for each worker in it.

  static const T& part(const T& value, const worker_part&) { return value; }
};

/// What a worker gets of a nest.
template <class T>
using worker_part_t = std::remove_cvref_t<decltype(worker_nest<T>::part(
  std::declval<const T&>(), std::declval<const worker_part&>()))>;

template <class T>
[[nodiscard]] worker_part_t<T> part_of(const T& nest, const worker_part& whose) {
  return worker_nest<T>::part(nest, whose);
}

template <class T>
struct worker_nest<per_worker_values<T>> {
  static constexpr bool differs = true;

  static worker_part_t<T> part(const per_worker_values<T>& given, const worker_part& whose) {
    whose.check_one_for_each(given.values.size());
    return part_of(given.values[whose.worker], whose);
  }
};

namespace detail {

template <class T>
own_of_worker<T> own_of(const per_worker_resource<T>& given, const worker_part& whose) {
  whose.of->check_own(given.of(), "an input");
  return {given.which()};
}

} // namespace detail

template <class T>
concept is_worker_resource = requires(const T& value, const worker_part& whose) {
  detail::own_of(value, whose);
};

template <is_worker_resource T>
struct worker_nest<T> {
  static constexpr bool differs = false; // its number is the same for all

  static auto part(const T& given, const worker_part& whose) {
    return detail::own_of(given, whose);
  }
};

template <class T>
struct worker_nest<std::vector<T>> {
  static constexpr bool differs = worker_nest<T>::differs;

  static std::vector<worker_part_t<T>> part(const std::vector<T>& given, const worker_part& whose) {
    std::vector<worker_part_t<T>> parts;
    for (const auto& each : given)
      parts.push_back(part_of<T>(each, whose));
    return parts;
  }
};

template <class Key, class T>
struct worker_nest<std::map<Key, T>> {
  static constexpr bool differs = worker_nest<T>::differs;

  static std::map<Key, worker_part_t<T>> part(const std::map<Key, T>& given,
                                              const worker_part& whose) {
    std::map<Key, worker_part_t<T>> parts;
    for (const auto& [key, each] : given)
      parts.emplace(key, part_of(each, whose));
    return parts;
  }
};

template <class T>
struct worker_nest<std::optional<T>> {
  static constexpr bool differs = worker_nest<T>::differs;

  static std::optional<worker_part_t<T>> part(const std::optional<T>& given,
                                              const worker_part& whose) {
    if (!given) return std::nullopt;
    return part_of(*given, whose);
  }
};

template <class T, size_t count>
struct worker_nest<std::array<T, count>> {
  static constexpr bool differs = worker_nest<T>::differs;

  static std::array<worker_part_t<T>, count> part(const std::array<T, count>& given,
                                                  const worker_part& whose) {
    return std::apply(
      [&](const auto&... each) {
        return std::array<worker_part_t<T>, count>{part_of<T>(each, whose)...};
      },
      given);
  }
};

template <class... Parts>
struct worker_nest<std::tuple<Parts...>> {
  static constexpr bool differs = (worker_nest<Parts>::differs || ...);

  static std::tuple<worker_part_t<Parts>...> part(const std::tuple<Parts...>& given,
                                                  const worker_part& whose) {
    return std::apply(
      [&](const Parts&... each) {
        return std::tuple<worker_part_t<Parts>...>{part_of<Parts>(each, whose)...};
      },
      given);
  }
};

template <class First, class Second>
struct worker_nest<std::pair<First, Second>> {
  static constexpr bool differs = worker_nest<First>::differs || worker_nest<Second>::differs;

  static std::pair<worker_part_t<First>, worker_part_t<Second>>
  part(const std::pair<First, Second>& given, const worker_part& whose) {
    return {part_of(given.first, whose), part_of(given.second, whose)};
  }
};

/// Of remote values for each worker, those are fetched.
template <class T>
struct fetching<per_worker_values<T>> {
  static constexpr bool is_remote = has_remote_values<T>;

  static per_worker_values<fetched_t<T>> fetch(const per_worker_values<T>& given, world& world) {
    return {fetching<std::vector<T>>::fetch(given.values, world)};
  }
};

/// What is written for a parameter: in the place of each reference, whose it is.
template <class T>
struct written {
  using type = T;
};

template <class T>
using written_t = typename written<T>::type;

template <class T>
struct written<T&> {
  using type = written_t<std::decay_t<T>>;
};

template <class T>
struct written<T&&> {
  using type = written_t<std::decay_t<T>>;
};

/// Of a parameter `T&`: what each worker has of its own. All others travel.
template <class T>

requires(!std::is_const_v<T>)

  struct written<T&> {
  using type = own_of_worker<T>;
};

template <class T>
struct written<std::reference_wrapper<T>> {
  using type = own_of_worker<std::remove_const_t<T>>;
};

template <class T>
struct written<std::vector<T>> {
  using type = std::vector<written_t<T>>;
};

template <class Key, class T>
struct written<std::map<Key, T>> {
  using type = std::map<Key, written_t<T>>;
};

template <class T>
struct written<std::optional<T>> {
  using type = std::optional<written_t<T>>;
};

template <class T, size_t count>
struct written<std::array<T, count>> {
  using type = std::array<written_t<T>, count>;
};

template <class... Parts>
struct written<std::tuple<Parts...>> {
  using type = std::tuple<written_t<Parts>...>;
};

template <class First, class Second>
struct written<std::pair<First, Second>> {
  using type = std::pair<written_t<First>, written_t<Second>>;
};

/// What may be given to a scheduled function for a parameter: what converts to it, anywhere in it
/// one for each worker, or what each worker has of its own. A remote value may not: whoever
/// schedules fetches it first.
template <class Argument, class Parameter>
concept schedulable_as
  = !has_remote_values<
      Argument> && std::convertible_to<const worker_part_t<Argument>&, written_t<Parameter>>;

} // namespace troupe
