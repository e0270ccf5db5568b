// SPDX-License-Identifier: Apache-2.0
// Where a context's tensors lie, and how they come there.
#pragma once

#include "kernels/tensor/context.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/errors/errc.hpp"

#include <span>
#include <utility>

// Code that is written once for all contexts asks here. Indices and labels are memory of the host
// in every context: that is where they come from, and where they are checked and sorted.
namespace troupe::placement {

/// The device that a context computes on.
template <class Context>
[[nodiscard]] device place_of(const Context&) {
  return {};
}

[[nodiscard]] device place_of(const cuda::context& on);

/// The first failure of a context; those of the host have none.
template <class Context>
[[nodiscard]] expected<void> status_of(const Context&) {
  return {};
}

[[nodiscard]] expected<void> status_of(const cuda::context& on);

/// An uninitialised tensor where the context computes.
/// Errors: throws std::bad_alloc when there is no more memory.
template <class Context>
[[nodiscard]] tensor make(const Context&, dtype type, shape extents) {
  return {type, std::move(extents)};
}

[[nodiscard]] tensor make(const cuda::context& on, dtype type, shape extents);

template <class Context>
[[nodiscard]] tensor make_like(const Context& on, const tensor& other) {
  return make(on, other.type(), other.extents());
}

/// A copy with memory of its own, in the same place.
template <class Context>
[[nodiscard]] tensor copied(const Context&, const tensor& value) {
  return value.clone();
}

[[nodiscard]] tensor copied(const cuda::context& on, const tensor& value);

/// A tensor of the host where the context computes: itself, or a copy.
template <class Context>
[[nodiscard]] tensor placed(const Context&, const tensor& value) {
  return value;
}

[[nodiscard]] tensor placed(const cuda::context& on, const tensor& value);

/// The elements to read, for a kernel of this context.
template <class T, class Context>
[[nodiscard]] std::span<const T> in(const Context& on, const tensor& value) {
  return value.values<T>(place_of(on));
}

/// The elements to write, for a kernel of this context.
template <class T, class Context>
[[nodiscard]] std::span<T> out(const Context& on, tensor& value) {
  return value.mutable_values<T>(place_of(on));
}

/// `given` itself if no other handle looks at its memory, else fresh memory of the same kind.
template <class Context>
[[nodiscard]] tensor reuse(const Context& on, const tensor& given) {
  if (given.is_unique() && !given.read_only()) return given;
  return make_like(on, given);
}

} // namespace troupe::placement
