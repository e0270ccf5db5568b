// SPDX-License-Identifier: Apache-2.0
// Goal: the order is that of a shuffle buffer, from wherever one begins. Method: a buffer that
// really holds its elements, for all small sizes; counts of where elements end.
#include "strategies/data/shuffle_order.hpp"
#include "tests/doctest.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace shuffle_order_test {

TEST_SUITE("strategies/data/shuffle_order") {
  using namespace troupe;

  using order = std::vector<uint64_t>;

  order order_of(uint64_t seed, uint64_t buffer_size, uint64_t count, uint64_t epoch = 0) {
    shuffle_order shuffled{seed, buffer_size, count};
    order all;
    for (uint64_t i = 0; i < count; ++i)
      all.push_back(shuffled.at(epoch, i));
    return all;
  }

  // The buffer as it is usually described, with the draws that ours makes.
  order buffered(uint64_t seed, uint64_t buffer_size, uint64_t count, uint64_t epoch) {
    const auto epoch_seed = random_stream{random_key{seed, "shuffle epoch", 0, epoch}}.next_u64();
    order all;
    order buffer;
    uint64_t next = 0;
    while (buffer.size() < std::min(buffer_size, count))
      buffer.push_back(next++);
    while (!buffer.empty()) {
      random_stream draw{random_key{epoch_seed, "shuffle", 0, all.size()}};
      const auto slot = draw.below(buffer.size());
      all.push_back(buffer[slot]);
      buffer[slot] = next < count ? next++ : buffer.back();
      if (all.size() + buffer.size() > count) buffer.pop_back();
    }
    return all;
  }

  TEST_CASE("is the order of a buffer that holds its elements") {
    for (uint64_t count : {0, 1, 2, 5, 20, 33})
      for (uint64_t buffer_size : {1, 2, 3, 7, 20, 32, 33, 34, 1000}) {
        CAPTURE(count);
        CAPTURE(buffer_size);
        CHECK(order_of(5, buffer_size, count, 3) == buffered(5, buffer_size, count, 3));
      }
  }

  TEST_CASE("is the same from wherever one begins") {
    for (uint64_t buffer_size : {1, 2, 6, 39, 40}) {
      const auto whole = order_of(9, buffer_size, 40);
      for (uint64_t i = 0; i < whole.size(); ++i) {
        shuffle_order fresh{9, buffer_size, 40};
        CHECK(fresh.at(0, i) == whole[i]);
        // Backwards and across epochs too, by one that has been elsewhere.
        CHECK(fresh.at(0, whole.size() - 1 - i) == whole[whole.size() - 1 - i]);
        CHECK(fresh.at(1, i) == order_of(9, buffer_size, 40, 1)[i]);
        if (i + 1 < whole.size()) CHECK(fresh.at(0, i + 1) == whole[i + 1]);
      }
      for (uint64_t step = 2; step < whole.size(); ++step) {
        shuffle_order sharded{9, buffer_size, 40};
        for (uint64_t i = 1; i < whole.size(); i += step)
          CHECK(sharded.at(0, i) == whole[i]);
      }
    }
  }

  TEST_CASE("goes on without end") {
    shuffle_order endless{1, 4, UINT64_MAX};
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < 1000; ++i) {
      const auto element = endless.at(0, i);
      CHECK(element < i + 4);
      CHECK(seen.insert(element).second);
    }
    shuffle_order far{1, 4, UINT64_MAX};
    const auto there = far.at(0, uint64_t{1} << 62);
    CHECK(there < (uint64_t{1} << 62) + 4);
    CHECK(there == shuffle_order{1, 4, UINT64_MAX}.at(0, uint64_t{1} << 62));
  }

  TEST_CASE("differs from seed to seed and from epoch to epoch") {
    CHECK(order_of(1, 20, 20) != order_of(2, 20, 20));
    CHECK(order_of(1, 20, 20, 0) != order_of(1, 20, 20, 1));
    CHECK(order_of(1, 1, 5) == order{0, 1, 2, 3, 4});
  }

  TEST_CASE("every order of four elements is as likely as the others") {
    std::array<int, 256> counts{};
    constexpr int rounds = 24'000;
    shuffle_order shuffled{3, 4, 4};
    for (uint64_t epoch = 0; epoch < rounds; ++epoch) {
      uint64_t name = 0;
      for (uint64_t i = 0; i < 4; ++i)
        name = name << 2 | shuffled.at(epoch, i);
      ++counts[name];
    }
    CHECK(std::ranges::count_if(counts, [](int count) { return count > 0; }) == 24);
    // 1000 are expected of each, with a standard deviation of 31.
    for (int count : counts)
      if (count > 0) CHECK(std::abs(count - 1000) < 5 * 31);
  }
}

} // namespace shuffle_order_test
