// SPDX-License-Identifier: Apache-2.0
// Nested values: tuples, pairs, vectors, arrays, maps, optionals and structs of leaves. One walk,
// `zip_nest`, does all that is done leaf by leaf.
#pragma once

#include "messages/errors/failure.hpp"
#include "messages/mapped.hpp"
#include "strategies/values/distributed_value.hpp"

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

namespace detail {

struct nest_of_leaf {
  template <class AtLeaf, class Value>
  static auto zip(AtLeaf& at_leaf, const std::vector<Value*>& values) {
    return at_leaf(values);
  }

  template <class T>
  static std::string structure(const T&) {
    return {};
  }
};

} // namespace detail

/// How a nest is walked through and described; this one is for leaves. Each kind of nest has a
/// `zip`, which calls `at_leaf(std::vector<Leaf*>)` at each place, with the leaves that the nests
/// `values` have there, in the order of their members, and makes one nest of the results.
/// `structure` describes the properties of a nest beyond its type: lengths and keys.
template <class T>
struct nest : detail::nest_of_leaf {};

/// Calls `at_leaf` for each place of nests of one type, and makes one nest of the results.
/// @param values At least one nest.
/// Errors: throws `failure` with invalid_argument if they differ in structure.
template <class AtLeaf, class Value>
auto zip_nest(AtLeaf&& at_leaf, const std::vector<Value*>& values) {
  return nest<std::remove_const_t<Value>>::zip(at_leaf, values);
}

/// `zip_nest` of a single nest: `at_leaf` is given its leaves one by one.
template <class AtLeaf, class T>
auto map_nest(AtLeaf&& at_leaf, T& value) {
  return zip_nest(at_leaf, std::vector<T*>{&value});
}

/// The type of nest that `zip_nest` makes of nests of type `T`.
template <class AtLeaf, class T>
using zipped_t
  = decltype(zip_nest(std::declval<AtLeaf&>(), std::declval<const std::vector<T*>&>()));

/// Describes a nest's structure beyond its type: lengths and keys. Empty if there is none.
template <class T>
[[nodiscard]] std::string structure_of(const T& value) {
  return nest<T>::structure(value);
}

/// Refuses a replica that brings a nest of other lengths or keys than replica 0.
[[noreturn]] void refuse_structures(size_t replica, const std::string& structure,
                                    const std::string& first);

/// Joins the structures of several parts.
[[nodiscard]] inline std::string joined(std::string structure, const std::string& next) {
  if (structure.empty() || next.empty()) return structure + next;
  return structure + ", " + next;
}

namespace detail {

template <class Value>
void check_structures(const std::vector<Value*>& values) {
  if (values.size() == 1) return;
  auto first = structure_of(*values.front());
  for (size_t i = 1; i < values.size(); ++i)
    if (auto other = structure_of(*values[i]); other != first) refuse_structures(i, other, first);
}

// The part of every value that `get` takes out.
template <class Value, class Get>
auto parts(const std::vector<Value*>& values, const Get& get) {
  return troupe::mapped(values, [&](auto* value) { return &get(*value); });
}

template <size_t i>
struct part_at {
  template <class Whole>
  auto& operator()(Whole& whole) const {
    return std::get<i>(whole);
  }
};

template <template <class...> class Tuple, class... Parts>
struct nest_of_parts {
  template <class AtLeaf, class Value>
  static auto zip(AtLeaf& at_leaf, const std::vector<Value*>& values) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      using result = Tuple<decltype(zip_nest(at_leaf, parts(values, part_at<i>{})))...>;
      return result{zip_nest(at_leaf, parts(values, part_at<i>{}))...}; // in this order
    }
    (std::index_sequence_for<Parts...>{});
  }

  static std::string structure(const Tuple<Parts...>& value) {
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
  template <class AtLeaf, class Value>
  static auto zip(AtLeaf& at_leaf, const std::vector<Value*>& values) {
    detail::check_structures(values);
    auto at = [&](size_t i) {
      return detail::parts(
        values, [i](Value & value) -> auto& { return value[i]; });
    };
    std::vector<decltype(zip_nest(at_leaf, at(0)))> result;
    result.reserve(values.front()->size());
    for (size_t i = 0; i < values.front()->size(); ++i)
      result.push_back(zip_nest(at_leaf, at(i)));
    return result;
  }

  static std::string structure(const std::vector<T>& value) {
    auto result = "a vector of " + std::to_string(value.size());
    for (const auto& part : value)
      result = joined(std::move(result), structure_of(part));
    return result;
  }
};

/// The booleans of a vector cannot be referred to one by one: together they are a leaf.
template <>
struct nest<std::vector<bool>> : detail::nest_of_leaf {};

template <class T, size_t count>
struct nest<std::array<T, count>> {
  template <class AtLeaf, class Value>
  static auto zip(AtLeaf& at_leaf, const std::vector<Value*>& values) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      auto at = [&](size_t place) {
        return detail::parts(
          values, [place](Value & value) -> auto& { return value[place]; });
      };
      return std::array<decltype(zip_nest(at_leaf, at(0))), count>{zip_nest(at_leaf, at(i))...};
    }
    (std::make_index_sequence<count>{});
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
  template <class AtLeaf, class Value>
  static auto zip(AtLeaf& at_leaf, const std::vector<Value*>& values) {
    detail::check_structures(values);
    auto at = [&](const Key& key) {
      return detail::parts(
        values, [&](Value & value) -> auto& { return value.at(key); });
    };
    std::map<Key, decltype(zip_nest(at_leaf, at(std::declval<const Key&>())))> result;
    for (const auto& [key, first] : *values.front())
      result.emplace(key, zip_nest(at_leaf, at(key)));
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

/// If one optional is empty, all have to be empty, and so is the result.
template <class T>
struct nest<std::optional<T>> {
  template <class AtLeaf, class Value>
  static auto zip(AtLeaf& at_leaf, const std::vector<Value*>& values) {
    detail::check_structures(values);
    auto some = [&] {
      return zip_nest(at_leaf, detail::parts(
                                 values, [](Value & value) -> auto& { return *value; }));
    };
    using result = std::optional<decltype(some())>;
    return values.front()->has_value() ? result{some()} : result{};
  }

  static std::string structure(const std::optional<T>& value) {
    return value ? joined("something", structure_of(*value)) : "nothing";
  }
};

// A struct is a leaf as a whole. If it shows its parts, they are walked one by one:
//
//     struct outputs {
//       tensor loss;
//       tensor logits;
//       static auto members(auto& self) { return std::tie(self.loss, self.logits); }
//     };

/// True for a struct that shows its parts.
template <class T>
concept has_members = requires(T& value) {
  T::members(value);
};

namespace detail {

/// One value out of those of all replicas: the same one, if it is one object for all.
struct regroup_leaves {
  template <class T>
  distributed_value<T> operator()(const std::vector<T*>& values) const {
    auto is_same = true;
    for (size_t i = 1; i < values.size() && is_same; ++i)
      is_same = is_same_object(*values[0], *values[i]);
    if (is_same) return distributed_value<T>::mirrored(std::move(*values.front()), values.size());
    return per_replica(values);
  }

  template <class T>
  distributed_value<distributed_value<T>>
  operator()(const std::vector<distributed_value<T>*>& values) const {
    return per_replica(values);
  }

  /// All replicas mean one variable, and get it back.
  variable operator()(const std::vector<variable*>& values) const;

  /// Functions that return nothing have no values.
  std::monostate operator()(const std::vector<std::monostate*>&) const { return {}; }

private:
  template <class T>
  static distributed_value<T> per_replica(const std::vector<T*>& values) {
    std::vector<T> all;
    all.reserve(values.size());
    for (auto* value : values)
      all.push_back(std::move(*value));
    return distributed_value<T>::per_replica(std::move(all));
  }
};

struct select_of_leaf {
  size_t replica;

  template <class T>
  T operator()(const std::vector<const T*>& value) const {
    return *value.front();
  }

  template <class T>
  T operator()(const std::vector<const distributed_value<T>*>& value) const {
    return value.front()->select(replica);
  }
};

} // namespace detail

/// The type of nest that `regroup` makes of nests of type `T`, with a distributed value in the
/// place of each leaf.
template <class T>
using regrouped_t = zipped_t<detail::regroup_leaves, T>;

/// The type of nest that `select_replica` makes of a nest of type `T`.
template <class T>
using selected_t = zipped_t<detail::select_of_leaf, const T>;

/// Pointers to the elements of a container.
template <class Values>
[[nodiscard]] auto pointers_to(Values& values) {
  return troupe::mapped(values, [](auto& value) { return &value; });
}

/// One nest of distributed values out of the nests of all replicas, by index.
/// Errors: throws `failure` with invalid_argument if they differ in structure.
template <class T>
[[nodiscard]] regrouped_t<T> regroup(std::vector<T> values) {
  if constexpr (std::is_same_v<T, bool>) {
    std::deque<bool> booleans(values.begin(), values.end());
    return zip_nest(detail::regroup_leaves{}, pointers_to(booleans));
  } else {
    return zip_nest(detail::regroup_leaves{}, pointers_to(values));
  }
}

/// One replica's part of a nest of distributed values.
template <class T>
[[nodiscard]] selected_t<T> select_replica(const T& value, size_t replica) {
  return map_nest(detail::select_of_leaf{replica}, value);
}

} // namespace troupe
