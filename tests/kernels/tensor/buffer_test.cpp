// SPDX-License-Identifier: Apache-2.0
// Goal: the pool recycles memory, counts it, and never hands out more than one owner's worth.
// Method: allocate, free and look at addresses and counters.
#include "kernels/tensor/buffer.hpp"
#include "tests/doctest.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

namespace buffer_test {

using namespace troupe;

namespace {

/// Has one block at a time, which the CPU cannot write to.
class small_source final : public memory_source {
public:
  std::byte* allocate(size_t) noexcept override {
    return taken == 0 ? reinterpret_cast<std::byte*>(++taken * 64) : nullptr;
  }

  void free(std::byte*) noexcept override { --taken; }

  [[nodiscard]] bool is_of_host() const noexcept override { return false; }

  size_t taken = 0;
};

} // namespace

TEST_SUITE("kernels/tensor/buffer") {
  TEST_CASE("blocks are aligned, and the bytes up to a multiple of 8 are zero") {
    buffer_pool pool{1 << 20};
    for (size_t bytes : {1, 3, 7, 8, 9, 63, 64, 65, 1001, 5 << 20}) {
      std::memset(pool.allocate(bytes + 8).get(), 0xff, bytes + 8);
      auto block = pool.allocate(bytes);
      CHECK(reinterpret_cast<uintptr_t>(block.get()) % buffer_pool::alignment == 0);
      for (size_t i = bytes; i < (bytes + 7) / 8 * 8; ++i)
        CHECK(block.get()[i] == std::byte{0});
    }
  }

  TEST_CASE("a block of no bytes is still a block") {
    buffer_pool pool{1 << 20};
    auto a = pool.allocate(0), b = pool.allocate(0);
    CHECK(a != nullptr);
    CHECK(a != b);
  }

  TEST_CASE("a freed block serves the next request of its size class") {
    buffer_pool pool{1 << 20};
    auto block = pool.allocate(1000);
    auto* address = block.get();
    auto in_use = pool.bytes_in_use();
    CHECK(in_use >= 1000);
    CHECK(in_use <= 1000 + 1000 / 8);
    block.reset();
    CHECK(pool.bytes_in_use() == 0);
    CHECK(pool.bytes_kept() == in_use);
    CHECK(pool.allocate(990).get() == address);
    auto again = pool.allocate(1000);
    auto other = pool.allocate(1000);
    CHECK(again.get() == address);
    CHECK(other.get() != address);
    CHECK(pool.bytes_kept() == 0);
    CHECK(pool.bytes_in_use() == 2 * in_use);
    again.reset();
    CHECK(pool.bytes_in_use_max() == 2 * in_use);
  }

  TEST_CASE("a copy of the pointer keeps the block out of the pool") {
    buffer_pool pool{1 << 20};
    auto block = pool.allocate(1000);
    auto copy = block;
    block.reset();
    CHECK(pool.bytes_kept() == 0);
    copy.reset();
    CHECK(pool.bytes_kept() > 0);
  }

  TEST_CASE("blocks beyond the limit go back to the system") {
    buffer_pool pool{2000};
    auto a = pool.allocate(1024), b = pool.allocate(1024), c = pool.allocate(4096);
    a.reset();
    b.reset();
    c.reset();
    CHECK(pool.bytes_kept() == 1024);
    CHECK(pool.bytes_in_use() == 0);
    pool.trim();
    CHECK(pool.bytes_kept() == 0);
  }

  TEST_CASE("blocks may outlive the pool") {
    std::shared_ptr<std::byte> block;
    {
      buffer_pool pool{1 << 20};
      block = pool.allocate(100);
    }
    std::memset(block.get(), 1, 100);
    block.reset();
  }

  TEST_CASE("more memory than any system has is refused, and not counted") {
    buffer_pool pool{1 << 20};
    CHECK_THROWS_AS((void)pool.allocate(SIZE_MAX), std::bad_alloc);
    CHECK_THROWS_AS((void)pool.allocate(SIZE_MAX / 2), std::bad_alloc);
    CHECK(pool.bytes_in_use() == 0);
  }

  TEST_CASE("several threads never hold the same block") {
    buffer_pool pool{1 << 20};
    std::atomic<size_t> clashes = 0;
    auto churn = [&](int mark) {
      for (int turn = 0; turn < 2000; ++turn) {
        auto block = pool.allocate(256);
        std::memset(block.get(), mark, 256);
        for (size_t i = 0; i < 256; ++i)
          clashes += block.get()[i] == static_cast<std::byte>(mark) ? 0 : 1;
      }
    };
    std::vector<std::thread> threads;
    for (int mark = 1; mark <= 4; ++mark)
      threads.emplace_back(churn, mark);
    for (auto& thread : threads)
      thread.join();
    CHECK(clashes == 0);
    CHECK(pool.bytes_in_use() == 0);
    CHECK(pool.bytes_in_use_max() <= 4 * 256);
  }

  TEST_CASE("a block may be freed on another thread") {
    auto block = cpu_pool().allocate(1000);
    std::thread{[moved = std::move(block)]() mutable { moved.reset(); }}.join();
    CHECK(cpu_pool().bytes_kept() >= 1000);
  }

  TEST_CASE("a pool asks its source, gives kept blocks back before it gives up, and counts right") {
    auto source = std::make_shared<small_source>();
    buffer_pool pool{1 << 20, source};
    auto first = pool.allocate(256);
    CHECK(source->taken == 1);
    first.reset();
    CHECK(pool.bytes_kept() == 256); // and the source has no second block but this one
    auto larger = pool.allocate(512);
    CHECK(source->taken == 1);
    CHECK(pool.bytes_kept() == 0);
    CHECK_THROWS_AS(static_cast<void>(pool.allocate(512)), std::bad_alloc);
    CHECK(pool.bytes_in_use() == 512);
  }
}

} // namespace buffer_test
