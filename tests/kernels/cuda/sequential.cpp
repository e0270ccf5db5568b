// SPDX-License-Identifier: Apache-2.0
// The cpu twins' loops on one thread, in place of oneTBB's: so that the GPU tests need nothing but
// CUDA, and compare with the cpu twins all the same.
#include "kernels/tensor/parallel.hpp"

#include <algorithm>

namespace troupe::cpu::detail {

namespace {

sum_pair sum_in_halves(size_t begin, size_t end, size_t count, const void* body,
                       sum_pair (*call)(const void* body, size_t begin, size_t end)) {
  if (begin == end) return {};
  if (end - begin == 1)
    return call(body, begin * sum_chunk_elements, std::min(count, end * sum_chunk_elements));
  size_t middle = begin + (end - begin) / 2;
  auto first = sum_in_halves(begin, middle, count, body, call);
  auto second = sum_in_halves(middle, end, count, body, call);
  return {first[0] + second[0], first[1] + second[1]};
}

size_t chunks_of(size_t count) {
  return (count + sum_chunk_elements - 1) / sum_chunk_elements;
}

} // namespace

void run_chunks(const context&, size_t count, const void* body,
                void (*call)(const void* body, size_t begin, size_t end)) {
  if (count > 0) call(body, 0, count);
}

sum_pair sums_of_chunks(size_t count, const void* body,
                        sum_pair (*call)(const void* body, size_t begin, size_t end)) {
  return sum_in_halves(0, chunks_of(count), count, body, call);
}

} // namespace troupe::cpu::detail
