// SPDX-License-Identifier: Apache-2.0
// Chooses the rows that a device combines, and brings their sums to the host.
#include "strategies/reduce/rows_on_devices.hpp"

#include "actors/world/activity.hpp"
#include "actors/world/compute_device.hpp"
#include "kernels/math/embedding.hpp"
#include "kernels/tensor/gradient_sum.hpp"
#include "strategies/reduce/input_arrays.hpp"
#include "strategies/reduce/on_host.hpp"
#include "strategies/reduce/replica_devices.hpp"

#include <algorithm>
#include <memory>

namespace troupe {

namespace {

// The number of elements in a row of such a table.
size_t width_of(const shape& extents) {
  return static_cast<size_t>(extents.element_count() / extents[0]);
}

// Whether an owner would take the rows: checks all that the kernel does not.
bool fits(const indexed_slices& rows, dtype type, const shape& extents) {
  if (rows.dense_extents != extents || extents.rank() == 0 || extents.element_count() == 0)
    return false;
  if (!widens_to(rows.values.type(), type) || rows.values.rank() != extents.rank()) return false;
  const auto& numbers = rows.indices;
  if (is_on_device(numbers) || numbers.type() != dtype::i64 || numbers.rank() != 1) return false;
  auto dims = extents.dims();
  dims[0] = numbers.extents()[0];
  if (rows.values.extents() != shape{dims} || !numbers.is_contiguous()) return false;
  auto indices = numbers.values<int64_t>();
  return cpu::find_outside({}, indices, extents[0]) == indices.size();
}

bool is_for_a_device(const replica_rows& inputs) {
  if (inputs.type != dtype::f32 && inputs.type != dtype::f64) return false;
  auto is_there = false;
  for (const auto& component : inputs.components) {
    const auto* rows = std::get_if<indexed_slices>(&component);
    if (rows == nullptr || !fits(*rows, inputs.type, inputs.extents)) return false;
    check_row_major(rows->values);
    is_there |= is_on_device(rows->values);
  }
  return is_there;
}

indexed_slices combined(compute_stream& stream, const replica_rows& inputs) {
  std::vector<tensor> there;
  std::vector<row_source> sources;
  for (const auto& component : inputs.components) {
    const auto& rows = std::get<indexed_slices>(component);
    if (rows.values.element_count() == 0) continue;
    there.push_back(value_or_throw(stream.to_device(rows.values)));
    sources.emplace_back(rows.indices.values<int64_t>(), elements{there.back()});
  }
  std::vector<row_entry> entries(2 * row_count(sources));
  std::vector<size_t> starts(row_count(sources) + 1);
  auto order = order_rows(sources, entries, starts);
  auto dims = inputs.extents.dims();
  dims[0] = static_cast<int64_t>(order.distinct());
  indexed_slices result{{dtype::i64, {dims[0]}}, {inputs.type, shape{dims}}, inputs.extents};
  if (dims[0] == 0) return result;
  auto numbers = result.indices.mutable_values<int64_t>();
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = order.index(i);
  const sparse_sum sum{.sources = sources, .order = order, .width = width_of(inputs.extents)};
  auto rows = value_or_throw(stream.combine(sum, inputs.type));
  result.values = value_or_throw(stream.to_host(rows)).reshape(shape{dims});
  return result;
}

} // namespace

task<void> combine_rows_on_devices(activity& host, const replica_devices& devices,
                                   std::vector<replica_rows>& rows) {
  auto gpu = devices.any_gpu();
  std::vector<replica_rows*> chosen;
  for (auto& of_variable : rows)
    if (gpu && is_for_a_device(of_variable)) chosen.push_back(&of_variable);
  if (chosen.empty()) co_return;
  auto inputs = std::make_shared<std::vector<replica_rows>>();
  for (const auto* of_variable : chosen)
    inputs->push_back(*of_variable);
  auto results = std::make_shared<std::vector<gradient>>();
  auto work = [inputs, results](compute_stream& stream) {
    for (const auto& of_variable : *inputs)
      results->push_back(combined(stream, of_variable));
  };
  auto stream = *devices.at(*gpu);
  auto combining = host.offload_to(stream, "sums of rows", std::move(work));
  co_await combining;
  for (size_t i = 0; i < chosen.size(); ++i)
    chosen[i]->components = {(*results)[i]};
}

} // namespace troupe
