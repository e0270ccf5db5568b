// SPDX-License-Identifier: Apache-2.0
// Asks the BLAS library that is loaded for its kernels.
#include "strategies/torch/torch_products.hpp"

#include <ATen/Context.h>
#include <dlfcn.h>
#include <fmt/format.h>

namespace troupe {

namespace {

std::string_view widest_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vl")) return "SkylakeX";
  if (__builtin_cpu_supports("avx2")) return "Haswell";
#endif
  return {};
}

} // namespace

std::string torch_products() {
  if (at::hasMKL()) return "MKL";
  auto* found = ::dlsym(RTLD_DEFAULT, "openblas_get_corename");
  if (found == nullptr) return "the system's BLAS";
  return detail::openblas_products(reinterpret_cast<const char* (*)()>(found)(), widest_kernels());
}

namespace detail {

std::string openblas_products(std::string_view kernels, std::string_view widest) {
  auto text = fmt::format("OpenBLAS, kernels for {}", kernels);
  if (kernels != "Prescott" || widest.empty()) return text;
  return fmt::format("{} (SSE3): it does not know this processor; OPENBLAS_CORETYPE={} in the "
                     "environment is faster",
                     text, widest);
}

} // namespace detail

} // namespace troupe
