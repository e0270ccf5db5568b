// SPDX-License-Identifier: Apache-2.0
// Casts on a GPU.
#include "kernels/cuda/packet.cuh"
#include "kernels/math/cast.hpp"

namespace troupe::cuda {

namespace {

template <class To>
struct narrowed {
  template <class From>
  __device__ To operator()(From value) const {
    return narrow<To>(value);
  }
};

} // namespace

void cast(const context& on, const elements& from, const mutable_elements& to) {
  TROUPE_ASSERT(from.count == to.count, from.count, to.count);
  visit_floating(from.type, [&]<class From>(From) {
    visit_floating(to.type,
                   [&]<class To>(To) { map(on, to.as<To>(), narrowed<To>{}, from.as<From>()); });
  });
}

} // namespace troupe::cuda
