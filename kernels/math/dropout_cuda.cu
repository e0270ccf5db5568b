// SPDX-License-Identifier: Apache-2.0
// Dropout on a GPU: a thread for each block of the random stream.
#include "kernels/cuda/packet.cuh"
#include "kernels/math/dropout.hpp"

namespace troupe::cuda {

namespace {

/// @param key_of Gives the key, on the device.
template <class T, class Key>
void drop_elements(const context& on, double rate, const Key& key_of, std::span<const T> input,
                   std::span<T> output) {
  troupe::detail::check_dropout(rate, input.size(), output.size());
  auto scale = static_cast<T>(1 / (1 - rate));
  auto threshold = dropout_threshold(rate);
  size_t count = input.size();
  const T* from = input.data();
  T* to = output.data();
  size_t whole = are_aligned(4 * sizeof(T), from, to) ? count / 4 : 0;
  auto drop = [=] __device__(size_t position) {
    auto words = key_of().block(static_cast<uint32_t>(position));
    if (position < whole) {
      auto values = load<4>(from, position);
      for (size_t word = 0; word < 4; ++word)
        values.values[word] = words[word] < threshold ? T{0} : values.values[word] * scale;
      return store(to, position, values);
    }
    for (size_t word = 0; word < 4; ++word) {
      size_t i = 4 * position + word;
      if (i < count) to[i] = words[word] < threshold ? T{0} : from[i] * scale;
    }
  };
  for_each(on, (count + 3) / 4, drop);
}

struct given_key {
  random_key key;

  __device__ random_key operator()() const { return key; }
};

struct placed_key {
  const random_key* at;

  __device__ random_key operator()() const { return *at; }
};

} // namespace

template <class T>
void dropout(const context& on, double rate, const random_key& key, std::span<const T> input,
             std::span<T> output) {
  drop_elements(on, rate, given_key{key}, input, output);
}

template <class T>
void dropout(const context& on, double rate, const random_key* key, std::span<const T> input,
             std::span<T> output) {
  drop_elements(on, rate, placed_key{key}, input, output);
}

template void dropout(const context&, double, const random_key&, std::span<const float>,
                      std::span<float>);
template void dropout(const context&, double, const random_key&, std::span<const double>,
                      std::span<double>);
template void dropout(const context&, double, const random_key*, std::span<const float>,
                      std::span<float>);
template void dropout(const context&, double, const random_key*, std::span<const double>,
                      std::span<double>);

} // namespace troupe::cuda
