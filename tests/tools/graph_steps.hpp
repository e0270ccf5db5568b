// SPDX-License-Identifier: Apache-2.0
// Steps of a small language model on a GPU, and what tells whether a graph made them.
#pragma once

#include "actors/gpu/cuda_device.hpp"
#include "tests/tools/small_language.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <variant>

namespace troupe::test {

/// Graphs that were launched so far, by the GPU or the emulated one: each program defines it.
[[nodiscard]] size_t graphs_launched();

/// One that has seen no step.
[[nodiscard]] inline std::shared_ptr<compute_device> fresh_gpu() {
  auto opened = open_cuda_device(0, 1);
  REQUIRE_MESSAGE(opened, (opened ? std::string{} : opened.error().message));
  return *opened;
}

/// Everything of one step: other variables, another batch and other keys for each.
[[nodiscard]] inline expected<step_on_stream> step_on(compute_device& device,
                                                      const language_model_config& config,
                                                      uint64_t step, size_t examples = 16,
                                                      const differentiation& how = {}) {
  auto batch = draw_batch(config, small_text, examples, {step, "batch"});
  auto result = differentiate_on(device.stream(0), config, variables_of(config, step), batch,
                                 {step, "dropout"}, how);
  finish(device);
  return result;
}

[[nodiscard]] inline bool has_same_bits(const tensor& a, const tensor& b) {
  return a.extents() == b.extents() && a.type() == b.type()
         && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

[[nodiscard]] inline bool has_same_bits(const gradient& a, const gradient& b) {
  if (a.index() != b.index()) return false;
  if (const auto* dense = std::get_if<tensor>(&a))
    return has_same_bits(*dense, std::get<tensor>(b));
  const auto &rows = std::get<indexed_slices>(a), &others = std::get<indexed_slices>(b);
  return has_same_bits(rows.indices, others.indices) && has_same_bits(rows.values, others.values)
         && rows.dense_extents == others.dense_extents;
}

/// Bit for bit.
inline void check_same(const expected<step_on_stream>& one, const expected<step_on_stream>& other) {
  REQUIRE_MESSAGE(one, (one ? std::string{} : one.error().message));
  REQUIRE_MESSAGE(other, (other ? std::string{} : other.error().message));
  CHECK(has_same_bits(one->loss, other->loss));
  CHECK(has_same_bits(one->non_finite, other->non_finite));
  REQUIRE(one->gradients.size() == other->gradients.size());
  for (size_t i = 0; i < one->gradients.size(); ++i)
    CHECK(has_same_bits(one->gradients[i], other->gradients[i]));
}

} // namespace troupe::test
