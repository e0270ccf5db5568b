// SPDX-License-Identifier: Apache-2.0
// Reduces arrays over replicas and dimensions; rows and numbers over replicas.
#include "strategies/reduce/reduce_leaves.hpp"

#include "kernels/tensor/change.hpp"
#include "kernels/tensor/elements.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "strategies/reduce/on_host.hpp"

#include <algorithm>

namespace troupe {

namespace {

// Which dimensions are summed over.
std::vector<bool> summed(const std::vector<int64_t>& axes, size_t rank) {
  std::vector<bool> result(rank);
  for (auto axis : axes) {
    auto count = static_cast<int64_t>(rank);
    if (axis < -count || axis >= count)
      throw_failure(errc::invalid_argument, "`axis` = {} out of range for `value` with rank {}",
                    axis, rank);
    auto dimension = static_cast<size_t>(axis < 0 ? axis + count : axis);
    if (result[dimension])
      throw_failure(errc::invalid_argument, "dimension {} is among the axes of a reduction twice",
                    dimension);
    result[dimension] = true;
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
      if constexpr (std::is_integral_v<T>) // wraps around, as other sums of integers
        to[place]
          = static_cast<Sum>(static_cast<uint64_t>(to[place]) + static_cast<uint64_t>(numbers[i]));
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

// A sum in the dtype of its arrays.
tensor narrowed(const tensor& sum, dtype type) {
  if (type == dtype::i32) return cast_elements<int32_t, int64_t>(sum);
  if (type == dtype::i64) return sum;
  tensor result;
  if (is_floating(type))
    visit_floating(type, [&]<class T>(T) { result = cast_elements<T, double>(sum); });
  return result;
}

tensor number(int64_t value) {
  auto result = zeros({}, dtype::i64);
  result.mutable_values<int64_t>()[0] = value;
  return result;
}

// The replica of the first value that this process brings.
uint32_t first_replica_of(const reduce_scope& scope) {
  return scope.exchange == nullptr ? 0 : scope.exchange->group().first_replica();
}

// Each replica's sums are added in wide numbers, and narrowed once.
pending<tensor> reduce_over_axes(reduce_op op, std::span<const tensor> values,
                                 const reduce_scope& scope) {
  auto first = first_replica_of(scope);
  for (size_t i = 1; i < values.size(); ++i)
    check_same_type(values[i], first + i, values[0], first);
  std::vector<tensor> sums;
  std::vector<tensor> counts;
  for (const auto& value : values) {
    auto part = sum_over(value, *scope.axes);
    sums.push_back(part.sum);
    counts.push_back(number(part.count));
  }
  auto sum = reduce_arrays(reduce_op::sum, sums, scope.exchange);
  auto count = reduce_arrays(reduce_op::sum, counts, scope.exchange);
  return [op, type = values.front().type(), sum, count] {
    auto total = sum();
    if (op == reduce_op::sum) return narrowed(total, type);
    if (!is_floating(type)) total = cast_elements<double, int64_t>(total);
    auto all = static_cast<double>(count().values<int64_t>()[0]);
    auto mean = changed(total, change::divide, filled(dtype::f64, total.extents(), all)).value();
    return is_floating(type) ? narrowed(mean, type) : mean;
  };
}

bool is_number(const leaf& value) {
  return std::holds_alternative<double>(value) || std::holds_alternative<int64_t>(value);
}

pending<leaf> reduce_one_for_all(reduce_op op, const leaf& value, const reduce_scope& scope) {
  auto reduced = value;
  if (const auto* dense = std::get_if<tensor>(&value); dense != nullptr && scope.axes)
    reduced = reduce_over_axes(op, {dense, 1}, {.axes = scope.axes})();
  if (op == reduce_op::sum && scope.replicas > 1 && !is_zero(value))
    throw_failure(
      errc::invalid_argument,
      "A non-DistributedValues value cannot be reduced with the given reduce op "
      "ReduceOp.SUM: it is one value for all {} replicas, and would be counted {} times; "
      "reduce its MEAN, or give each replica its own",
      scope.replicas, scope.replicas);
  return [reduced] { return reduced; };
}

// The number of a leaf as an array that holds it.
tensor as_array(const leaf& value) {
  const auto* integer = std::get_if<int64_t>(&value);
  return integer != nullptr ? number(*integer) : filled(dtype::f64, {}, std::get<double>(value));
}

pending<leaf> reduce_numbers(reduce_op op, const std::vector<leaf>& values,
                             const reduce_scope& scope) {
  auto are_integers = std::holds_alternative<int64_t>(values.front());
  if (op == reduce_op::mean && are_integers)
    throw_failure(errc::invalid_argument,
                  "the mean of integers is cut; have replicas return a double, or a tensor");
  auto arrays = mapped(values, as_array);
  return [reduced = reduce_arrays(op, arrays, scope.exchange), are_integers]() -> leaf {
    auto value = reduced();
    if (are_integers) return value.values<int64_t>()[0];
    return value.values<double>()[0];
  };
}

pending<leaf> reduce_leaf(reduce_op op, const leaf_group& group, const reduce_scope& scope) {
  const auto& first = group.parts.front();
  if (scope.axes && group.is_gradient)
    throw_failure(errc::invalid_argument, "a gradient is reduced as a whole; leave out the axis");
  if (scope.axes && !scope.axes->empty() && is_number(first))
    throw_failure(errc::invalid_argument, "`axis` = {} out of range for `value` with rank 0",
                  scope.axes->front());
  // An array that each process has one of is a contribution of each process.
  auto one_for_all
    = group.owner == leaf_owner::caller
        ? scope.exchange == nullptr || is_number(first)
        : group.owner == leaf_owner::all_devices
            && is_one_for_all(group.devices,
                              scope.exchange == nullptr ? nullptr : &scope.exchange->group());
  if (one_for_all) return reduce_one_for_all(op, first, scope);
  if (is_number(first)) return reduce_numbers(op, group.parts, scope);
  if (scope.axes) {
    auto arrays = mapped(group.parts, [](const auto& part) { return std::get<tensor>(part); });
    auto reduced = reduce_over_axes(op, arrays, scope);
    return [reduced]() -> leaf { return reduced(); };
  }
  auto gradients = gradients_in(group);
  static_cast<void>(are_sparse(gradients, first_replica_of(scope))); // refuses some of each kind
  auto reduced = reduce_components(op, gradients, scope.exchange);
  return [reduced] { return as_leaf(reduced()); };
}

} // namespace

bool is_zero(const leaf& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number == 0;
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer == 0;
  const auto* dense = std::get_if<tensor>(&value);
  if (dense == nullptr || dense->element_count() != 1) return false;
  check_on_host(*dense);
  std::span bytes{static_cast<const std::byte*>(dense->data()), dense->bytes()};
  return std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{}; });
}

bool is_one_for_all(size_t devices, const process_group* group) {
  return group == nullptr || group->replicas_each > 1 || devices > 1;
}

pending<std::vector<leaf>> reduce_leaves(reduce_op op, const std::vector<leaf_group>& groups,
                                         const reduce_scope& scope) {
  auto each = mapped(groups, [&](const auto& group) { return reduce_leaf(op, group, scope); });
  return [each = std::move(each)] { return mapped(each, [](const auto& one) { return one(); }); };
}

} // namespace troupe
