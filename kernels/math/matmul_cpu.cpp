// SPDX-License-Identifier: Apache-2.0
// The matrix product: in single precision through oneDNN where it is fast, else through Eigen.
#include "kernels/math/matmul.hpp"

#include "kernels/math/matmul_blocks.hpp"
#include "kernels/math/one_openmp_thread.hpp"
#include "kernels/tensor/parallel.hpp"
#include "messages/errors/assert.hpp"

#include <Eigen/Core>
#include <oneapi/dnnl/dnnl.h>

namespace troupe::cpu {

namespace {

// For x86-64 oneDNN makes code for the processor that it finds. For 64-bit ARM Debian's has plain
// loops that store each sum after each addition; Eigen's keep their sums in NEON's registers.
#if defined(__x86_64__)
constexpr bool floats_by_onednn = true;
#else
constexpr bool floats_by_onednn = false;
#endif

template <class T>
void scale(double factor, std::span<T> c) {
  for (auto& value : c)
    value = factor == 0 ? T{0} : static_cast<T>(factor) * value;
}

template <class T, int Order>
using dense_matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Order>;

/// Calls `function` with the matrix of so many rows and columns at `block`; transposed, it lies
/// there column by column.
template <class T, class Function>
void with_matrix(bool transposed, size_t rows, size_t columns, detail::matrix_block<const T> block,
                 Function function) {
  auto height = static_cast<Eigen::Index>(rows);
  auto width = static_cast<Eigen::Index>(columns);
  Eigen::OuterStride<> step{static_cast<Eigen::Index>(block.row_step)};
  using in_columns = Eigen::Map<const dense_matrix<T, Eigen::ColMajor>, 0, Eigen::OuterStride<>>;
  using in_rows = Eigen::Map<const dense_matrix<T, Eigen::RowMajor>, 0, Eigen::OuterStride<>>;
  if (transposed) return function(in_columns{block.data, height, width, step});
  function(in_rows{block.data, height, width, step});
}

template <class T>
void multiply_by_eigen(const matmul_form& form, detail::matrix_block<const T> a,
                       detail::matrix_block<const T> b, detail::matrix_block<T> c) {
  for (size_t row = 0; row < form.rows; ++row)
    scale(form.beta, std::span{c.data + row * c.row_step, form.columns});
  Eigen::Map<dense_matrix<T, Eigen::RowMajor>, 0, Eigen::OuterStride<>> result{
    c.data, static_cast<Eigen::Index>(form.rows), static_cast<Eigen::Index>(form.columns),
    Eigen::OuterStride<>{static_cast<Eigen::Index>(c.row_step)}};
  with_matrix(form.transpose_a, form.rows, form.inner, a, [&](const auto& left) {
    with_matrix(form.transpose_b, form.inner, form.columns, b, [&](const auto& right) {
      result.noalias() += static_cast<T>(form.alpha) * left * right;
    });
  });
}

void multiply_by_onednn(const matmul_form& form, detail::matrix_block<const float> a,
                        detail::matrix_block<const float> b, detail::matrix_block<float> c) {
  detail::one_openmp_thread caller_alone;
  auto status
    = dnnl_sgemm(form.transpose_a ? 'T' : 'N', form.transpose_b ? 'T' : 'N',
                 static_cast<dnnl_dim_t>(form.rows), static_cast<dnnl_dim_t>(form.columns),
                 static_cast<dnnl_dim_t>(form.inner), static_cast<float>(form.alpha), a.data,
                 static_cast<dnnl_dim_t>(a.row_step), b.data, static_cast<dnnl_dim_t>(b.row_step),
                 static_cast<float>(form.beta), c.data, static_cast<dnnl_dim_t>(c.row_step));
  TROUPE_ASSERT(status == dnnl_success, static_cast<int>(status), form.rows, form.columns,
                form.inner);
}

/// A whole matrix, row after row.
template <class T>
detail::matrix_block<T> whole(T* data, bool transposed, size_t rows, size_t columns) {
  return {data, transposed ? rows : columns};
}

/// Numbers of instruction sets are those of x86-64 here: oneDNN has the same ones for ARM's.
std::string_view onednn_instructions() {
  switch (dnnl_get_effective_cpu_isa()) {
  case dnnl_cpu_isa_sse41:
    return "SSE4.1";
  case dnnl_cpu_isa_avx:
    return "AVX";
  case dnnl_cpu_isa_avx2:
    return "AVX2";
  case dnnl_cpu_isa_avx2_vnni:
    return "AVX2 with VNNI";
  case dnnl_cpu_isa_avx512_mic:
  case dnnl_cpu_isa_avx512_mic_4ops:
    return "AVX-512 of Xeon Phi";
  case dnnl_cpu_isa_avx512_core:
    return "AVX-512";
  case dnnl_cpu_isa_avx512_core_vnni:
    return "AVX-512 with VNNI";
  case dnnl_cpu_isa_avx512_core_bf16:
    return "AVX-512 with BF16";
  case dnnl_cpu_isa_avx512_core_amx:
    return "AVX-512 with AMX";
  default:
    return "no vectors";
  }
}

template <class T>
void round_all(std::span<const T> values, product_precision precision, T* to) {
  with_widest_vectors([values, precision, to] {
    for (size_t i = 0; i < values.size(); ++i)
      to[i] = rounded(values[i], precision);
  });
}

} // namespace

void detail::round_operands(std::span<const float> values, product_precision precision, float* to) {
  round_all(values, precision, to);
}

void detail::round_operands(std::span<const double> values, product_precision precision,
                            double* to) {
  round_all(values, precision, to);
}

void detail::multiply(const matmul_form& form, matrix_block<const float> a,
                      matrix_block<const float> b, matrix_block<float> c) {
  if constexpr (floats_by_onednn)
    multiply_by_onednn(form, a, b, c);
  else
    multiply_by_eigen(form, a, b, c);
}

void detail::multiply(const matmul_form& form, matrix_block<const double> a,
                      matrix_block<const double> b, matrix_block<double> c) {
  multiply_by_eigen(form, a, b, c);
}

template <class T>
void matmul(const context&, const matmul_form& form, std::span<const T> a, std::span<const T> b,
            std::span<T> c) {
  troupe::detail::check_sizes(form, dtype_of<T>, a.size(), b.size(), c.size());
  auto rows = form.rows, columns = form.columns, inner = form.inner;
  if (c.empty()) return;
  if (inner == 0) return scale(form.beta, c);
  auto single = form;
  single.batch = 1;
  const detail::operand<T> left{a, form.precision}, right{b, form.precision};
  for (size_t i = 0; i < form.batch; ++i)
    detail::multiply(single, whole(left.at(i * rows * inner), form.transpose_a, rows, inner),
                     whole(right.at(i * inner * columns), form.transpose_b, inner, columns),
                     whole(c.data() + i * rows * columns, false, rows, columns));
}

template void matmul(const context&, const matmul_form&, std::span<const float>,
                     std::span<const float>, std::span<float>);
template void matmul(const context&, const matmul_form&, std::span<const double>,
                     std::span<const double>, std::span<double>);

std::string_view matmul_library() {
  return floats_by_onednn ? "oneDNN" : "Eigen";
}

std::string_view matmul_instructions() {
  return floats_by_onednn ? onednn_instructions() : Eigen::SimdInstructionSetsInUse();
}

} // namespace troupe::cpu
