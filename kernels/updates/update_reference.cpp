// SPDX-License-Identifier: Apache-2.0
// The update element by element: combine the gradients, apply the rule.
#include "kernels/updates/update.hpp"

#include "kernels/tensor/parallel.hpp"
#include "kernels/updates/rule_block.hpp"

#include <array>
#include <cmath>

namespace troupe::reference {

namespace {

/// Everything that the pass reads and writes.
template <class T>
struct dense_pass {
  const gradient_sum& gradient;
  const replaced<T>& variable;
  std::span<const replaced<T>> slots;
  const averaged<T>& average;
};

template <class Rule, class T>
auto slots_at(const dense_pass<T>& pass, size_t i) {
  std::array<T, cpu::state_size<Rule>> state{};
  for (size_t slot = 0; slot < pass.slots.size(); ++slot)
    state[slot] = pass.slots[slot].before[i];
  return state;
}

/// The sum of the squares of `element(i)` for i in [begin, end), in 16 lanes.
template <class Element>
double sum_in_lanes(size_t begin, size_t end, const Element& element) {
  std::array<double, 16> lanes{};
  for (size_t i = begin; i < end; ++i)
    lanes[(i - begin) % 16] += element(i) * element(i);
  for (size_t width : {8, 4, 2, 1})
    for (size_t lane = 0; lane < width; ++lane)
      lanes[lane] += lanes[lane + width];
  return lanes[0];
}

/// The same for chunks [begin, end) of all `count` elements, in halves.
template <class Element>
double sum_by_halves(size_t begin, size_t end, size_t count, const Element& element) {
  constexpr size_t chunk = cpu::sum_chunk_elements;
  if (end - begin <= 1) return sum_in_lanes(begin * chunk, std::min(end * chunk, count), element);
  size_t middle = begin + (end - begin) / 2;
  return sum_by_halves(begin, middle, count, element) + sum_by_halves(middle, end, count, element);
}

template <class Rule, class T>
rules::layer_norms norms_of(const Rule& settings, const dense_pass<T>& pass) {
  const typename Rule::template for_elements<T> rule{settings};
  size_t count = pass.variable.before.size();
  size_t chunks = (count + cpu::sum_chunk_elements - 1) / cpu::sum_chunk_elements;
  auto value = [&](size_t i) { return static_cast<double>(pass.variable.before[i]); };
  auto direction = [&](size_t i) {
    auto state = slots_at<Rule>(pass, i);
    return static_cast<double>(
      rule.direction(pass.variable.before[i], combined<T>(pass.gradient, i), state));
  };
  return {std::sqrt(sum_by_halves(0, chunks, count, value)),
          std::sqrt(sum_by_halves(0, chunks, count, direction))};
}

template <class T, class Rule>
void update_with(const Rule& settings, const dense_pass<T>& pass) {
  const auto apply
    = cpu::rule_for_elements<T>(settings, [&](const auto& rule) { return norms_of(rule, pass); });
  for (size_t i = 0; i < pass.variable.after.size(); ++i) {
    auto state = slots_at<Rule>(pass, i);
    T value = apply(pass.variable.before[i], combined<T>(pass.gradient, i), state);
    pass.variable.after[i] = value;
    for (size_t slot = 0; slot < pass.slots.size(); ++slot)
      pass.slots[slot].after[i] = state[slot];
    if (pass.average.shadow.empty()) continue;
    T& shadow = pass.average.shadow[i];
    shadow = shadow - static_cast<T>(pass.average.weight) * (shadow - value);
  }
}

} // namespace

template <class T>
void update(const context&, const update_rule& rule, const gradient_sum& gradient,
            const replaced<T>& variable, std::span<const replaced<T>> slots,
            const averaged<T>& average) {
  check(rule, gradient, variable, slots, average);
  const dense_pass<T> pass{gradient, variable, slots, average};
  std::visit([&](const auto& settings) { update_with(settings, pass); }, rule);
}

template void update(const context&, const update_rule&, const gradient_sum&,
                     const replaced<float>&, std::span<const replaced<float>>,
                     const averaged<float>&);
template void update(const context&, const update_rule&, const gradient_sum&,
                     const replaced<double>&, std::span<const replaced<double>>,
                     const averaged<double>&);

} // namespace troupe::reference
