// SPDX-License-Identifier: Apache-2.0
// One worker's part of an argument: its own values and resources, anywhere in a nest.
#pragma once

#include "strategies/coordinator/closure_service.hpp"
#include "strategies/coordinator/per_worker.hpp"
#include "strategies/coordinator/remote_value.hpp"

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <type_traits>
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

/// The worker that a part is for.
struct worker_part {
  const closure_service* of;
  uint32_t worker;

  /// Errors: throws `failure` with invalid_argument unless there is a value for each worker.
  void check_one_for_each(size_t values) const;
};

namespace detail {

template <class T>
own_of_worker<T> own_of(const per_worker_resource<T>& resource, const worker_part& part) {
  part.of->check_own(resource.of(), "an input");
  return {resource.which()};
}

} // namespace detail

template <class T>
concept is_worker_resource = requires(const T& value, const worker_part& part) {
  detail::own_of(value, part);
};

namespace detail {

/// A leaf is the same for all workers, but for values of each, and what each has of its own.
struct part_of_worker {
  worker_part part;

  template <class T>
  auto operator()(const std::vector<const T*>& value) {
    if constexpr (is_worker_resource<T>)
      return own_of(*value.front(), part);
    else
      return *value.front();
  }

  template <class T>
  auto operator()(const std::vector<const per_worker_values<T>*>& value) {
    const auto& values = value.front()->values;
    part.check_one_for_each(values.size());
    return map_nest(*this, values[part.worker]);
  }
};

// The results' types alone are asked for. The bodies are there because a compiler that does not
// optimise makes code of calls that are never made.

/// Leaves as they are, and values of each worker as one of them.
struct without_worker_values {
  template <class T>
  T operator()(const std::vector<const T*>&) {
    std::terminate();
  }

  template <class T>
  T operator()(const std::vector<const per_worker_values<T>*>&) {
    std::terminate();
  }
};

/// A parameter as it is written: in the place of each reference, an `own_of_worker`.
struct written_leaf {
  template <class T>
  T operator()(const std::vector<const T*>&) {
    std::terminate();
  }

  template <class T>
  own_of_worker<std::remove_const_t<T>>
  operator()(const std::vector<const std::reference_wrapper<T>*>&) {
    std::terminate();
  }
};

} // namespace detail

/// The type of a nest as one worker gets it.
template <class T>
using worker_part_t = zipped_t<detail::part_of_worker, const T>;

template <class T>
[[nodiscard]] worker_part_t<T> part_of(const T& nest, const worker_part& part) {
  return map_nest(detail::part_of_worker{part}, nest);
}

/// Whether there are values for each worker in a nest.
template <class T>
inline constexpr bool differs_between_workers
  = !std::is_same_v<T, zipped_t<detail::without_worker_values, const T>>;

/// The type that is written for a parameter.
template <class T>
struct written {
  using type = zipped_t<detail::written_leaf, const std::decay_t<T>>;
};

/// For a parameter `T&` a worker's own resource is written. Arguments for all others travel.
template <class T>

requires(!std::is_const_v<T>)

  struct written<T&> {
  using type = own_of_worker<T>;
};

template <class T>
using written_t = typename written<T>::type;

/// Whether a scheduled function accepts an argument for a parameter: the argument converts to it,
/// and may hold values for each worker, or a worker's own resource, anywhere in it. A remote value
/// is refused: the caller fetches it first.
template <class Argument, class Parameter>
concept schedulable_as
  = !has_remote_values<
      Argument> && std::convertible_to<const worker_part_t<Argument>&, written_t<Parameter>>;

} // namespace troupe
