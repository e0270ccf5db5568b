// SPDX-License-Identifier: Apache-2.0
// The checks of a gradient's dtype, shape, row numbers and values.
#include "actors/training/gradient_check.hpp"

#include "kernels/math/embedding.hpp"
#include "kernels/math/reduce.hpp"
#include "messages/mapped.hpp"
#include "messages/tensor_message.hpp"

#include <fmt/format.h>
#include <functional>

namespace troupe {

namespace {

using extent_list = ::capnp::List<int64_t>::Reader;

// True if `extents` are those of the variable from dimension `first` on.
bool same_extents(extent_list extents, const shape& variable, uint32_t first) {
  if (extents.size() != variable.rank()) return false;
  for (auto i = first; i < extents.size(); ++i)
    if (extents[i] != variable[i]) return false;
  return true;
}

expected<void> check_type(const variable_form& variable, wire::Tensor::Reader values) {
  auto type = static_cast<dtype>(values.getDtype());
  if (type == variable.type) return {};
  return fail(errc::type_mismatch,
              fmt::format("variable '{}' is {}, its gradient {}", variable.name,
                          to_string(variable.type), to_string(type)));
}

// @param part The words before the extents: "is", "rows are".
expected<void> shape_mismatch(const variable_form& variable, std::string_view part,
                              extent_list extents) {
  return fail(errc::invalid_argument,
              fmt::format("Shape mismatch: variable '{}' has shape {}, its gradient's {} {}",
                          variable.name, to_string(variable.extents), part,
                          to_string(to_shape(extents))));
}

expected<void> check_dense(const variable_form& variable, wire::Tensor::Reader gradient) {
  if (!same_extents(gradient.getShape(), variable.extents, 0))
    return shape_mismatch(variable, "is", gradient.getShape());
  return check_type(variable, gradient);
}

// A gradient of this process comes without a frame, which would have been checked for this.
expected<void> check_row_numbers(const variable_form& variable, wire::Tensor::Reader indices,
                                 int64_t row_count) {
  auto type = static_cast<dtype>(indices.getDtype());
  if (type != dtype::i64)
    return fail(errc::type_mismatch,
                fmt::format("variable '{}': the row numbers of its gradient are {}, not i64",
                            variable.name, to_string(type)));
  auto extents = indices.getShape();
  if (extents.size() != 1)
    return fail(errc::invalid_argument,
                fmt::format("variable '{}': Input indices should be vector but received shape: {}",
                            variable.name, to_string(to_shape(extents))));
  if (extents[0] != row_count)
    return fail(errc::invalid_argument,
                fmt::format("variable '{}': Expected {} non-empty input values, got {}",
                            variable.name, extents[0], row_count));
  return {};
}

expected<void> check_rows(const variable_form& variable, wire::Tensor::Reader indices) {
  auto numbers = read_tensor(indices, nullptr);
  auto rows = numbers.values<int64_t>();
  auto outside = cpu::find_outside({}, rows, variable.extents[0]);
  if (outside == rows.size()) return {};
  return fail(errc::invalid_argument,
              fmt::format("variable '{}': index of slice {} exceeded limits of shape; index is {} "
                          "exceeded {}",
                          variable.name, outside, rows[outside], variable.extents[0]));
}

expected<void> check_sparse(const variable_form& variable, wire::IndexedSlices::Reader gradient) {
  auto dense_shape = gradient.getDenseShape();
  if (variable.extents.rank() == 0)
    return fail(errc::invalid_argument,
                fmt::format("variable '{}' is a scalar, which has no rows; give its gradient as a "
                            "tensor",
                            variable.name));
  if (!same_extents(dense_shape, variable.extents, 0))
    return shape_mismatch(variable, "dense shape is", dense_shape);
  if (!same_extents(gradient.getValues().getShape(), variable.extents, 1))
    return shape_mismatch(variable, "rows are", gradient.getValues().getShape());
  if (auto type = check_type(variable, gradient.getValues()); !type) return type;
  auto row_count = gradient.getValues().getShape()[0];
  if (auto rows = check_row_numbers(variable, gradient.getIndices(), row_count); !rows) return rows;
  return check_rows(variable, gradient.getIndices());
}

} // namespace

shape to_shape(capnp::List<int64_t>::Reader extents) {
  return shape{mapped(extents, std::identity{})};
}

expected<void> check_updatable(const variable_form& variable) {
  if (variable.type == dtype::f32 || variable.type == dtype::f64) return {};
  return fail(errc::type_mismatch,
              fmt::format("variable '{}' is {}; an optimizer updates f32 and f64 only",
                          variable.name, to_string(variable.type)));
}

expected<void> check_gradient(const variable_form& variable, wire::Gradient::Reader gradient) {
  switch (gradient.which()) {
  case wire::Gradient::DENSE:
    return check_dense(variable, gradient.getDense());
  case wire::Gradient::SPARSE:
    return check_sparse(variable, gradient.getSparse());
  case wire::Gradient::NONE:
    break;
  }
  return fail(
    errc::invalid_argument,
    fmt::format("the gradient of variable '{}' is none; push only what the loss depends on",
                variable.name));
}

expected<void> check_finite(const std::string& name, const gradient& gradient) {
  const auto* dense = std::get_if<tensor>(&gradient);
  const auto& values = dense != nullptr ? *dense : std::get<indexed_slices>(gradient).values;
  if (!is_floating(values.type())) return {};
  auto count = cpu::count_non_finite({}, elements{values.contiguous()});
  if (count == 0) return {};
  return fail(errc::invalid_argument,
              fmt::format("variable '{}': {} of the {} numbers of its gradient are not finite",
                          name, count, values.element_count()));
}

} // namespace troupe
