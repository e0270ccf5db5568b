// SPDX-License-Identifier: Apache-2.0
// The matrix product in plain loops.
#include "kernels/math/matmul.hpp"

namespace troupe::reference {

template <class T>
void matmul(const context&, const matmul_form& form, std::span<const T> a, std::span<const T> b,
            std::span<T> c) {
  auto [rows, columns, inner, transpose_a, transpose_b, alpha, beta, batch, precision] = form;
  detail::check_sizes(form, dtype_of<T>, a.size(), b.size(), c.size());
  for (size_t matrix = 0; matrix < batch; ++matrix) {
    const T* left = a.data() + matrix * rows * inner;
    const T* right = b.data() + matrix * inner * columns;
    for (size_t row = 0; row < rows; ++row)
      for (size_t column = 0; column < columns; ++column) {
        T sum = 0;
        for (size_t i = 0; i < inner; ++i)
          sum
            += rounded(left[transpose_a ? i * rows + row : row * inner + i], precision)
               * rounded(right[transpose_b ? column * inner + i : i * columns + column], precision);
        auto& out = c[(matrix * rows + row) * columns + column];
        auto kept = beta == 0 ? T{0} : static_cast<T>(beta) * out;
        out = static_cast<T>(alpha) * sum + kept;
      }
  }
}

template void matmul(const context&, const matmul_form&, std::span<const float>,
                     std::span<const float>, std::span<float>);
template void matmul(const context&, const matmul_form&, std::span<const double>,
                     std::span<const double>, std::span<double>);

} // namespace troupe::reference
