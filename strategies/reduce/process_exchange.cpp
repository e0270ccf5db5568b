// SPDX-License-Identifier: Apache-2.0
// Noting collectives, taking their results, and what reductions make of both.
#include "strategies/reduce/process_exchange.hpp"

#include "kernels/math/cast.hpp"
#include "messages/assert.hpp"
#include "messages/limits.hpp"
#include "messages/refuse.hpp"
#include "strategies/reduce/on_host.hpp"

#include <algorithm>

namespace troupe {

namespace {

bool is_narrow(dtype type) {
  return type == dtype::f16 || type == dtype::bf16;
}

tensor cast(const tensor& from, dtype type) {
  tensor result{type, from.extents()};
  cpu::cast({}, elements{from.contiguous()}, mutable_elements{result});
  return result;
}

// 16-bit values are added in f32, and rounded once, when all is done to them.
tensor reduce_narrow(reduce_op op, std::span<const tensor> components, process_exchange& exchange,
                     std::string_view of) {
  check_on_host(components);
  std::vector<tensor> wide;
  for (const auto& component : components)
    wide.push_back(cast(component, dtype::f32));
  auto reduced = reduce_arrays(op, wide, &exchange, of);
  return exchange.is_noting() ? components.front() : cast(reduced, components.front().type());
}

indexed_slices reduce_rows(reduce_op op, std::span<const gradient> components,
                           process_exchange& exchange, std::string_view of) {
  auto here = std::get<indexed_slices>(reduce_components(reduce_op::sum, components));
  auto rows
    = fmt::format("rows of {}{}{}", to_string(here.dense_extents), of.empty() ? "" : ", ", of);
  here.indices = exchange.gather({&here.indices, 1}, rows);
  here.values = exchange.gather({&here.values, 1}, rows);
  if (op == reduce_op::mean && !exchange.is_noting())
    here.values = divided_sum({&here.values, 1}, exchange.group().replica_count());
  return here;
}

// The rank, and the extents: processes whose ranks differ make the same call, and find out by this.
tensor extents_of(const tensor& value) {
  tensor result{dtype::i64, {1 + static_cast<int64_t>(value.rank())}};
  auto numbers = result.mutable_values<int64_t>();
  numbers[0] = static_cast<int64_t>(value.rank());
  std::ranges::copy(value.extents().dims(), numbers.begin() + 1);
  return result;
}

// The arrays that lie behind each other in `flat`, with what `extents_of` says of each.
std::vector<tensor> split(const tensor& flat, const tensor& extents) {
  constexpr auto misfit = "the extents of what is gathered do not fit its elements";
  std::vector<tensor> parts;
  auto numbers = extents.values<int64_t>();
  int64_t begin = 0;
  while (!numbers.empty()) {
    auto rank = static_cast<size_t>(numbers[0]);
    if (numbers[0] < 0 || rank > limits::rank_max || rank >= numbers.size())
      refuse(errc::malformed, misfit);
    auto of_one = numbers.subspan(1, rank);
    numbers = numbers.subspan(1 + rank);
    shape one{std::vector<int64_t>{of_one.begin(), of_one.end()}};
    auto end = begin + one.element_count();
    auto is_negative = [](int64_t extent) { return extent < 0; };
    if (std::ranges::any_of(of_one, is_negative) || end < begin || end > flat.extents()[0])
      refuse(errc::malformed, misfit);
    parts.push_back(flat.slice(begin, end).reshape(one));
    begin = end;
  }
  return parts;
}

} // namespace

std::string process_exchange::name(std::string_view of) const {
  return of.empty() ? what_ : fmt::format("{} of {}", what_, of);
}

tensor process_exchange::note_or_take(collective_kind kind, std::span<const tensor> contributions,
                                      std::string_view of, double divisor) {
  if (!is_noting_) {
    TROUPE_ASSERT(taken_ < results_.size(), taken_, results_.size());
    return results_[taken_++];
  }
  std::ranges::for_each(contributions, [](const tensor& one) { check_row_major(one); });
  collective_call call{.kind = kind, .name = name(of)};
  for (const auto& contribution : contributions)
    call.contributions.push_back(contribution.contiguous());
  note(std::move(call), divisor);
  return contributions.front();
}

void process_exchange::note(collective_call call, double divisor) {
  calls_.push_back(std::move(call));
  divisors_.push_back(divisor);
}

tensor process_exchange::sum(std::span<const tensor> contributions, std::string_view of,
                             double divisor) {
  if (is_noting_) check_alike(contributions, group_.first_replica());
  return note_or_take(collective_kind::all_reduce, contributions, of, divisor);
}

tensor process_exchange::gather(std::span<const tensor> parts, std::string_view of) {
  return note_or_take(collective_kind::all_gather, parts, of);
}

tensor process_exchange::broadcast(const tensor& value, std::string_view of) {
  return note_or_take(collective_kind::broadcast, {&value, 1}, of);
}

// Whoever spreads a value is done when it has sent it, and hears of others that differ by what they
// say at the barrier: nobody waits to say it.
tensor process_exchange::broadcast_to_all(const tensor& value, std::string_view of) {
  auto result = broadcast(value, of);
  if (is_noting_)
    note({.kind = collective_kind::barrier,
          .name = fmt::format("{} of {} {}", name(of), to_string(value.type()),
                              to_string(value.extents()))});
  else
    ++taken_;
  return result;
}

void process_exchange::settle(std::vector<tensor> results) {
  TROUPE_ASSERT(results.size() == calls_.size(), results.size(), calls_.size());
  results_ = std::move(results);
  is_noting_ = false;
}

tensor reduce_arrays(reduce_op op, std::span<const tensor> components, process_exchange* exchange,
                     std::string_view of) {
  if (exchange == nullptr) return reduce_arrays(op, components);
  if (components.empty()) refuse(errc::invalid_argument, "there is no value to reduce");
  if (is_narrow(components.front().type())) {
    if (exchange->is_noting()) check_alike(components, exchange->group().first_replica());
    return reduce_narrow(op, components, *exchange, of);
  }
  auto all = static_cast<double>(components.size()) * exchange->group().size;
  auto divisor = op == reduce_op::mean ? all : 1;
  auto sum = exchange->sum(components, of, divisor);
  if (divisor == 1 || exchange->is_noting() || is_on_device(sum)) return sum;
  return divided_sum({&sum, 1}, divisor);
}

gradient reduce_components(reduce_op op, std::span<const gradient> components,
                           process_exchange* exchange, std::string_view of) {
  if (exchange == nullptr) return reduce_components(op, components);
  if (are_sparse(components)) return reduce_rows(op, components, *exchange, of);
  std::vector<tensor> dense;
  for (const auto& component : components)
    dense.push_back(std::get<tensor>(component));
  return reduce_arrays(op, dense, exchange, of);
}

// Parts may differ along `axis`, so each comes with its extents. What does not fit together is
// found by everybody alike.
tensor gather_components(std::span<const tensor> components, int64_t axis,
                         process_exchange* exchange) {
  if (exchange == nullptr) return cross_device_ops::gather(components, axis);
  std::vector<tensor> flat;
  std::vector<tensor> extents;
  for (const auto& component : components) {
    extents.push_back(extents_of(component));
    flat.push_back(
      component.contiguous().reshape({static_cast<int64_t>(component.element_count())}));
  }
  if (exchange->is_noting()) {
    auto like = [&](const tensor& other) {
      return other.rank() == components.front().rank() && other.type() == components.front().type();
    };
    if (!std::ranges::all_of(components, like))
      return cross_device_ops::gather(components, axis); // refuses them
  }
  auto all_extents = exchange->gather(extents, "extents");
  auto all = exchange->gather(flat, fmt::format("axis {}", axis));
  if (exchange->is_noting()) return components.front();
  return cross_device_ops::gather(split(all, all_extents), axis);
}

} // namespace troupe
