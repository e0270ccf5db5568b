// SPDX-License-Identifier: Apache-2.0
// The loops of every update on a GPU, for the files beside the rules that compile them.
#pragma once

#include "kernels/cuda/sums.cuh"
#include "kernels/math/gathered.cuh"
#include "kernels/math/row_gathering.cuh"
#include "kernels/updates/rule_launch.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace troupe::cuda {

/// Everything that the dense pass over one variable reads and writes.
template <class Rule, class T>
struct update_pass {
  static constexpr size_t slots = Rule::slot_names.size();

  Rule settings;
  typename Rule::template for_elements<T> apply;
  gathered<T> gradient;
  update_places<T> at;
  size_t whole = 0;                ///< Packets from the front; elements behind them go one by one.
  const double* squares = nullptr; ///< Sums for variable and direction; layer-wise rules only.
};

/// Passes of one launch, as a kernel's argument. Each has blocks of its own.
template <class Rule, class T, unsigned most>
struct update_passes {
  update_pass<Rule, T> each[most];
  unsigned first_block[most + 1]{}; ///< Absent passes begin at the end of the grid.

  explicit update_passes(const update_pass<Rule, T>& first)
    : update_passes(first, std::make_index_sequence<most>{}) {}

private:
  template <size_t... is>
  update_passes(const update_pass<Rule, T>& first, std::index_sequence<is...> /*places*/)
    : each{(static_cast<void>(is), first)...} {}
};

/// Passes that a launch takes at most.
template <class Rule, class T>
inline constexpr unsigned passes_max
  = (argument_bytes_max - 2 * sizeof(unsigned)) / (sizeof(update_pass<Rule, T>) + sizeof(unsigned));

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

template <class Rule, class T, unsigned most>
__global__ void __launch_bounds__(block_threads)
  update_kernel(update_passes<Rule, T, most> passes) {
  constexpr size_t width = gathered_width<T>;
  unsigned own = 0;
  while (own + 1 < most && blockIdx.x >= passes.first_block[own + 1])
    ++own;
  const auto& pass = passes.each[own];
  const unsigned begin = passes.first_block[own], end = passes.first_block[own + 1];
  const size_t thread = size_t{blockIdx.x - begin} * blockDim.x + threadIdx.x;
  const size_t threads = size_t{end - begin} * blockDim.x;
  auto apply = pass.apply;
  if constexpr (is_layer_wise_rule<Rule>)
    apply.scale_to(pass.settings, {sqrt(pass.squares[0]), sqrt(pass.squares[1])});
  for (size_t i = thread; i < pass.whole; i += threads)
    update_packet<width>(pass, apply, i);
  for (size_t i = pass.whole * width + thread; i < pass.at.count; i += threads)
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

/// A pass that is ready to be launched, with the memory that it refers to.
template <class Rule, class T>
struct ready_pass {
  update_pass<Rule, T> pass;
  unsigned blocks = 0;
  std::shared_ptr<std::byte> sum_so_far;
  std::shared_ptr<std::byte> squares;
};

template <class Rule, class T>
[[nodiscard]] ready_pass<Rule, T> make_ready(const context& on,
                                             const rule_update<Rule, T>& update) {
  const auto& at = update.at;
  auto gathering = gather<T>(on, update.gradient);
  update_pass<Rule, T> pass{
    update.settings, typename Rule::template for_elements<T>{update.settings}, gathering.from, at};
  std::shared_ptr<std::byte> squares;
  if constexpr (is_layer_wise_rule<Rule>)
    if (squares = room_for_sums(on, 2); squares != nullptr) {
      auto* total = reinterpret_cast<double*>(squares.get());
      sum_elements<2>(on, at.count, cpu::sum_chunk_elements, squares_of_element<Rule, T>{pass},
                      total);
      pass.squares = total;
    }
  bool aligned = are_aligned(gathering.from) && are_aligned(packet_bytes, at.before, at.after)
                 && are_aligned(packet_bytes, at.shadow);
  for (size_t slot = 0; slot < slot_count_max; ++slot) // null where there is none
    aligned = aligned && are_aligned(packet_bytes, at.slots_before[slot], at.slots_after[slot]);
  pass.whole = aligned ? at.count / gathered_width<T> : 0;
  auto blocks = blocks_for(pass.whole > 0 ? pass.whole + 1 : at.count, block_threads);
  return {pass, blocks, std::move(gathering.sum_so_far), std::move(squares)};
}

/// @param ready At least one, and `most` at most.
template <unsigned most, class Rule, class T>
void launch_passes(const context& on, std::span<const ready_pass<Rule, T>> ready) {
  update_passes<Rule, T, most> passes{ready.front().pass};
  static_assert(sizeof(passes) <= argument_bytes_max);
  unsigned blocks = 0;
  for (size_t i = 0; i < most; ++i) {
    passes.first_block[i] = blocks;
    if (i >= ready.size()) continue;
    passes.each[i] = ready[i].pass;
    blocks += ready[i].blocks;
  }
  passes.first_block[most] = blocks;
  launch(on, blocks, block_threads, update_kernel<Rule, T, most>, passes);
}

/// A pass of so many blocks takes longer than its launch, and goes alone: the kernel of one pass
/// has fewer registers, and more of its blocks run at once. The emulator's passes have fewer.
inline constexpr size_t alone_blocks_min = std::min<size_t>(1024, grid_blocks_max);

template <class Rule, class T>
void queue_updates(const context& on, std::span<const rule_update<Rule, T>> updates) {
  std::vector<ready_pass<Rule, T>> ready;
  for (const auto& update : updates)
    if (update.at.count > 0) ready.push_back(make_ready(on, update));
  if (!on.status()) return; // there may be no room for squares
  auto alone = std::ranges::partition(
    ready, [](const auto& pass) { return pass.blocks < alone_blocks_min; });
  for (const auto& large : alone)
    launch_passes<1, Rule, T>(on, {&large, 1});
  std::span<const ready_pass<Rule, T>> small{ready.begin(), alone.begin()};
  while (!small.empty()) {
    auto next = small.first(std::min<size_t>(passes_max<Rule, T>, small.size()));
    next.size() == 1 ? launch_passes<1>(on, next) : launch_passes<passes_max<Rule, T>>(on, next);
    small = small.subspan(next.size());
  }
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
  template void queue_updates(const context&, std::span<const rule_update<Rule, float>>);          \
  template void queue_updates(const context&, std::span<const rule_update<Rule, double>>);         \
  template void queue_sparse_update(const context&, const Rule&, const sparse_sum&,                \
                                    std::span<float>, std::span<const std::span<float>>);          \
  template void queue_sparse_update(const context&, const Rule&, const sparse_sum&,                \
                                    std::span<double>, std::span<const std::span<double>>);

/// Compiles the loops of a layer-wise rule, which has no sparse update.
#define TROUPE_COMPILE_CUDA_LAYER_WISE_RULE(Rule)                                                  \
  template void queue_updates(const context&, std::span<const rule_update<Rule, float>>);          \
  template void queue_updates(const context&, std::span<const rule_update<Rule, double>>);
