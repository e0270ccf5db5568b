// SPDX-License-Identifier: Apache-2.0
// The same all-reduce by MPI, one process for each rank.
//
// mpirun -n RANKS mpi_all_reduce BYTES ROUNDS   rank 0 prints the seconds of each round, each
// rank the processor's seconds of all
#include "benchmarks/processor_time.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <vector>

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  if (count < 3) return EXIT_FAILURE;
  auto elements = std::atoi(arguments[1]) / 4;
  auto rounds = std::atoi(arguments[2]);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<float> own(static_cast<size_t>(elements), 1);
  std::vector<float> sum(own.size());
  auto used = processor_seconds();
  for (int i = 0; i < rounds; ++i) {
    auto begin = std::chrono::steady_clock::now();
    MPI_Allreduce(own.data(), sum.data(), elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (rank == 0) std::printf("%.9f\n", took.count());
  }
  std::printf("processor %.9f\n", processor_seconds() - used);
  MPI_Finalize();
}
