// SPDX-License-Identifier: Apache-2.0
// Checks the gradients of a batch, and adds them to those of the batches before.
#include "strategies/optimizers/accumulated_batches.hpp"

#include "messages/errors/throw_failure.hpp"
#include "strategies/reduce/cross_device_ops.hpp"

#include <utility>

namespace troupe {

namespace {

const tensor& array_in(const gradient& gradient) {
  const auto* rows = std::get_if<indexed_slices>(&gradient);
  return rows == nullptr ? std::get<tensor>(gradient) : rows->values;
}

void check_shape(const variable& variable, const gradient& gradient) {
  const auto* rows = std::get_if<indexed_slices>(&gradient);
  const auto& extents = rows == nullptr ? array_in(gradient).extents() : rows->dense_extents;
  if (extents != variable.extents())
    throw_failure(errc::invalid_argument,
                  "Shape mismatch: variable '{}' has shape {}, its gradient's {} {}",
                  variable.name(), to_string(variable.extents()),
                  rows == nullptr ? "is" : "dense shape is", to_string(extents));
}

void check_kind(const variable& variable, const gradient& gradient,
                const troupe::gradient& before) {
  if (gradient.index() != before.index())
    throw_failure(errc::type_mismatch,
                  "the gradient of variable '{}' is dense in one batch and sparse in another; all "
                  "batches of an update need gradients of one kind",
                  variable.name());
  auto type = array_in(gradient).type();
  auto type_before = array_in(before).type();
  if (type != type_before)
    throw_failure(errc::type_mismatch,
                  "the gradient of variable '{}' is {} in one batch and {} in the next; all "
                  "batches of an update need gradients of one dtype",
                  variable.name(), to_string(type_before), to_string(type));
}

gradient sum_of(const gradient& first, const gradient& second) {
  const gradient both[] = {first, second};
  return reduce_components(reduce_op::sum, both);
}

} // namespace

accumulated_batches::sums& accumulated_batches::sums_of(const giver& by) {
  std::lock_guard guard{mutex_};
  return by_giver_[by]; // stays where it is
}

std::optional<std::vector<gradient_and_variable>>
accumulated_batches::add(const giver& by, std::vector<gradient_and_variable> gradients,
                         uint64_t failed_runs) {
  if (count_ == 1) return gradients;
  auto& so_far = sums_of(by);
  if (so_far.failed_runs != failed_runs) so_far = {.failed_runs = failed_runs};
  for (const auto& [gradient, variable] : gradients) {
    check_shape(variable, gradient);
    if (const auto* rows = std::get_if<indexed_slices>(&gradient); rows && !are_numbered(*rows))
      refuse_rows(*rows, fmt::format("the gradient of variable '{}'", variable.name()));
    auto found = so_far.positions.find(variable);
    if (found != so_far.positions.end())
      check_kind(variable, gradient, so_far.gradients[found->second].gradient);
  }
  auto is_first = so_far.batches == 0;
  for (auto& [gradient, variable] : gradients) {
    auto [at, is_new] = so_far.positions.emplace(variable, so_far.gradients.size());
    if (is_new || is_first) {
      so_far.gradients.push_back({gradient, variable});
    } else {
      auto& sum = so_far.gradients[at->second].gradient;
      sum = sum_of(sum, gradient);
    }
  }
  if (++so_far.batches < count_) return std::nullopt;
  return std::exchange(so_far, {.failed_runs = failed_runs}).gradients;
}

} // namespace troupe
