// SPDX-License-Identifier: Apache-2.0
// Goal: variables are cut into as many shards as the original would. Method: shapes and numbers.
#include "strategies/values/partitioner.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/refusal.hpp"

namespace partitioner_test {

using namespace troupe;
using namespace troupe::test;

namespace {

using parts = std::vector<int64_t>;

parts cut(const partitioner& how, const shape& extents, dtype type = dtype::f32) {
  return how(extents, type);
}

} // namespace

TEST_SUITE("strategies/values/partitioner") {
  TEST_CASE("a fixed number of shards is that, but no more than there are rows") {
    CHECK(cut(fixed_shards_partitioner(2), {10, 3}) == parts{2, 1});
    CHECK(cut(fixed_shards_partitioner(20), {10, 3}) == parts{10, 1});
    CHECK(cut(fixed_shards_partitioner(2), {1}) == parts{1});
    CHECK(cut(fixed_shards_partitioner(2), {0, 3}) == parts{1, 1});
  }

  TEST_CASE("a least size gives as many shards as have it") {
    CHECK(cut(min_size_partitioner(4, 2), {6, 1}) == parts{2, 1});
    CHECK(cut(min_size_partitioner(4, 10), {6, 1}) == parts{6, 1});
    CHECK(cut(min_size_partitioner(8, 10), {6, 1}) == parts{3, 1});
    CHECK(cut(min_size_partitioner(8, 10), {6, 1}, dtype::f64) == parts{6, 1});
    CHECK(cut(min_size_partitioner(1000, 10), {6, 1}) == parts{1, 1});
    CHECK(cut(min_size_partitioner(), {1 << 20, 1}) == parts{1, 1});
  }

  TEST_CASE("a least size is that of every shard, where rows do not divide") {
    CHECK(cut(min_size_partitioner(16, 10), {4, 3}) == parts{2, 1}); // 2 and 2 rows of 12 bytes
    CHECK(cut(min_size_partitioner(16, 10), {5, 3}) == parts{2, 1}); // 3 and 2
    CHECK(cut(min_size_partitioner(16, 10), {6, 3}) == parts{3, 1});
    CHECK(cut(min_size_partitioner(12, 10), {4, 3}) == parts{4, 1});
    CHECK(cut(min_size_partitioner(25, 10), {7, 3}) == parts{2, 1}); // 4 and 3
    CHECK(cut(min_size_partitioner(25, 10), {2, 3}) == parts{1, 1}); // 24 bytes are all there are
    CHECK(cut(min_size_partitioner(1, 10), {0, 3}) == parts{1, 1});
  }

  TEST_CASE("a greatest size gives as few shards as keep to it, and never cuts a row") {
    CHECK(cut(max_size_partitioner(4), {6, 1}) == parts{6, 1});
    CHECK(cut(max_size_partitioner(8), {6, 1}) == parts{3, 1});
    CHECK(cut(max_size_partitioner(1024), {6, 1}) == parts{1, 1});
    CHECK(cut(max_size_partitioner(4, 2), {6, 1}) == parts{2, 1});
    CHECK(cut(max_size_partitioner(1), {6, 4}) == parts{6, 1});
    CHECK(cut(max_size_partitioner(12), {7, 1}) == parts{3, 1});
  }

  TEST_CASE("numbers below 1, and scalars, are refused") {
    CHECK(refusal_of([] { static_cast<void>(fixed_shards_partitioner(0)); }).code
          == errc::invalid_argument);
    CHECK(refusal_of([] { static_cast<void>(min_size_partitioner(0)); }).code
          == errc::invalid_argument);
    CHECK(refusal_of([] { static_cast<void>(min_size_partitioner(1, 0)); }).code
          == errc::invalid_argument);
    CHECK(refusal_of([] { static_cast<void>(max_size_partitioner(0)); }).code
          == errc::invalid_argument);
    CHECK(refusal_of([] { static_cast<void>(max_size_partitioner(1, 0)); }).code
          == errc::invalid_argument);
    CHECK(refusal_of([] { cut(fixed_shards_partitioner(2), {}); }).code == errc::invalid_argument);
  }

  TEST_CASE("the first shards have a row more") {
    CHECK(shard_offsets(10, 3) == parts{0, 4, 7, 10});
    CHECK(shard_offsets(4, 2) == parts{0, 2, 4});
    CHECK(shard_offsets(0, 1) == parts{0, 0});
  }
}

} // namespace partitioner_test
