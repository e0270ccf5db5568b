// SPDX-License-Identifier: Apache-2.0
// The checks of TensorFlow's conditional accumulators, in their order and words.
#include "actors/training/accumulator_form.hpp"

#include "actors/training/gradient_check.hpp"
#include "messages/tensor_message.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

constexpr int64_t any_extent = -1;

// Row numbers beyond this, or below its negative, cannot be counted from another origin.
constexpr int64_t row_number_limit = int64_t{1} << 62;

template <class... Arguments>
expected<void> refuse(const accumulator_form& form, fmt::format_string<Arguments...> format,
                      Arguments&&... arguments) {
  return fail(errc::invalid_argument,
              fmt::format("accumulator '{}': {}", form.name,
                          fmt::format(format, std::forward<Arguments>(arguments)...)));
}

bool agrees(int64_t declared, int64_t extent) {
  return declared == any_extent || declared == extent;
}

expected<void> check_type(const accumulator_form& form, wire::Tensor::Reader values) {
  auto type = static_cast<dtype>(values.getDtype());
  if (type == form.type) return {};
  return refuse(form, "expected a gradient of {}, got {}", to_string(form.type), to_string(type));
}

expected<void> check_dense(const accumulator_form& form, wire::Tensor::Reader gradient,
                           const shape* accumulated) {
  if (auto type = check_type(form, gradient); !type) return type;
  auto extents = to_shape(gradient.getShape());
  if (accumulated != nullptr && *accumulated != extents)
    return refuse(form, "Shape mismatch: expected {}, got {}", to_string(*accumulated),
                  to_string(extents));
  if (form.declared && !std::ranges::equal(form.declared->dims(), extents.dims(), agrees))
    return refuse(form, "Shape mismatch: expected {}, got {}", to_string(*form.declared),
                  to_string(extents));
  return {};
}

// ---- sparse ----

// Checks the whole array's shape, as the gradient itself gives it.
expected<void> check_given_shape(const accumulator_form& form, const shape& declared,
                                 const shape& given) {
  if (given.rank() == 0) return {}; // the gradient does not give it
  if (given.rank() < declared.rank())
    return refuse(form, "expected shape rank at least {}, got {}", declared.rank(), given.rank());
  for (size_t i = 0; i < declared.rank(); ++i)
    if (!agrees(declared[i], given[i]))
      return refuse(form, "expected shape dim {} to be {}, got {}", i, declared[i], given[i]);
  return {};
}

expected<void> check_row_numbers(const accumulator_form& form, wire::Tensor::Reader indices,
                                 int64_t rows_max) {
  auto numbers = read_tensor(indices, nullptr);
  auto rows = numbers.values<int64_t>();
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i] >= rows_max || rows[i] <= -row_number_limit)
      return refuse(form, "index of slice {} exceeded limits of shape; index is {} exceeded {}", i,
                    rows[i], rows_max);
  return {};
}

// The first of `values` that differs from `expected`, from the second extent on.
expected<void> check_row_shape(const accumulator_form& form, const shape& expected,
                               const shape& values) {
  for (size_t i = 1; i < expected.rank(); ++i)
    if (!agrees(expected[i], values[i]))
      return refuse(form, "expected values dim {} to be {}, got {}", i, expected[i], values[i]);
  return {};
}

expected<void> check_values(const accumulator_form& form, const shape& declared,
                            const shape& values, const shape* accumulated) {
  if (accumulated == nullptr) {
    if (values.rank() < declared.rank())
      return refuse(form, "expected values rank at least {}, got {}", declared.rank(),
                    values.rank());
    return check_row_shape(form, declared, values);
  }
  if (values.rank() != accumulated->rank())
    return refuse(form, "expected values rank {}, got {}", accumulated->rank(), values.rank());
  return check_row_shape(form, *accumulated, values);
}

expected<void> check_sparse(const accumulator_form& form, wire::IndexedSlices::Reader gradient,
                            const shape* accumulated) {
  if (auto type = check_type(form, gradient.getValues()); !type) return type;
  auto index_type = static_cast<dtype>(gradient.getIndices().getDtype());
  if (index_type != dtype::i64)
    return refuse(form, "expected row numbers of i64, got {}", to_string(index_type));
  auto indices = to_shape(gradient.getIndices().getShape());
  if (indices.rank() != 1)
    return refuse(form, "Input indices should be vector but received shape: {}",
                  to_string(indices));
  auto values = to_shape(gradient.getValues().getShape());
  if (values.rank() == 0) return refuse(form, "Values cannot be 0-dimensional.");
  if (values[0] != indices[0])
    return refuse(form, "Expected {} non-empty input values, got {}", indices[0], values[0]);
  auto declared = form.declared.value_or(shape{});
  if (auto given = check_given_shape(form, declared, to_shape(gradient.getDenseShape())); !given)
    return given;
  auto knows_rows = declared.rank() > 0 && declared[0] != any_extent;
  auto rows_max = knows_rows ? std::min(declared[0], row_number_limit) : row_number_limit;
  if (auto rows = check_row_numbers(form, gradient.getIndices(), rows_max); !rows) return rows;
  return check_values(form, declared, values, accumulated);
}

} // namespace

expected<void> check_gradient(const accumulator_form& form, wire::Gradient::Reader gradient,
                              const shape* accumulated) {
  using layout = accumulator_form::layout;
  if (gradient.isDense() && form.holds == layout::dense)
    return check_dense(form, gradient.getDense(), accumulated);
  if (gradient.isSparse() && form.holds == layout::sparse)
    return check_sparse(form, gradient.getSparse(), accumulated);
  auto kind = [](bool dense, bool sparse) { return dense ? "dense" : sparse ? "sparse" : "none"; };
  return refuse(form, "it collects {} gradients, this one is {}",
                kind(form.holds == layout::dense, true),
                kind(gradient.isDense(), gradient.isSparse()));
}

shape accumulated_shape(wire::Gradient::Reader gradient) {
  return to_shape(gradient.isDense() ? gradient.getDense().getShape()
                                     : gradient.getSparse().getValues().getShape());
}

} // namespace troupe
