// SPDX-License-Identifier: Apache-2.0
// The loops of every update on a GPU, for the files beside the rules that compile them.
#pragma once

#include "kernels/cuda/sums.cuh"
#include "kernels/math/gathered.cuh"
#include "kernels/math/row_gathering.cuh"
#include "kernels/updates/rule_launch.hpp"

#include <array>
#include <cstddef>

namespace troupe::cuda {

/// Everything that the dense pass reads and writes, as a kernel's argument.
template <class Rule, class T>
struct update_pass {
  static constexpr size_t slots = Rule::slot_names.size();

  Rule settings;
  typename Rule::template for_elements<T> apply;
  gathered<T> gradient;
  update_places<T> at;
  const double* squares = nullptr; ///< Of the variable and of its direction; layer-wise rules only.
};

/// Packet `i` of all arrays: the gradients combined, the rule applied, the average moved.
template <size_t width, class Rule, class T>
__device__ void update_packet(const update_pass<Rule, T>& pass,
                              const typename Rule::template for_elements<T>& apply, size_t i) {
  using group = packet<T, width>;
  auto gradient = combine<width>(pass.gradient, i);
  auto value = reinterpret_cast<const group*>(pass.at.before)[i];
  group slots[pass.slots + 1]; // no array is empty
  for (size_t slot = 0; slot < pass.slots; ++slot)
    slots[slot] = reinterpret_cast<const group*>(pass.at.slots_before[slot])[i];
  for (size_t k = 0; k < width; ++k) {
    std::array<T, pass.slots> state{};
    for (size_t slot = 0; slot < pass.slots; ++slot)
      state[slot] = slots[slot].values[k];
    value.values[k] = apply(value.values[k], gradient.values[k], state);
    for (size_t slot = 0; slot < pass.slots; ++slot)
      slots[slot].values[k] = state[slot];
  }
  reinterpret_cast<group*>(pass.at.after)[i] = value;
  for (size_t slot = 0; slot < pass.slots; ++slot)
    reinterpret_cast<group*>(pass.at.slots_after[slot])[i] = slots[slot];
  if (pass.at.shadow == nullptr) return;
  auto shadow = reinterpret_cast<group*>(pass.at.shadow)[i];
  for (size_t k = 0; k < width; ++k)
    shadow.values[k]
      = shadow.values[k] + pass.at.average_weight * (value.values[k] - shadow.values[k]);
  reinterpret_cast<group*>(pass.at.shadow)[i] = shadow;
}

template <class Rule, class T>
__global__ void __launch_bounds__(block_threads)
  update_kernel(size_t whole, update_pass<Rule, T> pass) {
  constexpr size_t width = gathered_width<T>;
  auto apply = pass.apply;
  if constexpr (is_layer_wise_rule<Rule>)
    apply.scale_to(pass.settings, {sqrt(pass.squares[0]), sqrt(pass.squares[1])});
  for (size_t i = thread_of_grid(); i < whole; i += threads_of_grid())
    update_packet<width>(pass, apply, i);
  for (size_t i = whole * width + thread_of_grid(); i < pass.at.count; i += threads_of_grid())
    update_packet<1>(pass, apply, i);
}

/// The squares of an element of the variable, and of the direction in which a rule would move it.
template <class Rule, class T>
struct squares_of_element {
  update_pass<Rule, T> pass;

  __device__ sum_values<2> operator()(size_t i) const {
    std::array<T, update_pass<Rule, T>::slots> state{};
    for (size_t slot = 0; slot < state.size(); ++slot)
      state[slot] = pass.at.slots_before[slot][i];
    T before = pass.at.before[i];
    double value = before;
    double direction = pass.apply.direction(before, combine<1>(pass.gradient, i).values[0], state);
    return {{value * value, direction * direction}};
  }
};

template <class Rule, class T>
void queue_update(const context& on, const Rule& settings, const gradient_sum& gradient,
                  const update_places<T>& at) {
  if (at.count == 0) return;
  auto gathering = gather<T>(on, gradient);
  update_pass<Rule, T> pass{settings, typename Rule::template for_elements<T>{settings},
                            gathering.from, at};
  std::shared_ptr<std::byte> squares;
  if constexpr (is_layer_wise_rule<Rule>) {
    squares = room_for_sums(on, 2);
    if (squares == nullptr) return;
    auto* total = reinterpret_cast<double*>(squares.get());
    sum_elements<2>(on, at.count, cpu::sum_chunk_elements, squares_of_element<Rule, T>{pass},
                    total);
    pass.squares = total;
  }
  bool aligned = are_aligned(gathering.from) && are_aligned(packet_bytes, at.before, at.after)
                 && are_aligned(packet_bytes, at.shadow);
  for (size_t slot = 0; slot < slot_count_max; ++slot) // null where there is none
    aligned = aligned && are_aligned(packet_bytes, at.slots_before[slot], at.slots_after[slot]);
  size_t whole = aligned ? at.count / gathered_width<T> : 0;
  launch(on, blocks_for(aligned ? whole + 1 : at.count, block_threads), block_threads,
         update_kernel<Rule, T>, whole, pass);
}

/// Everything that the sparse pass reads and writes.
template <class Rule, class T>
struct sparse_pass {
  static constexpr size_t slots = Rule::slot_names.size();

  typename Rule::template for_elements<T> apply;
  gathered_rows<T> gradient;
  T* variable;
  T* slot_values[slots + 1]; // no array is empty

  __device__ void operator()(size_t i) const {
    T gradient_value = gradient.combined(i);
    size_t place = gradient.place(i);
    std::array<T, slots> state{};
    for (size_t slot = 0; slot < slots; ++slot)
      state[slot] = slot_values[slot][place];
    variable[place] = apply(variable[place], gradient_value, state);
    for (size_t slot = 0; slot < slots; ++slot)
      slot_values[slot][place] = state[slot];
  }
};

template <class Rule, class T>
void queue_sparse_update(const context& on, const Rule& settings, const sparse_sum& gradient,
                         std::span<T> variable, std::span<const std::span<T>> slots) {
  auto rows = gather_rows<T>(on, gradient);
  sparse_pass<Rule, T> pass{
    typename Rule::template for_elements<T>{settings}, rows.from, variable.data(), {}};
  for (size_t slot = 0; slot < slots.size(); ++slot)
    pass.slot_values[slot] = slots[slot].data();
  for_each(on, rows.from.element_count(), pass);
}

} // namespace troupe::cuda

/// Compiles the loops of a rule for the types that variables have.
#define TROUPE_COMPILE_CUDA_RULE(Rule)                                                             \
  template void queue_update(const context&, const Rule&, const gradient_sum&,                     \
                             const update_places<float>&);                                         \
  template void queue_update(const context&, const Rule&, const gradient_sum&,                     \
                             const update_places<double>&);                                        \
  template void queue_sparse_update(const context&, const Rule&, const sparse_sum&,                \
                                    std::span<float>, std::span<const std::span<float>>);          \
  template void queue_sparse_update(const context&, const Rule&, const sparse_sum&,                \
                                    std::span<double>, std::span<const std::span<double>>);

/// Likewise; there is no sparse update by a layer-wise rule.
#define TROUPE_COMPILE_CUDA_LAYER_WISE_RULE(Rule)                                                  \
  template void queue_update(const context&, const Rule&, const gradient_sum&,                     \
                             const update_places<float>&);                                         \
  template void queue_update(const context&, const Rule&, const gradient_sum&,                     \
                             const update_places<double>&);
