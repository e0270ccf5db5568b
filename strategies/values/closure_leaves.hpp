// SPDX-License-Identifier: Apache-2.0
// Nested values of functions that run elsewhere, taken apart into leaves that can travel.
#pragma once

#include "kernels/tensor/tensor.hpp"
#include "messages/coordinator_message.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/values/nest.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

// Values that can travel: arrays, numbers, texts of up to 4096 bytes, rows; and tuples, pairs,
// vectors, arrays, maps, optionals and structs of such values, if the structs show their parts
// (nest.hpp). Both sides know the type, so only leaves are sent, and the lengths of containers.

class worker_room;

/// Leaves in order, as they come out of a message.
class closure_leaves {
public:
  /// @param leaves Outlive the reader. @param room The worker's own objects, which arguments may
  /// refer to; outlives the reader, too. Null where results are read.
  explicit closure_leaves(std::span<const closure_value> leaves, worker_room* room = nullptr)
    : leaves_(leaves), room_(room) {}

  /// The next leaf. Errors: throws `failure` with type_mismatch if there is none, or one of another
  /// kind: then the two processes were not built of the same functions.
  template <class Leaf>
  [[nodiscard]] const Leaf& next(const char* kind) {
    const auto* found = next_ < leaves_.size() ? std::get_if<Leaf>(&leaves_[next_]) : nullptr;
    if (found == nullptr) refuse(kind);
    ++next_;
    return *found;
  }

  /// The length of the container that follows. Errors: as for the next leaf.
  [[nodiscard]] size_t length();

  /// Errors: throws `failure` with type_mismatch if there are more leaves.
  void end() const;

  /// @pre These are arguments.
  [[nodiscard]] worker_room& room() const;

private:
  [[noreturn]] void refuse(const char* kind) const;

  std::span<const closure_value> leaves_;
  worker_room* room_;
  size_t next_ = 0;
};

/// Refuses leaves that no message can carry: too many values, texts that are too long, arrays of
/// too many dimensions. Throws `failure` with limit_exceeded.
void check_leaves(std::span<const closure_value> leaves);

/// How a type becomes leaves, and comes out of them again; this one is for structs.
template <class T>
struct closure_codec {
  static_assert(has_members<T>, "this type cannot travel; give the struct `members` (nest.hpp)");

  static void write(const T& value, std::vector<closure_value>& to);
  static T read(closure_leaves& from);
};

template <>
struct closure_codec<tensor> {
  static void write(const tensor& value, std::vector<closure_value>& to) { to.emplace_back(value); }

  static tensor read(closure_leaves& from) { return from.next<tensor>("an array"); }
};

template <class T>
requires std::is_arithmetic_v<T>

struct closure_codec<T> {
  using leaf = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;

  static void write(T value, std::vector<closure_value>& to) {
    to.emplace_back(static_cast<leaf>(value));
  }

  static T read(closure_leaves& from) {
    return static_cast<T>(
      from.next<leaf>(std::is_floating_point_v<T> ? "a number" : "a whole number"));
  }
};

template <>
struct closure_codec<std::string> {
  static void write(const std::string& value, std::vector<closure_value>& to) {
    to.emplace_back(value);
  }

  static std::string read(closure_leaves& from) { return from.next<std::string>("a text"); }
};

template <>
struct closure_codec<std::monostate> {
  static void write(std::monostate, std::vector<closure_value>&) {}

  static std::monostate read(closure_leaves&) { return {}; }
};

/// Appends the leaves of a value.
template <class T>
void write_leaves(const T& value, std::vector<closure_value>& to) {
  closure_codec<T>::write(value, to);
}

/// The value that comes next. Errors: throws `failure` with type_mismatch.
template <class T>
[[nodiscard]] T read_leaves(closure_leaves& from) {
  return closure_codec<T>::read(from);
}

namespace detail {

template <class Whole>
struct codec_of_parts {
  static void write(const Whole& value, std::vector<closure_value>& to) {
    std::apply([&](const auto&... part) { (write_leaves(part, to), ...); }, value);
  }

  static Whole read(closure_leaves& from) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return Whole{read_leaves<std::tuple_element_t<i, Whole>>(from)...}; // in this order
    }
    (std::make_index_sequence<std::tuple_size_v<Whole>>{});
  }
};

} // namespace detail

template <class... Parts>
struct closure_codec<std::tuple<Parts...>> : detail::codec_of_parts<std::tuple<Parts...>> {};

template <class First, class Second>
struct closure_codec<std::pair<First, Second>> : detail::codec_of_parts<std::pair<First, Second>> {
};

template <class T, size_t count>
struct closure_codec<std::array<T, count>> : detail::codec_of_parts<std::array<T, count>> {};

template <class T>
struct closure_codec<std::vector<T>> {
  static void write(const std::vector<T>& value, std::vector<closure_value>& to) {
    to.emplace_back(static_cast<int64_t>(value.size()));
    for (const auto& part : value)
      write_leaves<T>(part, to);
  }

  static std::vector<T> read(closure_leaves& from) {
    std::vector<T> value;
    for (auto left = from.length(); left > 0; --left)
      value.push_back(read_leaves<T>(from));
    return value;
  }
};

template <class Key, class T>
struct closure_codec<std::map<Key, T>> {
  static void write(const std::map<Key, T>& value, std::vector<closure_value>& to) {
    to.emplace_back(static_cast<int64_t>(value.size()));
    for (const auto& [key, part] : value) {
      write_leaves(key, to);
      write_leaves(part, to);
    }
  }

  static std::map<Key, T> read(closure_leaves& from) {
    std::map<Key, T> value;
    for (auto left = from.length(); left > 0; --left) {
      auto key = read_leaves<Key>(from);
      value.insert_or_assign(std::move(key), read_leaves<T>(from));
    }
    return value;
  }
};

template <class T>
struct closure_codec<std::optional<T>> {
  static void write(const std::optional<T>& value, std::vector<closure_value>& to) {
    to.emplace_back(int64_t{value.has_value()});
    if (value) write_leaves(*value, to);
  }

  static std::optional<T> read(closure_leaves& from) {
    if (from.length() == 0) return std::nullopt;
    return read_leaves<T>(from);
  }
};

template <>
struct closure_codec<indexed_slices> {
  static void write(const indexed_slices& value, std::vector<closure_value>& to) {
    write_leaves(value.indices, to);
    write_leaves(value.values, to);
    write_leaves(value.dense_extents.dims(), to);
  }

  static indexed_slices read(closure_leaves& from) {
    auto indices = read_leaves<tensor>(from);
    auto values = read_leaves<tensor>(from);
    return {indices, values, shape{read_leaves<std::vector<int64_t>>(from)}};
  }
};

template <class T>
void closure_codec<T>::write(const T& value, std::vector<closure_value>& to) {
  std::apply([&](const auto&... part) { (write_leaves(part, to), ...); }, T::members(value));
}

template <class T>
T closure_codec<T>::read(closure_leaves& from) {
  T value{};
  auto take = [&]<class Part>(Part& part) { part = read_leaves<Part>(from); };
  std::apply([&](auto&... part) { (take(part), ...); }, T::members(value));
  return value;
}

} // namespace troupe
