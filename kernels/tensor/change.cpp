// SPDX-License-Identifier: Apache-2.0
// Changes by hand: plain loops, since they are rare beside updates.
#include "kernels/tensor/change.hpp"

#include "kernels/tensor/parallel.hpp"

#include <algorithm>
#include <string>
#include <type_traits>

namespace troupe {

namespace {

/// Calls `visitor` with a value-initialised element of a type that variables have.
template <class Visitor>
auto visit_number(dtype type, const Visitor& visitor) {
  switch (type) {
  case dtype::f64:
    return visitor(double{});
  case dtype::i32:
    return visitor(int32_t{});
  case dtype::i64:
    return visitor(int64_t{});
  default:
    return visitor(float{});
  }
}

bool is_number(dtype type) {
  return type != dtype::f16 && type != dtype::bf16;
}

expected<void> check_types(const tensor& value, const tensor& operand) {
  if (!is_number(value.type()))
    return fail(errc::type_mismatch,
                "a variable of " + std::string{to_string(value.type())} + " cannot be changed");
  if (value.type() != operand.type())
    return fail(errc::type_mismatch, "the variable is " + std::string{to_string(value.type())}
                                       + ", the operand " + std::string{to_string(operand.type())});
  return {};
}

// Integers wrap around where they overflow, as in every tensor library.
template <class T, class Function>
T wrapped(Function function, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using bits = std::make_unsigned_t<T>;
    return static_cast<T>(function(static_cast<bits>(a), static_cast<bits>(b)));
  } else {
    return function(a, b);
  }
}

template <class T>
T quotient(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    if (b == -1) return wrapped([](auto x, auto y) { return x - y; }, T{0}, a);
  return a / b;
}

template <class T>
T combine(change operation, T a, T b) {
  switch (operation) {
  case change::add:
    return wrapped([](auto x, auto y) { return x + y; }, a, b);
  case change::subtract:
    return wrapped([](auto x, auto y) { return x - y; }, a, b);
  case change::multiply:
    return wrapped([](auto x, auto y) { return x * y; }, a, b);
  case change::divide:
    return quotient(a, b);
  case change::minimum:
    return b < a || b != b ? b : a; // a NaN stays
  case change::maximum:
    return b > a || b != b ? b : a;
  default:
    return b;
  }
}

template <class T>
bool divides_by_zero(change operation, std::span<const T> operand) {
  return std::is_integral_v<T> && operation == change::divide
         && std::ranges::count(operand, T{0}) > 0;
}

tl::unexpected<error> division_by_zero() {
  return fail(errc::invalid_argument, "an integer variable cannot be divided by 0");
}

expected<void> check_rows(const tensor& value, const indexed_slices& operand) {
  auto rows = operand.indices.rank() == 1 && operand.indices.type() == dtype::i64;
  auto dims = value.extents().dims();
  if (!rows || dims.empty())
    return fail(errc::invalid_argument,
                "a scatter takes i64 row numbers of shape [rows], and a variable that has rows");
  auto first = dims[0];
  dims[0] = operand.indices.extents()[0];
  if (operand.values.extents() != shape{dims})
    return fail(errc::invalid_argument, "a scatter of " + std::to_string(dims[0]) + " rows takes "
                                          + "values of shape " + to_string(shape{dims})
                                          + ", not of shape "
                                          + to_string(operand.values.extents()));
  for (auto index : operand.indices.contiguous().values<int64_t>())
    if (index < 0 || index >= first)
      return fail(errc::out_of_range, "a scatter into row " + std::to_string(index)
                                        + "; the variable has " + std::to_string(first));
  return {};
}

template <class T>
expected<tensor> change_all(const tensor& value, change operation, const tensor& operand) {
  auto a = value.values<T>();
  auto b = operand.values<T>();
  if (divides_by_zero(operation, b)) return division_by_zero();
  tensor result{value.type(), value.extents()};
  auto out = result.mutable_values<T>();
  cpu::parallel_chunks({}, out.size(), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      out[i] = combine(operation, a[i], b[i]);
  });
  return result;
}

template <class T>
expected<tensor> change_rows(const tensor& value, change operation, const indexed_slices& operand) {
  auto indices = operand.indices.contiguous();
  auto values = operand.values.contiguous();
  auto from = values.values<T>();
  if (divides_by_zero(operation, from)) return division_by_zero();
  auto result = value.clone();
  auto out = result.mutable_values<T>();
  auto rows = indices.values<int64_t>();
  auto width = rows.empty() ? 0 : from.size() / rows.size();
  for (size_t row = 0; row < rows.size(); ++row)
    for (size_t i = 0; i < width; ++i) {
      auto& element = out[static_cast<size_t>(rows[row]) * width + i];
      element = combine(operation, element, from[row * width + i]);
    }
  return result;
}

} // namespace

std::string_view name_of_assign(change operation) {
  constexpr std::string_view names[change_count] = {
    "assign", "assign_add", "assign_sub", "assign_mul", "assign_div", "assign_min", "assign_max"};
  return names[static_cast<size_t>(operation)];
}

std::string_view name_of_scatter(change operation) {
  constexpr std::string_view names[change_count]
    = {"scatter_update", "scatter_add", "scatter_sub", "scatter_mul",
       "scatter_div",    "scatter_min", "scatter_max"};
  return names[static_cast<size_t>(operation)];
}

tensor filled(dtype type, const shape& extents, double value) {
  tensor result{type, extents};
  visit_number(type, [&]<class T>(T) {
    auto out = result.mutable_values<T>();
    cpu::parallel_chunks({}, out.size(), [&](size_t begin, size_t end) {
      std::fill(out.data() + begin, out.data() + end, static_cast<T>(value));
    });
  });
  return result;
}

expected<tensor> changed(const tensor& value, change operation, const tensor& operand) {
  if (auto fit = check_types(value, operand); !fit) return tl::unexpected<error>(fit.error());
  if (value.extents() != operand.extents())
    return fail(errc::invalid_argument, "the variable has shape " + to_string(value.extents())
                                          + ", the operand " + to_string(operand.extents()));
  if (operation == change::assign) return operand.clone();
  return visit_number(value.type(), [&]<class T>(T) {
    return change_all<T>(value, operation, operand.contiguous());
  });
}

expected<tensor> scattered(const tensor& value, change operation, const indexed_slices& operand) {
  if (auto fit = check_types(value, operand.values); !fit)
    return tl::unexpected<error>(fit.error());
  if (auto fit = check_rows(value, operand); !fit) return tl::unexpected<error>(fit.error());
  return visit_number(value.type(),
                      [&]<class T>(T) { return change_rows<T>(value, operation, operand); });
}

} // namespace troupe
