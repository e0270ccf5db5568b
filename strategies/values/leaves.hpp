// SPDX-License-Identifier: Apache-2.0
// Flattens nested values to lists of leaves, and rebuilds them.
#pragma once

#include "kernels/tensor/tensor.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "strategies/values/nest.hpp"

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// A value that can be combined: an array, rows of one, or a number.
using leaf = std::variant<tensor, indexed_slices, double, int64_t>;

/// Which replicas or devices a leaf belongs to.
enum class leaf_owner : uint8_t {
  each_replica, ///< One part for each replica of this process.
  all_devices,  ///< One value for all, on however many devices.
  caller,       ///< One value, of whichever process calls.
};

/// The parts that all replicas bring to one place of a nest.
struct leaf_group {
  std::vector<leaf> parts; ///< By replica, or one.
  leaf_owner owner = leaf_owner::each_replica;
  size_t devices = 1;       ///< The devices that have a value for all.
  bool is_gradient = false; ///< Whether the leaf is a gradient, which is combined as a whole.
};

[[nodiscard]] inline leaf as_leaf(const gradient& value) {
  return std::visit([](const auto& arrays) { return leaf{arrays}; }, value);
}

/// The array or the rows of a leaf. @pre It is no number.
[[nodiscard]] inline gradient as_gradient(const leaf& value) {
  if (const auto* rows = std::get_if<indexed_slices>(&value)) return *rows;
  return std::get<tensor>(value);
}

/// Keeps the holders of a leaf from writing to its arrays, which they share.
inline void make_read_only(leaf& value) {
  if (auto* array = std::get_if<tensor>(&value)) *array = array->as_read_only();
  if (auto* rows = std::get_if<indexed_slices>(&value)) {
    rows->indices = rows->indices.as_read_only();
    rows->values = rows->values.as_read_only();
  }
}

/// The parts of a group. @pre None is a number.
[[nodiscard]] inline std::vector<gradient> gradients_in(const leaf_group& group) {
  return troupe::mapped(group.parts, as_gradient);
}

/// The group of a gradient that each replica of this process brings.
[[nodiscard]] inline leaf_group group_of(const std::vector<gradient>& gradients) {
  return {.parts = troupe::mapped(gradients, as_leaf), .is_gradient = true};
}

/// True for the types of leaves.
template <class T>
concept is_leaf = std::is_same_v<T, tensor> || std::is_same_v<T, indexed_slices> || std::is_same_v<
  T, gradient> || std::is_arithmetic_v<T>;

namespace detail {

template <is_leaf T>
leaf leaf_of(const T& value) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<double>(value);
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<int64_t>(value);
  else if constexpr (std::is_same_v<T, gradient>)
    return as_leaf(value);
  else
    return value;
}

template <is_leaf T>
T value_of_leaf(const leaf& from) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(std::get<double>(from));
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(std::get<int64_t>(from));
  else if constexpr (std::is_same_v<T, gradient>)
    return as_gradient(from);
  else
    return std::get<T>(from);
}

// Calls `of_member` with pointers to the same member of all values, one member after the other.
template <class Value, class OfMember>
void for_each_member(const std::vector<Value*>& values, const OfMember& of_member) {
  using members = decltype(std::decay_t<Value>::members(*values.front()));
  [&]<size_t... i>(std::index_sequence<i...>) {
    (of_member(parts(
       values,
       [](Value & value) -> auto& { return std::get<i>(std::decay_t<Value>::members(value)); })),
     ...);
  }
  (std::make_index_sequence<std::tuple_size_v<members>>{});
}

/// Takes the leaves of replicas out of their nests, place by place.
struct take_leaves {
  std::vector<leaf_group>& to;
  leaf_owner owner;
  size_t devices = 1;

  template <class T>
  std::monostate operator()(const std::vector<T*>& values) {
    using value_type = std::remove_const_t<T>;
    if constexpr (has_members<value_type>) {
      for_each_member(values, [&](const auto& members) { zip_nest(*this, members); });
    } else {
      static_assert(is_leaf<value_type>, "this type cannot be reduced; there are arrays, rows, "
                                         "numbers, nests of them, and structs with `members`");
      auto& group = to.emplace_back();
      group.parts
        = troupe::mapped(values, [](const auto* value) { return leaf_of<value_type>(*value); });
      group.owner = owner;
      group.devices = devices;
      group.is_gradient
        = std::is_same_v<value_type, gradient> || std::is_same_v<value_type, indexed_slices>;
    }
    return {};
  }

  template <class T>
  std::monostate operator()(const std::vector<const distributed_value<T>*>& values) {
    const auto& value = *values.front();
    if (value.is_mirrored()) {
      take_leaves of_all{to, leaf_owner::all_devices, value.size()};
      zip_nest(of_all, std::vector<const T*>{&value.primary()});
      return {};
    }
    std::vector<const T*> components;
    for (size_t i = 0; i < value.size(); ++i)
      components.push_back(&value[i]);
    if (components.empty()) {
      if constexpr (std::is_arithmetic_v<T>)
        to.push_back({{leaf_of(T{})}, leaf_owner::caller});
      else
        throw_failure(errc::invalid_argument, "there is no value to reduce");
      return {};
    }
    take_leaves of_each{to, leaf_owner::each_replica};
    zip_nest(of_each, components);
    return {};
  }
};

/// Puts leaves into a nest, in the order in which they were taken.
struct give_leaves {
  const std::vector<leaf>& from;
  size_t next = 0;

  template <class T>
  auto operator()(const std::vector<T*>& values) {
    using value_type = std::remove_const_t<T>;
    if constexpr (has_members<value_type>) {
      value_type result = *values.front();
      for_each_member(std::vector<value_type*>{&result},
                      [&](const auto& member) { *member.front() = zip_nest(*this, member); });
      return result;
    } else {
      return value_of_leaf<value_type>(from[next++]);
    }
  }

  template <class T>
  auto operator()(const std::vector<const distributed_value<T>*>& values) {
    const auto& value = *values.front();
    if constexpr (std::is_arithmetic_v<T>)
      return value_of_leaf<T>(from[next++]);
    else
      return zip_nest(*this, std::vector<const T*>{&value[0]});
  }
};

} // namespace detail

/// The leaves of a nest with distributed values, in its order.
template <class T>
[[nodiscard]] std::vector<leaf_group> flatten(const T& value) {
  std::vector<leaf_group> leaves;
  map_nest(detail::take_leaves{leaves, leaf_owner::caller}, value);
  return leaves;
}

/// The leaves of the nests of all replicas, by index, place by place. Each leaf counts, even if it
/// is the same for all. Errors: throws `failure` with invalid_argument if nests differ in
/// structure.
template <class T>
[[nodiscard]] std::vector<leaf_group> flatten_all(const std::vector<const T*>& values) {
  std::vector<leaf_group> leaves;
  zip_nest(detail::take_leaves{leaves, leaf_owner::each_replica}, values);
  return leaves;
}

/// The type that a nest of type `T` becomes if `unflatten` puts one leaf in each place.
template <class T>
using unflattened_t = zipped_t<detail::give_leaves, const T>;

/// A nest like `value`, with these leaves: one for each place.
template <class T>
[[nodiscard]] unflattened_t<T> unflatten(const std::vector<leaf>& leaves, const T& value) {
  return map_nest(detail::give_leaves{leaves}, value);
}

} // namespace troupe
