// SPDX-License-Identifier: Apache-2.0
// Goal: a shared loop visits everything once, and its chunks depend on sizes alone. Method: marks.
#include "kernels/tensor/parallel.hpp"
#include "tests/doctest.hpp"

#include <algorithm>
#include <mutex>
#include <set>
#include <tbb/global_control.h>
#include <utility>

namespace parallel_test {

using namespace troupe::cpu;

namespace {

/// The chunks in which a loop is shared.
std::set<std::pair<size_t, size_t>> chunks_of(size_t count, size_t grain) {
  std::mutex mutex;
  std::set<std::pair<size_t, size_t>> chunks;
  parallel_chunks({.grain_elements = grain}, count, [&](size_t begin, size_t end) {
    std::lock_guard lock{mutex};
    chunks.emplace(begin, end);
  });
  return chunks;
}

} // namespace

TEST_SUITE("kernels/tensor/parallel") {
  TEST_CASE("chunks cover a range without gaps, and are whole but for the last") {
    for (size_t count : {1, 9, 10, 11, 1000, 1001})
      for (size_t grain : {1, 10, 5000}) {
        size_t at = 0;
        for (auto [begin, end] : chunks_of(count, grain)) {
          CHECK(begin == at);
          CHECK(end == std::min(begin + grain, count));
          at = end;
        }
        CHECK(at == count);
      }
  }

  TEST_CASE("nothing is no chunk, and a grain of 0 counts as 1") {
    CHECK(chunks_of(0, 10).empty());
    CHECK(chunks_of(3, 0).size() == 3);
  }

  TEST_CASE("chunks do not depend on the number of threads") {
    auto expected = chunks_of(100'000, 777);
    for (size_t threads : {1, 3, 8}) {
      tbb::global_control limit{tbb::global_control::max_allowed_parallelism, threads};
      CHECK(chunks_of(100'000, 777) == expected);
    }
  }

  TEST_CASE("a sum counts everything once") {
    for (size_t count : {0, 1, 16384, 16385, 1'000'000}) {
      auto total = parallel_sum(
        count, [](size_t begin, size_t end) { return static_cast<double>(end - begin); });
      CHECK(total == static_cast<double>(count));
    }
  }

  TEST_CASE("a vectorised loop runs once") {
    int runs = 0;
    vectorised([&] { ++runs; });
    CHECK(runs == 1);
  }
}

} // namespace parallel_test
