// SPDX-License-Identifier: Apache-2.0
// Adding up dense and sparse gradients outside an update.
#include "actors/training/aggregate.hpp"

#include "kernels/math/cast.hpp"
#include "kernels/math/reduce.hpp"
#include "kernels/math/sparse.hpp"

#include <algorithm>
#include <vector>

namespace troupe {

namespace {

using std::holds_alternative;

dtype type_of(const gradient& one) {
  const auto* dense = std::get_if<tensor>(&one);
  return dense != nullptr ? dense->type() : std::get<indexed_slices>(one).values.type();
}

/// The rows of sparse gradients in order. Kernels count rows from 0, users may count from below.
class sorted_rows {
public:
  explicit sorted_rows(std::span<const gradient> gradients) {
    for (const auto& one : gradients)
      for (auto index : std::get<indexed_slices>(one).indices.values<int64_t>())
        lowest_ = std::min(lowest_, index);
    for (const auto& one : gradients)
      add(std::get<indexed_slices>(one));
    auto rows = row_count(sources_);
    entries_.resize(2 * rows);
    starts_.resize(rows + 1);
    order_ = order_rows(sources_, entries_, starts_);
  }

  [[nodiscard]] sparse_sum sum(size_t width, uint32_t divisor) const {
    return {.sources = sources_,
            .order = order_,
            .width = width,
            .divisor = static_cast<double>(std::max(divisor, 1U)),
            .divides_by_count = divisor == 0};
  }

  /// The distinct row numbers, ascending.
  [[nodiscard]] tensor indices() const {
    tensor result{dtype::i64, {static_cast<int64_t>(order_.distinct())}};
    auto values = result.mutable_values<int64_t>();
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = order_.index(i) + lowest_;
    return result;
  }

private:
  void add(const indexed_slices& slices) {
    auto indices = slices.indices.values<int64_t>();
    auto& shifted = shifted_.emplace_back(indices.begin(), indices.end());
    for (auto& index : shifted)
      index -= lowest_;
    sources_.emplace_back(shifted, elements{slices.values});
  }

  int64_t lowest_ = 0;
  std::vector<std::vector<int64_t>> shifted_;
  std::vector<row_source> sources_;
  std::vector<row_entry> entries_;
  std::vector<size_t> starts_;
  row_order order_;
};

size_t row_width(const shape& values) {
  size_t width = 1;
  for (size_t i = 1; i < values.rank(); ++i)
    width *= static_cast<size_t>(values[i]);
  return width;
}

template <class T>
gradient aggregate_sparse(std::span<const gradient> gradients, uint32_t divisor,
                          const shape& declared) {
  const auto& first = std::get<indexed_slices>(gradients.front()).values;
  sorted_rows rows{gradients};
  indexed_slices result;
  result.indices = rows.indices();
  auto dims = first.extents().dims();
  dims[0] = result.indices.extents()[0];
  tensor values{dtype_of<T>, shape{dims}};
  if (values.element_count() > 0)
    cpu::combine<T>({}, rows.sum(row_width(first.extents()), divisor), values.mutable_values<T>());
  result.values = cast(values, first.type());
  dims[0] = declared.rank() > 0 ? declared[0] : -1;
  result.dense_extents = shape{dims};
  return result;
}

template <class T>
tensor densified(const gradient& sparse, const shape& extents) {
  sorted_rows rows{{&sparse, 1}};
  tensor dense{dtype_of<T>, extents};
  cpu::densify<T>({}, rows.sum(row_width(extents), 1), dense.mutable_values<T>());
  return dense;
}

template <class T>
gradient aggregate_dense(std::span<const gradient> gradients, uint32_t divisor,
                         const shape& declared) {
  std::vector<tensor> all; // keeps what is made dense here alive
  for (const auto& one : gradients)
    all.push_back(holds_alternative<tensor>(one) ? std::get<tensor>(one)
                                                 : densified<T>(one, declared));
  std::vector<elements> sources(all.begin(), all.end());
  tensor sum{dtype_of<T>, all.front().extents()};
  auto count = divisor == 0 ? static_cast<double>(gradients.size()) : divisor;
  cpu::reduce<T>({}, {.sources = sources, .divisor = count}, sum.mutable_values<T>());
  return cast(sum, type_of(gradients.front()));
}

template <class T>
gradient aggregate_as(std::span<const gradient> gradients, uint32_t divisor,
                      const shape& declared) {
  auto is_sparse = [](const gradient& one) { return holds_alternative<indexed_slices>(one); };
  return std::ranges::all_of(gradients, is_sparse)
           ? aggregate_sparse<T>(gradients, divisor, declared)
           : aggregate_dense<T>(gradients, divisor, declared);
}

} // namespace

gradient aggregate(std::span<const gradient> gradients, uint32_t divisor, const shape& declared) {
  return type_of(gradients.front()) == dtype::f64
           ? aggregate_as<double>(gradients, divisor, declared)
           : aggregate_as<float>(gradients, divisor, declared);
}

} // namespace troupe
