// SPDX-License-Identifier: Apache-2.0
// The matrix product: through oneDNN in single precision, which is all it has, else through Eigen.
#include "kernels/math/matmul.hpp"

#include "messages/assert.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <oneapi/dnnl/dnnl.h>

// Two functions of OpenMP, as omp.h declares them, which comes with GCC only: oneDNN asks the
// library of GCC how many threads it may use, whichever compiler made this file.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int count);
}

namespace troupe::cpu {

namespace {

/// Keeps oneDNN on the thread that calls it. OpenMP has this number once for each thread: other
/// threads, and what this one does afterwards, use as many as before.
class one_openmp_thread {
public:
  one_openmp_thread() { omp_set_num_threads(1); }

  ~one_openmp_thread() { omp_set_num_threads(before_); }

  one_openmp_thread(const one_openmp_thread&) = delete;
  one_openmp_thread& operator=(const one_openmp_thread&) = delete;

private:
  int before_ = omp_get_max_threads();
};

template <class T>
void scale(double factor, std::span<T> c) {
  for (auto& value : c)
    value = factor == 0 ? T{0} : static_cast<T>(factor) * value;
}

/// Elements from one stored row to the next.
dnnl_dim_t row_step(bool transposed, size_t rows, size_t columns) {
  return static_cast<dnnl_dim_t>(transposed ? rows : columns);
}

/// @pre No extent is 0.
void multiply(const matmul_form& form, const float* a, const float* b, float* c) {
  one_openmp_thread caller_alone;
  auto status = dnnl_sgemm(
    form.transpose_a ? 'T' : 'N', form.transpose_b ? 'T' : 'N', static_cast<dnnl_dim_t>(form.rows),
    static_cast<dnnl_dim_t>(form.columns), static_cast<dnnl_dim_t>(form.inner),
    static_cast<float>(form.alpha), a, row_step(form.transpose_a, form.rows, form.inner), b,
    row_step(form.transpose_b, form.inner, form.columns), static_cast<float>(form.beta), c,
    row_step(false, form.rows, form.columns));
  TROUPE_ASSERT(status == dnnl_success, static_cast<int>(status), form.rows, form.columns,
                form.inner);
}

using rows_of_doubles = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using columns_of_doubles = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;

/// Calls `function` with the matrix of so many rows and columns that lies at `data`; transposed, it
/// lies there column by column.
template <class Function>
void with_matrix(bool transposed, size_t rows, size_t columns, const double* data,
                 Function function) {
  auto height = static_cast<Eigen::Index>(rows);
  auto width = static_cast<Eigen::Index>(columns);
  if (transposed) return function(Eigen::Map<const columns_of_doubles>{data, height, width});
  function(Eigen::Map<const rows_of_doubles>{data, height, width});
}

/// @pre No extent is 0.
void multiply(const matmul_form& form, const double* a, const double* b, double* c) {
  scale(form.beta, std::span{c, form.rows * form.columns});
  Eigen::Map<rows_of_doubles> result{c, static_cast<Eigen::Index>(form.rows),
                                     static_cast<Eigen::Index>(form.columns)};
  with_matrix(form.transpose_a, form.rows, form.inner, a, [&](const auto& left) {
    with_matrix(form.transpose_b, form.inner, form.columns, b,
                [&](const auto& right) { result.noalias() += form.alpha * left * right; });
  });
}

} // namespace

template <class T>
void matmul(const context&, const matmul_form& form, std::span<const T> a, std::span<const T> b,
            std::span<T> c) {
  auto rows = form.rows, columns = form.columns, inner = form.inner;
  TROUPE_ASSERT(a.size() == rows * inner, a.size(), rows, inner);
  TROUPE_ASSERT(b.size() == inner * columns, b.size(), inner, columns);
  TROUPE_ASSERT(c.size() == rows * columns, c.size(), rows, columns);
  TROUPE_ASSERT(std::max({rows, columns, inner}) <= matmul_extent_max, rows, columns, inner);
  if (c.empty()) return;
  if (inner == 0) return scale(form.beta, c);
  multiply(form, a.data(), b.data(), c.data());
}

template void matmul(const context&, const matmul_form&, std::span<const float>,
                     std::span<const float>, std::span<float>);
template void matmul(const context&, const matmul_form&, std::span<const double>,
                     std::span<const double>, std::span<double>);

std::string_view matmul_instructions() {
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

} // namespace troupe::cpu
