// SPDX-License-Identifier: Apache-2.0
// The embedding, one row at a time.
#include "kernels/math/embedding.hpp"

#include <algorithm>

namespace troupe::cpu {

size_t find_outside(const context&, std::span<const int64_t> indices, int64_t limit) {
  // A negative index becomes a huge unsigned one, so that one comparison answers for both ends.
  auto end = static_cast<uint64_t>(std::max<int64_t>(limit, 0));
  auto outside = [end](int64_t index) { return static_cast<uint64_t>(index) >= end; };
  auto found = std::find_if(indices.begin(), indices.end(), outside);
  return static_cast<size_t>(found - indices.begin());
}

template <class T>
void embedding(const context&, std::span<const T> table, std::span<const int64_t> indices,
               std::span<T> output) {
  if (indices.empty()) return;
  auto columns = output.size() / indices.size();
  for (size_t row = 0; row < indices.size(); ++row) {
    auto at = troupe::detail::begin_of_row(indices[row], columns, table.size());
    std::copy_n(table.data() + at, columns, output.data() + row * columns);
  }
}

template <class T>
void embedding_gradient(const context&, std::span<const T> output_gradient,
                        std::span<const int64_t> indices, std::span<T> table_gradient) {
  if (indices.empty()) return;
  auto columns = output_gradient.size() / indices.size();
  for (size_t row = 0; row < indices.size(); ++row) {
    auto at = troupe::detail::begin_of_row(indices[row], columns, table_gradient.size());
    const T* from = output_gradient.data() + row * columns;
    T* to = table_gradient.data() + at;
    for (size_t column = 0; column < columns; ++column)
      to[column] += from[column];
  }
}

template void embedding(const context&, std::span<const float>, std::span<const int64_t>,
                        std::span<float>);
template void embedding(const context&, std::span<const double>, std::span<const int64_t>,
                        std::span<double>);
template void embedding_gradient(const context&, std::span<const float>, std::span<const int64_t>,
                                 std::span<float>);
template void embedding_gradient(const context&, std::span<const double>, std::span<const int64_t>,
                                 std::span<double>);

} // namespace troupe::cpu
