// SPDX-License-Identifier: Apache-2.0
// The arrays of what replicas bring, wherever they lie, and how those on devices are combined.
#pragma once

#include "actors/world/task.hpp"
#include "kernels/tensor/tensor.hpp"
#include "strategies/reduce/cross_device_ops.hpp"
#include "strategies/values/nest.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace troupe {

class activity;
class replica_devices;

/// How arrays of replicas become one. What is one for all stays as it is, if the host lets it.
enum class array_kind : uint8_t { dense, row_numbers, row_values, one_for_all };

/// What replicas bring to one place of a nest.
struct array_group {
  array_kind kind = array_kind::dense;
  std::vector<tensor> parts; ///< By replica; one, if it is the same for all.
  std::vector<device> lay;   ///< Where each part was when it was brought.
  size_t axis = 0;           ///< Rows are laid behind each other along it.
  /// What a device has made of them. Then the parts are placeholders, and so is what the host
  /// makes.
  std::optional<tensor> outcome{};

  /// Whether some part lay on a device.
  [[nodiscard]] bool was_on_device() const;
};

/// All arrays of a nest: a reduction looks at leaves, and what a device is asked for is asked at
/// once. So the arrays are taken out, what lies on devices is combined there or copied to the host,
/// and put back; then the nest is reduced as any other.
struct brought_arrays {
  std::vector<array_group> groups; ///< In the order of the nest.
  bool is_even = true; ///< Whether all replicas bring as many; else it is refused later.

  /// Whether some lie on devices; false for what is refused anyway.
  [[nodiscard]] bool is_on_devices() const;

  /// What has one part where there are several replicas is one for all.
  void find_one_for_all(size_t replicas);

  /// All parts that are on devices now.
  [[nodiscard]] std::vector<tensor*> on_devices();
};

/// Visits the arrays of a nest in their order; what holds none is passed over.
/// @param visitor Told each array, and where the parts of replicas begin and end.
template <class T, class Visitor>
void visit_arrays(T&, Visitor&) {}

template <class Visitor>
void visit_arrays(tensor& value, Visitor& visitor) {
  visitor(value, array_kind::dense);
}

template <class Visitor>
void visit_arrays(indexed_slices& value, Visitor& visitor) {
  visitor(value.indices, array_kind::row_numbers);
  visitor(value.values, array_kind::row_values);
}

template <class Visitor>
void visit_arrays(gradient& value, Visitor& visitor) {
  std::visit([&](auto& one) { visit_arrays(one, visitor); }, value);
}

template <class T, class Visitor>
void visit_components(std::vector<T>& components, Visitor& visitor) {
  visitor.enter();
  for (size_t i = 0; i < components.size(); ++i) {
    visitor.go_to(i);
    visit_arrays(components[i], visitor);
  }
  visitor.leave(components.size());
}

template <class T, class Visitor>
void visit_arrays(distributed_value<T>& value, Visitor& visitor) {
  if constexpr (!std::is_arithmetic_v<T>) {
    if (value.size() == 0) return;
    auto components = value.is_mirrored() ? std::vector<T>{value.primary()} : value.local_results();
    visit_components(components, visitor);
    value = value.is_mirrored()
              ? distributed_value<T>::mirrored(std::move(components.front()), value.size())
              : distributed_value<T>::per_replica(std::move(components));
  }
}

template <has_members T, class Visitor>
void visit_arrays(T& value, Visitor& visitor) {
  std::apply([&](auto&... member) { (visit_arrays(member, visitor), ...); }, T::members(value));
}

template <class... Parts, class Visitor>
void visit_arrays(std::tuple<Parts...>& value, Visitor& visitor) {
  std::apply([&](auto&... part) { (visit_arrays(part, visitor), ...); }, value);
}

template <class First, class Second, class Visitor>
void visit_arrays(std::pair<First, Second>& value, Visitor& visitor) {
  visit_arrays(value.first, visitor);
  visit_arrays(value.second, visitor);
}

template <class T, class Visitor>
void visit_arrays(std::vector<T>& value, Visitor& visitor) {
  if constexpr (!std::is_arithmetic_v<T>)
    for (auto& part : value)
      visit_arrays(part, visitor);
}

template <class T, size_t count, class Visitor>
void visit_arrays(std::array<T, count>& value, Visitor& visitor) {
  for (auto& part : value)
    visit_arrays(part, visitor);
}

template <class Key, class T, class Visitor>
void visit_arrays(std::map<Key, T>& value, Visitor& visitor) {
  for (auto& [key, part] : value)
    visit_arrays(part, visitor);
}

template <class T, class Visitor>
void visit_arrays(std::optional<T>& value, Visitor& visitor) {
  if (value) visit_arrays(*value, visitor);
}

/// Takes arrays out.
class array_collector {
public:
  explicit array_collector(brought_arrays& to) : to_(to) {}

  void operator()(const tensor& array, array_kind kind);

  void enter() { first_ = to_.groups.size(); }

  void go_to(size_t) { next_ = 0; }

  void leave(size_t components);

private:
  brought_arrays& to_;
  size_t first_ = 0; ///< Group of those that replicas bring to one value.
  size_t next_ = 0;  ///< From there.
};

/// Puts them back.
class array_replacer {
public:
  explicit array_replacer(const brought_arrays& from) : from_(from) {}

  void operator()(tensor& array, array_kind) {
    array = from_.groups[first_ + next_++].parts[component_];
  }

  void enter() {
    first_ += next_;
    next_ = 0;
  }

  void go_to(size_t component) {
    component_ = component;
    next_ = 0;
  }

  void leave(size_t) { component_ = 0; }

private:
  const brought_arrays& from_;
  size_t first_ = 0;
  size_t next_ = 0;
  size_t component_ = 0;
};

/// The arrays of what replicas bring, by replica.
template <class T>
[[nodiscard]] brought_arrays arrays_of_all(std::vector<T>& values) {
  brought_arrays result;
  array_collector collector{result};
  visit_components(values, collector);
  return result;
}

/// Those of one nest, whose distributed values have parts of replicas.
template <class T>
[[nodiscard]] brought_arrays arrays_of(T& value) {
  brought_arrays result;
  array_collector collector{result};
  visit_arrays(value, collector);
  return result;
}

/// The other way round. @pre `arrays` are those of such values, and even.
template <class T>
void put_back_all(std::vector<T>& values, const brought_arrays& arrays) {
  array_replacer replacer{arrays};
  visit_components(values, replacer);
}

template <class T>
void put_back(T& value, const brought_arrays& arrays) {
  array_replacer replacer{arrays};
  visit_arrays(value, replacer);
}

/// An array that is wanted elsewhere.
struct array_move {
  tensor* array; ///< Replaced by its copy there. Lives until the move is made.
  device to;
};

/// Copies arrays to where they are wanted, in pinned memory where that is the host; what is there
/// already stays as it is. One array that is wanted in one place several times is copied once.
/// @param host Whose actor waits. @param devices That may be asked.
/// Errors: throws `failure`: invalid_argument for an array on a device that is not row-major, or
/// where no device of the strategy can be asked; as `activity::offload_to`.
/// Cost: a wait for each device.
[[nodiscard]] task<void> move_arrays(activity& host, const replica_devices& devices,
                                     std::vector<array_move> moves);

/// Likewise: all arrays to the host's memory.
[[nodiscard]] task<void> bring_to_host(activity& host, const replica_devices& devices,
                                       std::vector<tensor*> arrays);

/// Has devices combine those groups of which some part lies on a device: floating arrays are added
/// in the order of replicas, with the bits of a host's sum; rows are laid behind each other, of
/// whatever dtype. The parts are brought together on the device of the first that lies on one. What
/// is not alike, holds nothing, or is an array of integers, is left as it is.
/// @param arrays Lives until this is over. Errors: as `move_arrays`.
[[nodiscard]] task<void> combine_on_devices(activity& host, const replica_devices& devices,
                                            reduce_op op, brought_arrays& arrays);

/// What a reduction has come to, for each replica, where its own array lay.
/// @param brought What it was made of. @param result Of the host; the placeholders are replaced.
/// @param replicas So many of them are given it. Errors: as `move_arrays`.
[[nodiscard]] task<std::vector<brought_arrays>> placed_for(activity& host,
                                                           const replica_devices& devices,
                                                           const brought_arrays& brought,
                                                           brought_arrays result, size_t replicas);

} // namespace troupe
