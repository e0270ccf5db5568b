// SPDX-License-Identifier: Apache-2.0
// The launches of a rule's loops on a GPU; compiled beside the rules, in `rules/*_cuda.cu`.
#pragma once

#include "kernels/cuda/context.hpp"
#include "kernels/math/sparse.hpp"
#include "kernels/tensor/gradient_sum.hpp"
#include "kernels/updates/update_rules.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace troupe::cuda {

/// A GPU's answer to a rule that a program brings: such loops are compiled for CPUs only.
[[nodiscard]] inline expected<void> no_code_for(const rules::custom& rule) {
  return fail(errc::unimplemented, "optimizer '" + std::string{rule.name}
                                     + "' is not of this library: it updates on the CPU only");
}

/// Where the arrays of a dense update lie on the device.
template <class T>
struct update_places {
  size_t count = 0;
  const T* before = nullptr;
  T* after = nullptr; ///< May be `before`.
  std::array<const T*, slot_count_max> slots_before{};
  std::array<T*, slot_count_max> slots_after{};
  T* shadow = nullptr; ///< The moving average, if there is one.
  T average_weight = 0;
};

/// A dense update by a rule.
template <class Rule, class T>
struct rule_update {
  Rule settings;
  gradient_sum gradient;
  update_places<T> at;
};

template <class Rule, class T>
void queue_updates(const context& on, std::span<const rule_update<Rule, T>> updates);

/// @pre The rule is not layer-wise.
template <class Rule, class T>
void queue_sparse_update(const context& on, const Rule& settings, const sparse_sum& gradient,
                         std::span<T> variable, std::span<const std::span<T>> slots);

} // namespace troupe::cuda
