// SPDX-License-Identifier: Apache-2.0
// Keeps oneDNN on the thread that calls it.
#pragma once

// Two functions of OpenMP, as omp.h declares them, which comes with GCC only: oneDNN asks the
// library of GCC how many threads it may use, whichever compiler made this file.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int count);
}

namespace troupe::cpu::detail {

/// One thread of OpenMP, while it lives. OpenMP has this number once for each thread: other
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

} // namespace troupe::cpu::detail
