// SPDX-License-Identifier: Apache-2.0
// The embedding, one element at a time.
#include "kernels/math/embedding.hpp"

namespace troupe::reference {

size_t find_outside(const context&, std::span<const int64_t> indices, int64_t limit) {
  for (size_t i = 0; i < indices.size(); ++i)
    if (indices[i] < 0 || indices[i] >= limit) return i;
  return indices.size();
}

template <class T>
void embedding(const context&, std::span<const T> table, std::span<const int64_t> indices,
               std::span<T> output) {
  if (indices.empty()) return;
  auto columns = output.size() / indices.size();
  for (size_t i = 0; i < output.size(); ++i) {
    output[i]
      = table[detail::begin_of_row(indices[i / columns], columns, table.size()) + i % columns];
  }
}

template <class T>
void embedding_gradient(const context&, std::span<const T> output_gradient,
                        std::span<const int64_t> indices, std::span<T> table_gradient) {
  if (indices.empty()) return;
  auto columns = output_gradient.size() / indices.size();
  for (size_t i = 0; i < output_gradient.size(); ++i) {
    auto at = detail::begin_of_row(indices[i / columns], columns, table_gradient.size());
    table_gradient[at + i % columns] += output_gradient[i];
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

} // namespace troupe::reference
