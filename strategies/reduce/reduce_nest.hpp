// SPDX-License-Identifier: Apache-2.0
// Reducing the values of replicas, leaf by leaf.
#pragma once

#include "strategies/reduce/cross_device_ops.hpp"
#include "strategies/reduce/process_exchange.hpp"
#include "strategies/values/nest.hpp"

#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace troupe {

/// What values are reduced over, beside the replicas of this process.
struct reduce_scope {
  /// The dimensions of each replica's value that are reduced first; none: it is taken as a whole.
  std::optional<std::vector<int64_t>> axes{};
  process_exchange* exchange = nullptr; ///< With other processes; null if there is none.
};

/// Whether a value is one for all replicas, on however many devices, not just that of the only
/// replica that is here. @param group The processes that run replicas; null: this one runs all.
template <class T>
[[nodiscard]] bool is_one_for_all(const distributed_value<T>& value, const process_group* group) {
  return value.is_mirrored() && (group == nullptr || group->replicas_each > 1 || value.size() > 1);
}

template <class T>
[[nodiscard]] bool is_one_for_all(const distributed_value<T>& value, const reduce_scope& over) {
  return is_one_for_all(value, over.exchange == nullptr ? nullptr : &over.exchange->group());
}

/// The values of replicas as one. Without axes, element by element; with axes, over those first,
/// and a mean divides by the number of elements that there are in all: f64 for integers.
/// Errors: throws `failure` as `reduce_components`; invalid_argument for an axis that a value has
/// not.
[[nodiscard]] tensor reduce_tensors(reduce_op op, std::span<const tensor> values,
                                    const reduce_scope& over);

/// A value that is the same for all replicas: its mean is itself. A sum would count it several
/// times, and is refused; but 0 may be summed, and so may anything where there is one replica.
/// Errors: throws `failure` with invalid_argument.
[[nodiscard]] tensor reduce_one_for_all(reduce_op op, const tensor& value, const reduce_scope& over,
                                        uint32_t replicas);

/// Likewise for a gradient, which is reduced as a whole. Errors: as above.
[[nodiscard]] gradient reduce_one_for_all(reduce_op op, const gradient& value, uint32_t replicas);

/// Likewise for numbers. Errors: as above; invalid_argument for the mean of integers.
[[nodiscard]] double reduce_numbers(reduce_op op, std::span<const double> values, bool are_integers,
                                    const reduce_scope& over);

/// The sum of integers; it wraps around. Errors: as `process_exchange::sum`.
[[nodiscard]] int64_t sum_integers(std::span<const int64_t> values, const reduce_scope& over);

/// True for an array that holds nothing but one zero.
[[nodiscard]] bool is_zero_scalar(const tensor& value);

/// Refuses a sum of something that is the same for all replicas.
[[noreturn]] void refuse_sum_of_one(uint32_t replicas);

// One overload for each kind of leaf and nest; they find each other by the namespace of `op`.

[[nodiscard]] tensor reduce_nest(reduce_op op, const tensor& value, const reduce_scope& over,
                                 uint32_t replicas);
[[nodiscard]] tensor reduce_nest(reduce_op op, const distributed_value<tensor>& value,
                                 const reduce_scope& over, uint32_t replicas);
[[nodiscard]] gradient reduce_nest(reduce_op op, const distributed_value<gradient>& value,
                                   const reduce_scope& over, uint32_t replicas);
[[nodiscard]] indexed_slices reduce_nest(reduce_op op,
                                         const distributed_value<indexed_slices>& value,
                                         const reduce_scope& over, uint32_t replicas);
template <class T>
requires std::is_arithmetic_v<T>

[[nodiscard]] T reduce_nest(reduce_op op, T value, const reduce_scope& over, uint32_t replicas) {
  if (over.axes) static_cast<void>(reduce_numbers(op, {}, false, over)); // refuses it
  if (op == reduce_op::sum && replicas > 1 && value != T{}) refuse_sum_of_one(replicas);
  return value;
}

template <class T>
requires std::is_arithmetic_v<T>

[[nodiscard]] T reduce_nest(reduce_op op, const distributed_value<T>& value,
                            const reduce_scope& over, uint32_t replicas) {
  if (is_one_for_all(value, over)) return reduce_nest(op, value.primary(), over, replicas);
  if constexpr (std::is_integral_v<T>) {
    if (op == reduce_op::sum && !over.axes) { // exact, where double is not
      std::vector<int64_t> numbers;
      for (const auto& each : value.local_results())
        numbers.push_back(static_cast<int64_t>(each));
      return static_cast<T>(sum_integers(numbers, over));
    }
  }
  auto numbers = value.local_results();
  std::vector<double> values(numbers.begin(), numbers.end());
  return static_cast<T>(reduce_numbers(op, values, std::is_integral_v<T>, over));
}

template <has_members T>
[[nodiscard]] T reduce_nest(reduce_op op, const distributed_value<T>& value,
                            const reduce_scope& over, uint32_t replicas) {
  auto all = value.local_results();
  auto result = value.select(0);
  auto members = T::members(result);
  [&]<size_t... i>(std::index_sequence<i...>) {
    auto reduce_member = [&]<size_t number>(std::integral_constant<size_t, number>) {
      using member_type = std::decay_t<std::tuple_element_t<number, decltype(members)>>;
      std::vector<member_type> own;
      for (auto& each : all)
        own.push_back(std::get<number>(T::members(each)));
      auto parts = value.is_mirrored()
                     ? distributed_value<member_type>::mirrored(own.front(), value.size())
                     : distributed_value<member_type>::per_replica(std::move(own));
      std::get<number>(members) = reduce_nest(op, parts, over, replicas);
    };
    (reduce_member(std::integral_constant<size_t, i>{}), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(members)>>{});
  return result;
}

template <class... Parts>
[[nodiscard]] auto reduce_nest(reduce_op op, const std::tuple<Parts...>& value,
                               const reduce_scope& over, uint32_t replicas) {
  return std::apply(
    [&](const Parts&... part) { return std::tuple{reduce_nest(op, part, over, replicas)...}; },
    value);
}

template <class First, class Second>
[[nodiscard]] auto reduce_nest(reduce_op op, const std::pair<First, Second>& value,
                               const reduce_scope& over, uint32_t replicas) {
  return std::pair{reduce_nest(op, value.first, over, replicas),
                   reduce_nest(op, value.second, over, replicas)};
}

template <class T>
[[nodiscard]] auto reduce_nest(reduce_op op, const std::vector<T>& value, const reduce_scope& over,
                               uint32_t replicas) {
  std::vector<decltype(reduce_nest(op, value.front(), over, replicas))> result;
  for (const auto& part : value)
    result.push_back(reduce_nest(op, part, over, replicas));
  return result;
}

template <class Key, class T>
[[nodiscard]] auto reduce_nest(reduce_op op, const std::map<Key, T>& value,
                               const reduce_scope& over, uint32_t replicas) {
  std::map<Key, decltype(reduce_nest(op, value.begin()->second, over, replicas))> result;
  for (const auto& [key, part] : value)
    result.emplace(key, reduce_nest(op, part, over, replicas));
  return result;
}

template <class T, size_t count>
[[nodiscard]] auto reduce_nest(reduce_op op, const std::array<T, count>& value,
                               const reduce_scope& over, uint32_t replicas) {
  std::array<decltype(reduce_nest(op, value[0], over, replicas)), count> result;
  for (size_t i = 0; i < count; ++i)
    result[i] = reduce_nest(op, value[i], over, replicas);
  return result;
}

/// Nothing stays nothing.
template <class T>
[[nodiscard]] auto reduce_nest(reduce_op op, const std::optional<T>& value,
                               const reduce_scope& over, uint32_t replicas) {
  std::optional<decltype(reduce_nest(op, *value, over, replicas))> result;
  if (value) result = reduce_nest(op, *value, over, replicas);
  return result;
}

// What replicas bring to an all-reduce, by index, as one of the same type. Each value counts, even
// if it is the same for all. Errors: throws `failure` as `reduce_tensors`; invalid_argument if
// nests differ in structure.

[[nodiscard]] inline tensor all_reduce_nest(reduce_op op, const std::vector<tensor>& values,
                                            process_exchange* exchange) {
  return reduce_arrays(op, values, exchange);
}

template <class T>
[[nodiscard]] T all_reduce_nest(reduce_op op, std::vector<T> values, process_exchange* exchange) {
  auto count = static_cast<uint32_t>(values.size());
  return reduce_nest(op, distributed_value<T>::per_replica(std::move(values)),
                     {.exchange = exchange}, count);
}

template <class... Parts>
[[nodiscard]] std::tuple<Parts...> all_reduce_nest(reduce_op op,
                                                   std::vector<std::tuple<Parts...>> values,
                                                   process_exchange* exchange) {
  using whole = std::tuple<Parts...>;
  return [&]<size_t... i>(std::index_sequence<i...>) {
    return whole{
      all_reduce_nest(op,
                      detail::parts(
                        values, [](whole & value) -> auto& { return std::get<i>(value); }),
                      exchange)...};
  }
  (std::index_sequence_for<Parts...>{});
}

template <class First, class Second>
[[nodiscard]] std::pair<First, Second> all_reduce_nest(reduce_op op,
                                                       std::vector<std::pair<First, Second>> values,
                                                       process_exchange* exchange) {
  using whole = std::pair<First, Second>;
  return {all_reduce_nest(op, detail::parts(values, [](whole& v) -> First& { return v.first; }),
                          exchange),
          all_reduce_nest(op, detail::parts(values, [](whole& v) -> Second& { return v.second; }),
                          exchange)};
}

template <class T>
[[nodiscard]] std::vector<T> all_reduce_nest(reduce_op op, std::vector<std::vector<T>> values,
                                             process_exchange* exchange) {
  detail::check_structures(values);
  std::vector<T> result;
  for (size_t i = 0; i < values.front().size(); ++i)
    result.push_back(all_reduce_nest(
      op, detail::parts(values, [i](std::vector<T>& value) -> T& { return value[i]; }), exchange));
  return result;
}

template <class Key, class T>
[[nodiscard]] std::map<Key, T> all_reduce_nest(reduce_op op, std::vector<std::map<Key, T>> values,
                                               process_exchange* exchange) {
  detail::check_structures(values);
  std::map<Key, T> result;
  for (const auto& [key, first] : values.front())
    result.emplace(
      key,
      all_reduce_nest(
        op, detail::parts(values, [&](std::map<Key, T>& value) -> T& { return value.at(key); }),
        exchange));
  return result;
}

template <class T, size_t count>
[[nodiscard]] std::array<T, count> all_reduce_nest(reduce_op op,
                                                   std::vector<std::array<T, count>> values,
                                                   process_exchange* exchange) {
  std::array<T, count> result;
  for (size_t i = 0; i < count; ++i)
    result[i] = all_reduce_nest(
      op, detail::parts(values, [i](std::array<T, count>& value) -> T& { return value[i]; }),
      exchange);
  return result;
}

template <class T>
[[nodiscard]] std::optional<T> all_reduce_nest(reduce_op op, std::vector<std::optional<T>> values,
                                               process_exchange* exchange) {
  detail::check_structures(values);
  if (!values.front()) return {};
  return all_reduce_nest(
    op, detail::parts(values, [](std::optional<T>& value) -> T& { return *value; }), exchange);
}

} // namespace troupe
