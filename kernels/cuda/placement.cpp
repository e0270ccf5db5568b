// SPDX-License-Identifier: Apache-2.0
// How tensors come to a GPU.
#include "kernels/tensor/placement.hpp"

#include "kernels/cuda/context.hpp"

#include <new>

namespace troupe::placement {

device place_of(const cuda::context& on) {
  return on.device();
}

expected<void> status_of(const cuda::context& on) {
  return on.status();
}

tensor make(const cuda::context& on, dtype type, shape extents) {
  auto result = on.make(type, std::move(extents));
  if (!on.status()) throw std::bad_alloc{}; // as the host's memory does; the context knows more
  return result;
}

tensor copied(const cuda::context& on, const tensor& value) {
  auto result = make_like(on, value);
  on.note(on.stream().copy(value.data(), result.mutable_data(), value.bytes()));
  return result;
}

// A tensor of another GPU stays there, too: the host cannot read it, and callers say where it lies.
tensor placed(const cuda::context& on, const tensor& value) {
  if (value.device().kind != device_kind::cpu) return value;
  auto result = to_device(on, value);
  if (!result) throw std::bad_alloc{};
  return *std::move(result);
}

} // namespace troupe::placement
