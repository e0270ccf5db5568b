// SPDX-License-Identifier: Apache-2.0
// Notes collectives, takes their results, and builds reductions of both.
#include "strategies/reduce/process_exchange.hpp"

#include "actors/gpu/device_communicator.hpp"
#include "kernels/math/cast.hpp"
#include "messages/checks/limits.hpp"
#include "messages/errors/assert.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "strategies/reduce/on_host.hpp"
#include "strategies/reduce/packs.hpp"

#include <algorithm>

namespace troupe {

namespace {

bool is_narrow(dtype type) {
  return type == dtype::f16 || type == dtype::bf16;
}

// 16-bit values are added in f32, and rounded once, when all is done to them.
pending<tensor> reduce_narrow(reduce_op op, std::span<const tensor> components,
                              process_exchange& exchange, std::string_view value_name) {
  check_on_host(components);
  auto wide = mapped(components, [](const auto& component) { return cast(component, dtype::f32); });
  auto type = components.front().type();
  return [reduced = reduce_arrays(op, wide, &exchange, value_name), type] {
    return cast(reduced(), type);
  };
}

// The divisor of a sum to which each process contributes as many arrays as this one.
double divisor_of(reduce_op op, size_t contributions, const process_exchange& exchange) {
  return divisor_of(op, contributions * exchange.group().size);
}

pending<gradient> reduce_rows(reduce_op op, std::span<const gradient> components,
                              process_exchange& exchange, std::string_view value_name) {
  auto here = std::get<indexed_slices>(reduce_components(reduce_op::sum, components));
  auto extents = here.dense_extents.rank() == 0
                   ? std::string{"without dense_extents"}
                   : fmt::format("with dense_extents {}", to_string(here.dense_extents));
  auto rows = fmt::format("rows {}{}{}", extents, value_name.empty() ? "" : ", ", value_name);
  auto indices = exchange.gather({&here.indices, 1}, rows);
  auto values = exchange.gather({&here.values, 1}, rows);
  auto divisor = divisor_of(op, components.size(), exchange);
  return [indices, values, divisor, extents = here.dense_extents]() -> gradient {
    auto all = values();
    if (divisor != 1) all = divided_sum({&all, 1}, divisor);
    return indexed_slices{indices(), all, extents};
  };
}

// The rank, and the extents: the call is the same for all ranks, and shows where they differ.
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
  std::vector<shape> shapes;
  auto numbers = extents.values<int64_t>();
  int64_t elements = 0;
  while (!numbers.empty()) {
    auto rank = static_cast<size_t>(numbers[0]);
    if (numbers[0] < 0 || rank > limits::rank_max || rank >= numbers.size())
      throw_failure(errc::malformed, misfit);
    auto of_one = numbers.subspan(1, rank);
    numbers = numbers.subspan(1 + rank);
    int64_t count = 1;
    for (auto extent : of_one)
      if (extent < 0 || __builtin_mul_overflow(count, extent, &count))
        throw_failure(errc::malformed, misfit);
    if (count > flat.extents()[0] - elements) throw_failure(errc::malformed, misfit);
    shapes.emplace_back(std::vector<int64_t>{of_one.begin(), of_one.end()});
    elements += count;
  }
  if (elements != flat.extents()[0]) throw_failure(errc::malformed, misfit);
  return cut(flat, shapes);
}

} // namespace

process_exchange::process_exchange(const process_group& group, std::string name, uint64_t run_count)
  : group_(group), name_(std::move(name)) {
  if (run_count > 0) run_ = fmt::format(" (run {})", run_count);
}

std::string process_exchange::call_name(std::string_view value_name) const {
  return value_name.empty() ? name_ + run_ : fmt::format("{} of {}{}", name_, value_name, run_);
}

pending<tensor> process_exchange::note(collective_kind kind, std::span<const tensor> contributions,
                                       std::string_view value_name, double divisor) {
  std::ranges::for_each(contributions, [](const tensor& array) { check_row_major(array); });
  collective_call call{.kind = kind, .name = call_name(value_name)};
  call.contributions = mapped(contributions, &tensor::contiguous);
  return note(std::move(call), divisor);
}

pending<tensor> process_exchange::note(collective_call call, double divisor) {
  auto place = calls_.size();
  calls_.push_back(std::move(call));
  divisors_.push_back(divisor);
  return [results = results_, place] {
    TROUPE_ASSERT(place < results->size(), place, results->size());
    return (*results)[place];
  };
}

pending<tensor> process_exchange::sum(std::span<const tensor> contributions,
                                      std::string_view value_name, double divisor) {
  check_alike(contributions, group_.first_replica());
  return note(collective_kind::all_reduce, contributions, value_name, divisor);
}

pending<tensor> process_exchange::gather(std::span<const tensor> parts,
                                         std::string_view value_name) {
  return note(collective_kind::all_gather, parts, value_name);
}

pending<tensor> process_exchange::broadcast(const tensor& value, std::string_view value_name) {
  return note(collective_kind::broadcast, {&value, 1}, value_name);
}

// A process that broadcasts a value is done when it has sent it. The barrier tells it if others
// make another call, and none waits for that.
pending<tensor> process_exchange::broadcast_to_all(const tensor& value,
                                                   std::string_view value_name) {
  auto result = broadcast(value, value_name);
  static_cast<void>(
    note({.kind = collective_kind::barrier,
          .name = fmt::format("{} of {} {}", call_name(value_name), to_string(value.type()),
                              to_string(value.extents()))}));
  return result;
}

void process_exchange::prepare(const communication_options& options) {
  troupe::prepare(calls_, group_, options);
  for (const auto& call : calls_)
    if (!call.on_devices || !is_for_devices(call, group_.size)) check_on_host(call.contributions);
  bytes_per_pack_ = group_.options.merge(options).bytes_per_pack;
}

size_t process_exchange::bytes() const {
  size_t bytes = 0;
  for (const auto& call : calls_)
    for (const auto& contribution : call.contributions)
      bytes += contribution.bytes();
  return bytes;
}

void process_exchange::settle(const packed_calls& packed, const std::vector<tensor>& results) {
  TROUPE_ASSERT(results.size() == packed.members.size(), results.size(), packed.members.size());
  *results_ = unpack(packed, calls_, results);
}

pending<tensor> reduce_arrays(reduce_op op, std::span<const tensor> components,
                              process_exchange* exchange, std::string_view value_name) {
  if (components.empty()) throw_failure(errc::invalid_argument, "there is no value to reduce");
  if (exchange == nullptr)
    return [op, kept = std::vector<tensor>(components.begin(), components.end())] {
      return reduce_arrays(op, kept);
    };
  if (is_narrow(components.front().type())) {
    check_alike(components, exchange->group().first_replica());
    return reduce_narrow(op, components, *exchange, value_name);
  }
  auto divisor = divisor_of(op, components.size(), *exchange);
  return [pending_sum = exchange->sum(components, value_name, divisor), divisor] {
    auto sum = pending_sum();
    return divisor == 1 || is_on_device(sum) ? sum : divided_sum({&sum, 1}, divisor);
  };
}

pending<gradient> reduce_components(reduce_op op, std::span<const gradient> components,
                                    process_exchange* exchange, std::string_view value_name) {
  if (exchange == nullptr)
    return [op, kept = std::vector<gradient>(components.begin(), components.end())] {
      return reduce_components(op, kept);
    };
  if (are_sparse(components, exchange->group().first_replica()))
    return reduce_rows(op, components, *exchange, value_name);
  auto dense = dense_components(components);
  return [reduced = reduce_arrays(op, dense, exchange, value_name)] { return gradient{reduced()}; };
}

// Parts may differ along `axis`, so each comes with its extents. All processes find parts that do
// not fit together, and fail alike.
pending<tensor> gather_components(std::span<const tensor> components, int64_t axis,
                                  process_exchange* exchange) {
  if (exchange == nullptr)
    return [axis, kept = std::vector<tensor>(components.begin(), components.end())] {
      return cross_device_ops::gather(kept, axis);
    };
  auto fits = [&](const tensor& other) {
    return other.rank() == components.front().rank() && other.type() == components.front().type();
  };
  if (!std::ranges::all_of(components, fits))
    static_cast<void>(cross_device_ops::gather(components, axis)); // refuses them
  std::vector<tensor> flat;
  std::vector<tensor> extents;
  for (const auto& component : components) {
    extents.push_back(extents_of(component));
    flat.push_back(
      component.contiguous().reshape({static_cast<int64_t>(component.element_count())}));
  }
  auto all_extents = exchange->gather(extents, "extents");
  auto all = exchange->gather(flat, fmt::format("axis {}", axis));
  return [all, all_extents, axis] {
    return cross_device_ops::gather(split(all(), all_extents()), axis);
  };
}

} // namespace troupe
