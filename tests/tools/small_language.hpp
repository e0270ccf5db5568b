// SPDX-License-Identifier: Apache-2.0
// A text and a language model that are small enough to be trained on a GPU that is emulated.
#pragma once

#include "actors/world/compute_device.hpp"
#include "messages/mapped.hpp"
#include "tests/doctest.hpp"
#include "tools/language/language_model.hpp"

#include <cstdint>
#include <future>
#include <string_view>
#include <vector>

namespace troupe::test {

inline constexpr std::string_view small_text
  = "the quick brown fox jumps over the lazy dog, and the dog does not mind. ";

/// Has everything that the model of `troupe train` has, dropout included.
[[nodiscard]] inline language_model_config small_model(std::vector<int64_t> hidden_sizes = {17}) {
  return {.context = 3,
          .embedding_size = 5,
          .hidden_sizes = std::move(hidden_sizes),
          .embedding_dropout = 0.2,
          .hidden_dropout = 0.3};
}

/// The initial values of a model's variables.
template <class Model>
[[nodiscard]] std::vector<tensor> variables_of(const Model& model, uint64_t seed) {
  return mapped(initial_values(variables_of(model), seed),
                [](const auto& variable) { return variable.value; });
}

/// The elements of an array of i64.
[[nodiscard]] inline std::vector<int64_t> list(const tensor& integers) {
  auto values = integers.values<int64_t>();
  return {values.begin(), values.end()};
}

/// Waits until the first stream of a device has done all that it was asked for.
inline void finish(compute_device& device) {
  std::promise<void> done;
  REQUIRE(device.notify(0, [&] { done.set_value(); }));
  done.get_future().wait();
}

} // namespace troupe::test
