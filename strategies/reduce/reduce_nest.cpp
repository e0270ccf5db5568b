// SPDX-License-Identifier: Apache-2.0
// Reducing arrays over replicas and dimensions.
#include "strategies/reduce/reduce_nest.hpp"

#include "kernels/tensor/change.hpp"
#include "kernels/tensor/elements.hpp"
#include "messages/failure.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

namespace {

[[noreturn]] void refuse(std::string line) {
  throw failure{{errc::invalid_argument, std::move(line)}};
}

// Which dimensions are summed over.
std::vector<bool> summed(const std::vector<int64_t>& axes, size_t rank) {
  std::vector<bool> result(rank);
  for (auto axis : axes) {
    auto count = static_cast<int64_t>(rank);
    if (axis < -count || axis >= count)
      refuse(fmt::format("`axis` = {} out of range for `value` with rank {}", axis, rank));
    result[static_cast<size_t>(axis < 0 ? axis + count : axis)] = true;
  }
  return result;
}

/// An array summed over some dimensions, and how many elements each sum is of.
struct partial_sum {
  tensor sum; ///< f64 or i64, so that no replica's share is rounded before it is added.
  int64_t count = 1;
};

// Where the elements of an array are added, in their order: without their summed dimensions.
template <class Add>
void visit_places(const shape& extents, const std::vector<bool>& is_summed, const Add& add) {
  std::vector<int64_t> at(extents.rank());
  auto count = static_cast<size_t>(extents.element_count());
  for (size_t i = 0; i < count; ++i) {
    size_t place = 0;
    for (size_t dim = 0; dim < at.size(); ++dim)
      if (!is_summed[dim])
        place = place * static_cast<size_t>(extents[dim]) + static_cast<size_t>(at[dim]);
    add(i, place);
    for (auto dim = at.size(); dim-- > 0 && ++at[dim] == extents[dim];)
      at[dim] = 0;
  }
}

partial_sum sum_over(const tensor& value, const std::vector<int64_t>& axes) {
  auto is_summed = summed(axes, value.rank());
  std::vector<int64_t> kept;
  partial_sum result;
  for (size_t i = 0; i < value.rank(); ++i)
    if (is_summed[i])
      result.count *= value.extents()[i];
    else
      kept.push_back(value.extents()[i]);
  auto from = value.contiguous();
  auto add_all = [&]<class T, class Sum>(T, Sum) {
    result.sum = zeros(shape{kept}, dtype_of<Sum>);
    auto to = result.sum.mutable_values<Sum>();
    auto numbers = from.values<T>();
    visit_places(value.extents(), is_summed, [&](size_t i, size_t place) {
      if constexpr (std::is_integral_v<T>)
        to[place] += numbers[i];
      else
        to[place] += widen<double>(numbers[i]);
    });
  };
  if (value.type() == dtype::i32)
    add_all(int32_t{}, int64_t{});
  else if (value.type() == dtype::i64)
    add_all(int64_t{}, int64_t{});
  else if (is_floating(value.type()))
    visit_floating(value.type(), [&]<class T>(T like) { add_all(like, double{}); });
  return result;
}

template <class To, class From>
tensor cast_elements(const tensor& from) {
  tensor result{dtype_of<To>, from.extents()};
  std::ranges::transform(from.values<From>(), result.mutable_values<To>().begin(), [](From number) {
    if constexpr (std::is_integral_v<From>)
      return static_cast<To>(number);
    else
      return narrow<To>(number);
  });
  return result;
}

// A sum in the dtype of what was summed.
tensor narrowed(const tensor& sum, dtype type) {
  if (type == dtype::i32) return cast_elements<int32_t, int64_t>(sum);
  if (type == dtype::i64) return sum;
  tensor result;
  if (is_floating(type))
    visit_floating(type, [&]<class T>(T) { result = cast_elements<T, double>(sum); });
  return result;
}

tensor reduce_over_axes(reduce_op op, std::span<const tensor> values,
                        const std::vector<int64_t>& axes, process_exchange* exchange) {
  if (values.empty()) refuse("there is no value to reduce");
  std::vector<tensor> sums;
  std::vector<int64_t> counts;
  for (const auto& value : values) {
    auto part = sum_over(value, axes);
    sums.push_back(part.sum);
    counts.push_back(part.count);
  }
  auto sum = reduce_arrays(reduce_op::sum, sums, exchange);
  auto count = sum_integers(counts, {.exchange = exchange});
  auto type = values.front().type();
  if (op == reduce_op::sum) return narrowed(sum, type);
  if (!is_floating(type)) sum = cast_elements<double, int64_t>(sum);
  auto divisor = filled(dtype::f64, sum.extents(), static_cast<double>(count));
  auto mean = changed(sum, change::divide, divisor).value();
  return is_floating(type) ? narrowed(mean, type) : mean;
}

} // namespace

void refuse_replica(size_t replica, size_t count) {
  if (replica == no_replica)
    refuse(
      fmt::format("a value of {} replicas was given to an update that all of them share, which "
                  "needs one value for all; reduce it first",
                  count));
  refuse(fmt::format("replica {} has no part of a value of {} replicas; a value goes only to the "
                     "strategy that it was made for",
                     replica, count));
}

void refuse_structures(size_t replica, const std::string& its, const std::string& first) {
  refuse(fmt::format("replica {} has {}, replica 0 has {}; the values of all replicas must have "
                     "one structure",
                     replica, its, first));
}

variable nest<variable>::regroup(std::vector<variable> values) {
  for (size_t i = 1; i < values.size(); ++i)
    if (values[i] != values[0])
      refuse(fmt::format("replica {} brings variable '{}', replica 0 '{}'; all have to bring the "
                         "same one",
                         i, values[i].name(), values[0].name()));
  return values.front();
}

void refuse_sum_of_one(uint32_t replicas) {
  refuse(fmt::format("A non-DistributedValues value cannot be reduced with the given reduce op "
                     "ReduceOp.SUM: it is one value for all {} replicas, and would be counted {} "
                     "times; reduce its MEAN, or give each replica its own",
                     replicas, replicas));
}

bool is_zero_scalar(const tensor& value) {
  if (value.element_count() != 1) return false;
  std::span bytes{static_cast<const std::byte*>(value.data()), value.bytes()};
  return std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{}; });
}

tensor reduce_tensors(reduce_op op, std::span<const tensor> values, const reduce_scope& over) {
  if (over.axes) return reduce_over_axes(op, values, *over.axes, over.exchange);
  return reduce_arrays(op, values, over.exchange);
}

tensor reduce_one_for_all(reduce_op op, const tensor& value, const reduce_scope& over,
                          uint32_t replicas) {
  auto reduced = over.axes ? reduce_over_axes(op, {&value, 1}, *over.axes, nullptr) : value;
  if (op == reduce_op::sum && replicas > 1 && !is_zero_scalar(value)) refuse_sum_of_one(replicas);
  return reduced;
}

gradient reduce_one_for_all(reduce_op op, const gradient& value, uint32_t replicas) {
  const auto* dense = std::get_if<tensor>(&value);
  auto is_zero = dense != nullptr && is_zero_scalar(*dense);
  if (op == reduce_op::sum && replicas > 1 && !is_zero) refuse_sum_of_one(replicas);
  return value;
}

double reduce_numbers(reduce_op op, std::span<const double> values, bool are_integers,
                      const reduce_scope& over) {
  if (over.axes && !over.axes->empty())
    refuse(fmt::format("`axis` = {} out of range for `value` with rank 0", over.axes->front()));
  if (op == reduce_op::mean && are_integers && !values.empty())
    refuse("the mean of integers is cut; have replicas return a double, or a tensor");
  auto count = static_cast<double>(values.size());
  double sum = 0;
  if (over.exchange != nullptr && !values.empty()) {
    std::vector<tensor> numbers;
    for (auto value : values)
      numbers.push_back(filled(dtype::f64, {}, value));
    sum = over.exchange->sum(numbers).values<double>()[0];
    count *= over.exchange->group().size;
  } else {
    for (auto value : values)
      sum += value;
  }
  return op == reduce_op::sum || values.empty() ? sum : sum / count;
}

// Every process has one: as many contributions as there are processes.
tensor reduce_nest(reduce_op op, const tensor& value, const reduce_scope& over, uint32_t replicas) {
  if (over.exchange != nullptr) return reduce_tensors(op, {&value, 1}, over);
  return reduce_one_for_all(op, value, over, replicas);
}

int64_t sum_integers(std::span<const int64_t> values, const reduce_scope& over) {
  uint64_t sum = 0;
  if (over.exchange == nullptr) {
    for (auto value : values)
      sum += static_cast<uint64_t>(value);
    return static_cast<int64_t>(sum);
  }
  std::vector<tensor> numbers;
  for (auto value : values) {
    auto number = zeros({}, dtype::i64);
    number.mutable_values<int64_t>()[0] = value;
    numbers.push_back(std::move(number));
  }
  return over.exchange->sum(numbers).values<int64_t>()[0];
}

tensor reduce_nest(reduce_op op, const distributed_value<tensor>& value, const reduce_scope& over,
                   uint32_t replicas) {
  if (is_one_for_all(value, over)) return reduce_one_for_all(op, value.primary(), over, replicas);
  return reduce_tensors(op, value.local_results(), over);
}

gradient reduce_nest(reduce_op op, const distributed_value<gradient>& value,
                     const reduce_scope& over, uint32_t replicas) {
  if (over.axes) refuse("a gradient is reduced as a whole; leave out the axis");
  if (is_one_for_all(value, over)) return reduce_one_for_all(op, value.primary(), replicas);
  return reduce_components(op, value.local_results(), over.exchange);
}

indexed_slices reduce_nest(reduce_op op, const distributed_value<indexed_slices>& value,
                           const reduce_scope& over, uint32_t replicas) {
  return std::get<indexed_slices>(reduce_nest(op, as_gradients(value), over, replicas));
}

} // namespace troupe
