// SPDX-License-Identifier: Apache-2.0
// Nested values: tuples, pairs, vectors, arrays, maps, optionals and structs of leaves, taken apart
// for each replica and put together again.
#pragma once

#include "messages/failure.hpp"
#include "strategies/values/distributed_value.hpp"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

// `regroup` makes one nest out of the nests of all replicas, with a distributed_value for every
// leaf; `select` gives one replica its own again. A struct is a leaf as a whole; its parts are
// reduced one by one if it shows them:
//
//     struct outputs {
//       tensor loss;
//       tensor logits;
//       static auto members(auto& self) { return std::tie(self.loss, self.logits); }
//     };

/// How a nest is taken apart; this one is for leaves.
template <class T>
struct nest {
  using regrouped = distributed_value<T>;
  using selected = T;

  static regrouped regroup(std::vector<T> values) {
    auto is_same = values.size() > 1;
    for (size_t i = 1; i < values.size() && is_same; ++i)
      is_same = is_same_object(values[0], values[i]);
    if (is_same || values.size() == 1)
      return regrouped::mirrored(std::move(values.front()), std::max<size_t>(values.size(), 1));
    return regrouped::per_replica(std::move(values));
  }

  static const T& select(const T& value, size_t) { return value; }

  static std::string structure(const T&) { return {}; }
};

template <class T>
using regrouped_t = typename nest<T>::regrouped;

template <class T>
using selected_t = typename nest<T>::selected;

/// One nest of distributed values out of the nests of all replicas, by index.
/// Errors: throws `failure` with invalid_argument if they differ in structure.
template <class T>
[[nodiscard]] regrouped_t<T> regroup(std::vector<T> values) {
  return nest<T>::regroup(std::move(values));
}

/// What one replica has of a nest of distributed values.
template <class T>
[[nodiscard]] selected_t<T> select_replica(const T& value, size_t replica) {
  return nest<T>::select(value, replica);
}

/// What there is to a nest's structure beyond its type: lengths and keys.
template <class T>
[[nodiscard]] std::string structure_of(const T& value) {
  return nest<T>::structure(value);
}

/// Refuses replicas that bring nests of other lengths or keys.
[[noreturn]] void refuse_structures(size_t replica, const std::string& its,
                                    const std::string& first);

/// Structures of several parts as one.
[[nodiscard]] inline std::string joined(std::string structure, const std::string& next) {
  if (structure.empty() || next.empty()) return structure + next;
  return structure + ", " + next;
}

namespace detail {

template <class T>
void check_structures(const std::vector<T>& values) {
  auto first = structure_of(values.front());
  for (size_t i = 1; i < values.size(); ++i)
    if (auto its = structure_of(values[i]); its != first) refuse_structures(i, its, first);
}

// The part of every value that `get` takes out.
template <class T, class Get>
auto parts(std::vector<T>& values, const Get& get) {
  std::vector<std::decay_t<decltype(get(values.front()))>> result;
  result.reserve(values.size());
  for (auto& value : values)
    result.push_back(std::move(get(value)));
  return result;
}

} // namespace detail

template <class T>
struct nest<distributed_value<T>> {
  using regrouped = distributed_value<distributed_value<T>>;
  using selected = T;

  static regrouped regroup(std::vector<distributed_value<T>> values) {
    return regrouped::per_replica(std::move(values));
  }

  static const T& select(const distributed_value<T>& value, size_t replica) {
    return value.select(replica);
  }

  static std::string structure(const distributed_value<T>&) { return {}; }
};

/// All replicas mean one variable, and get it back.
template <>
struct nest<variable> {
  using regrouped = variable;
  using selected = variable;

  static variable regroup(std::vector<variable> values);

  static const variable& select(const variable& value, size_t) { return value; }

  static std::string structure(const variable&) { return {}; }
};

/// Nothing, from everybody.
template <>
struct nest<std::monostate> {
  using regrouped = std::monostate;
  using selected = std::monostate;

  static std::monostate regroup(const std::vector<std::monostate>&) { return {}; }

  static std::monostate select(std::monostate, size_t) { return {}; }

  static std::string structure(std::monostate) { return {}; }
};

namespace detail {

template <template <class...> class Tuple, class... Parts>
struct nest_of_parts {
  using whole = Tuple<Parts...>;
  using regrouped = Tuple<regrouped_t<Parts>...>;
  using selected = Tuple<selected_t<Parts>...>;

  static regrouped regroup(std::vector<whole> values) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return regrouped{troupe::regroup(parts(
        values, [](whole & value) -> auto& { return std::get<i>(value); }))...};
    }
    (std::index_sequence_for<Parts...>{});
  }

  static selected select(const whole& value, size_t replica) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return selected{select_replica(std::get<i>(value), replica)...};
    }
    (std::index_sequence_for<Parts...>{});
  }

  static std::string structure(const whole& value) {
    std::string result;
    auto add = [&](const auto& part) { result = joined(std::move(result), structure_of(part)); };
    std::apply([&](const auto&... part) { (add(part), ...); }, value);
    return result;
  }
};

} // namespace detail

template <class... Parts>
struct nest<std::tuple<Parts...>> : detail::nest_of_parts<std::tuple, Parts...> {};

template <class First, class Second>
struct nest<std::pair<First, Second>> : detail::nest_of_parts<std::pair, First, Second> {};

template <class T>
struct nest<std::vector<T>> {
  using regrouped = std::vector<regrouped_t<T>>;
  using selected = std::vector<selected_t<T>>;

  static regrouped regroup(std::vector<std::vector<T>> values) {
    detail::check_structures(values);
    regrouped result;
    for (size_t i = 0; i < values.front().size(); ++i)
      result.push_back(troupe::regroup(
        detail::parts(values, [i](std::vector<T>& value) -> T& { return value[i]; })));
    return result;
  }

  static selected select(const std::vector<T>& value, size_t replica) {
    selected result;
    for (const auto& part : value)
      result.push_back(select_replica(part, replica));
    return result;
  }

  static std::string structure(const std::vector<T>& value) {
    auto result = "a vector of " + std::to_string(value.size());
    for (const auto& part : value)
      result = joined(std::move(result), structure_of(part));
    return result;
  }
};

template <class T, size_t count>
struct nest<std::array<T, count>> {
  using regrouped = std::array<regrouped_t<T>, count>;
  using selected = std::array<selected_t<T>, count>;

  static regrouped regroup(std::vector<std::array<T, count>> values) {
    regrouped result;
    for (size_t i = 0; i < count; ++i)
      result[i] = troupe::regroup(
        detail::parts(values, [i](std::array<T, count>& value) -> T& { return value[i]; }));
    return result;
  }

  static selected select(const std::array<T, count>& value, size_t replica) {
    selected result;
    for (size_t i = 0; i < count; ++i)
      result[i] = select_replica(value[i], replica);
    return result;
  }

  static std::string structure(const std::array<T, count>& value) {
    std::string result;
    for (const auto& part : value)
      result = joined(std::move(result), structure_of(part));
    return result;
  }
};

template <class Key, class T>
struct nest<std::map<Key, T>> {
  using regrouped = std::map<Key, regrouped_t<T>>;
  using selected = std::map<Key, selected_t<T>>;

  static regrouped regroup(std::vector<std::map<Key, T>> values) {
    detail::check_structures(values);
    regrouped result;
    for (const auto& [key, first] : values.front())
      result.emplace(key, troupe::regroup(detail::parts(
                            values, [&](std::map<Key, T>& value) -> T& { return value.at(key); })));
    return result;
  }

  static selected select(const std::map<Key, T>& value, size_t replica) {
    selected result;
    for (const auto& [key, part] : value)
      result.emplace(key, select_replica(part, replica));
    return result;
  }

  static std::string structure(const std::map<Key, T>& value) {
    std::string result = "a map of";
    for (const auto& [key, part] : value) {
      if constexpr (std::is_convertible_v<Key, std::string>)
        result.append(" '").append(std::string{key}).append("'");
      else
        result.append(" ").append(std::to_string(key));
      if (auto inner = structure_of(part); !inner.empty())
        result.append(" (").append(inner).append(")");
    }
    return result;
  }
};

/// Nothing from one is nothing from all.
template <class T>
struct nest<std::optional<T>> {
  using regrouped = std::optional<regrouped_t<T>>;
  using selected = std::optional<selected_t<T>>;

  static regrouped regroup(std::vector<std::optional<T>> values) {
    detail::check_structures(values);
    if (!values.front()) return {};
    return troupe::regroup(
      detail::parts(values, [](std::optional<T>& value) -> T& { return *value; }));
  }

  static selected select(const std::optional<T>& value, size_t replica) {
    if (!value) return {};
    return select_replica(*value, replica);
  }

  static std::string structure(const std::optional<T>& value) {
    return value ? joined("something", structure_of(*value)) : "nothing";
  }
};

/// True for a struct that shows its parts.
template <class T>
concept has_members = requires(T& value) {
  T::members(value);
};

} // namespace troupe
