// SPDX-License-Identifier: Apache-2.0
// The mean on a GPU.
#include "kernels/cuda/packet.cuh"
#include "kernels/cuda/sums.cuh"
#include "kernels/math/mean.hpp"

namespace troupe::cuda {

template <class T>
void mean(const context& on, std::span<const T> values, std::span<T> out) {
  TROUPE_ASSERT(out.size() == 1, out.size());
  auto total = room_for_sums(on, 1);
  if (total == nullptr) return;
  auto* sum = reinterpret_cast<double*>(total.get());
  auto element = [from = values.data()] __device__(size_t i) {
    return sum_values<1>{{static_cast<double>(from[i])}};
  };
  sum_elements<1>(on, values.size(), cpu::sum_chunk_elements, element, sum);
  auto divide = [sum, to = out.data(), count = static_cast<double>(values.size())] __device__(
                  size_t) { *to = static_cast<T>(*sum / count); };
  for_each(on, 1, divide);
}

template <class T>
T mean(const context& on, std::span<const T> values) {
  auto room = on.workspace(sizeof(double));
  auto result = on.workspace(sizeof(T));
  if (room == nullptr || result == nullptr) return static_cast<T>(fetch(on, nullptr));
  auto* at = reinterpret_cast<T*>(result.get());
  auto* wide = reinterpret_cast<double*>(room.get());
  mean(on, values, std::span<T>{at, 1});
  for_each(on, 1, [=] __device__(size_t) { *wide = *at; });
  return static_cast<T>(fetch(on, wide));
}

template <class T>
void mean_gradient(const context& on, std::span<const T> output_gradient, std::span<T> gradient) {
  TROUPE_ASSERT(output_gradient.size() == 1, output_gradient.size());
  auto share
    = [from = output_gradient.data(), count = static_cast<double>(gradient.size())] __device__() {
        return static_cast<T>(static_cast<double>(*from) / count);
      };
  map(on, gradient, share);
}

template void mean(const context&, std::span<const float>, std::span<float>);
template void mean(const context&, std::span<const double>, std::span<double>);
template float mean(const context&, std::span<const float>);
template double mean(const context&, std::span<const double>);
template void mean_gradient(const context&, std::span<const float>, std::span<float>);
template void mean_gradient(const context&, std::span<const double>, std::span<double>);

} // namespace troupe::cuda
