// SPDX-License-Identifier: Apache-2.0
// Threads that take the next index until none is left.
#include "simulation/on_threads.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace troupe {

void for_each_on_threads(size_t count, unsigned threads, const std::function<void(size_t)>& body) {
  std::vector<std::exception_ptr> thrown(count);
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (auto index = next++; index < count; index = next++)
      try {
        body(index);
      } catch (...) {
        thrown[index] = std::current_exception();
      }
  };
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < std::min<size_t>(threads, count); ++i)
      others.emplace_back(work);
    work();
  }
  for (const auto& one : thrown)
    if (one) std::rethrow_exception(one);
}

} // namespace troupe
