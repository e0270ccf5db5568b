// SPDX-License-Identifier: Apache-2.0
// The function of BLAS that libtorch calls for products of f32, by ours.
#include "strategies/torch/torch_products.hpp"

#include "kernels/math/matmul.hpp"
#include "kernels/math/matmul_blocks.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <algorithm>
#include <dlfcn.h>
#include <fmt/format.h>

namespace {

using troupe::cpu::detail::matrix_block;

bool is_transposed(char operation) {
  return operation != 'N' && operation != 'n';
}

size_t size_of(int extent) {
  return static_cast<size_t>(std::max(extent, 0));
}

void scale(matrix_block<float> c, size_t rows, size_t columns, float factor) {
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column) {
      auto& value = c.data[row * c.row_step + column];
      value = factor == 0 ? 0 : factor * value;
    }
}

} // namespace

// As in BLAS: matrices lie column by column, so that here all three are transposed, and the factors
// change places. Weak: a program that links a BLAS of its own into itself keeps that.
extern "C" [[gnu::weak, gnu::visibility("default")]] void
sgemm_(const char* operation_a, const char* operation_b, const int* rows, const int* columns,
       const int* inner, const float* alpha, const float* a, const int* step_a, const float* b,
       const int* step_b, const float* beta, float* c, const int* step_c) {
  matrix_block<float> result{c, size_of(*step_c)};
  if (*rows <= 0 || *columns <= 0) return;
  if (*inner <= 0 || *alpha == 0) return scale(result, size_of(*columns), size_of(*rows), *beta);
  troupe::matmul_form form{.rows = size_of(*columns),
                           .columns = size_of(*rows),
                           .inner = size_of(*inner),
                           .transpose_a = is_transposed(*operation_b),
                           .transpose_b = is_transposed(*operation_a),
                           .alpha = *alpha,
                           .beta = *beta};
  troupe::cpu::detail::multiply(form, matrix_block<const float>{b, size_of(*step_b)},
                                matrix_block<const float>{a, size_of(*step_a)}, result);
}

namespace troupe {

std::string torch_products() {
  if (at::hasMKL()) return "MKL";
  auto* called = ::dlsym(RTLD_DEFAULT, "sgemm_");
  if (called != reinterpret_cast<void*>(&sgemm_)) return "the system's BLAS";
  return fmt::format("{} with {}", cpu::matmul_library(), cpu::matmul_instructions());
}

// For OpenMP, the number of threads is one of each thread, too.
void detail::use_one_thread() {
  if (at::get_num_threads() != 1) at::set_num_threads(1);
}

} // namespace troupe
