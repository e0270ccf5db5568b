// SPDX-License-Identifier: Apache-2.0
// Goal: bytes that are written to a ring are read once, in order, neither end sleeps while there is
// something for it to do, and no end believes what the other one counts. Method: both ends in one
// process, by turns and by two threads.
#include "actors/net/sockets/shared_ring.hpp"

#include <doctest/doctest.h>

#include <array>
#include <fcntl.h>
#include <random>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace shared_ring_test {

using namespace troupe;

namespace {

/// A ring of eight bytes, seen from both ends.
struct small_ring {
  ring_control control;
  std::array<std::byte, 8> memory{};
  ring_writer writer{{&control, memory}};
  ring_reader reader{{&control, memory}};
};

std::vector<std::byte> bytes(size_t count, uint8_t first = 0) {
  std::vector<std::byte> values(count);
  for (auto& value : values)
    value = std::byte{first++};
  return values;
}

std::vector<std::byte> read(ring_reader& reader, size_t most) {
  std::vector<std::byte> into(most);
  into.resize(reader.read(into));
  return into;
}

void write_all(ring_writer& writer, std::span<const std::byte> all) {
  while (!all.empty())
    all = all.subspan(writer.write(all));
}

} // namespace

TEST_SUITE("actors/net/sockets/shared_ring") {
  TEST_CASE("bytes come in the order in which they were written, across the end of the memory") {
    small_ring ring;
    CHECK(ring.writer.write(bytes(6)) == 6);
    CHECK(read(ring.reader, 4) == bytes(4));
    CHECK(ring.writer.write(bytes(6, 6)) == 6);
    CHECK(read(ring.reader, 100) == bytes(8, 4));
    CHECK(read(ring.reader, 100).empty());
  }

  TEST_CASE("a writer writes what there is room for") {
    small_ring ring;
    CHECK(ring.writer.write(bytes(5)) == 5);
    CHECK(ring.writer.write(bytes(5)) == 3);
    CHECK(ring.writer.write(bytes(5)) == 0);
    read(ring.reader, 1);
    CHECK(ring.writer.write(bytes(5)) == 1);
  }

  TEST_CASE("a reader that sleeps has to be woken once, one that does not need not be") {
    small_ring ring;
    ring.writer.write(bytes(1));
    CHECK_FALSE(ring.writer.must_wake_reader());
    CHECK_FALSE(ring.reader.sleeps()); // there is a byte
    read(ring.reader, 1);
    CHECK(ring.reader.sleeps());
    ring.writer.write(bytes(1));
    CHECK(ring.writer.must_wake_reader());
    CHECK_FALSE(ring.writer.must_wake_reader());
  }

  TEST_CASE("a writer that sleeps has to be woken once, when half of the ring is free") {
    small_ring ring;
    CHECK_FALSE(ring.writer.sleeps()); // there is room
    ring.writer.write(bytes(8));
    CHECK(ring.writer.sleeps());
    read(ring.reader, 3);
    CHECK_FALSE(ring.reader.must_wake_writer());
    read(ring.reader, 1);
    CHECK(ring.reader.must_wake_writer());
    CHECK_FALSE(ring.reader.must_wake_writer());
    CHECK_FALSE(ring.writer.sleeps());
  }

  TEST_CASE("the end of the bytes is news to a reader, and comes after them") {
    small_ring ring;
    ring.writer.write(bytes(2));
    ring.writer.finish();
    CHECK(ring.reader.is_finished());
    CHECK(read(ring.reader, 100) == bytes(2));
    CHECK(ring.reader.has_news());
    CHECK_FALSE(ring.reader.sleeps());
  }

  TEST_CASE("a reader takes nothing of more bytes than a ring can hold") {
    small_ring ring;
    ring.control.written = 9;
    CHECK(ring.reader.has_news());
    CHECK(read(ring.reader, 100).empty());
    CHECK(ring.reader.is_broken());
  }

  TEST_CASE("a writer finds no room in a ring of which more was read than written") {
    small_ring ring;
    ring.control.read = 1;
    CHECK(ring.writer.write(bytes(1)) == 0);
    CHECK(ring.writer.sleeps());
  }

  TEST_CASE("two threads, of which one writes and one reads, never both wait for the other") {
    auto memory = ring_memory::make().value();
    ring_writer writer{memory->from_dialer()};
    ring_reader reader{memory->from_dialer()};
    std::vector<std::byte> sent(20 << 20);
    std::mt19937 random{7};
    for (auto& value : sent)
      value = static_cast<std::byte>(random());
    std::atomic<int> reader_wakes = 0;
    std::atomic<int> writer_wakes = 0;
    std::thread thread{[&] {
      for (std::span<const std::byte> rest{sent}; !rest.empty();) {
        auto count
          = writer.write(rest.first(std::min<size_t>(rest.size(), 1 + random() % 200'000)));
        rest = rest.subspan(count);
        if (writer.must_wake_reader()) ++reader_wakes;
        if (count > 0 || !writer.sleeps()) continue;
        writer_wakes.wait(0);
        --writer_wakes;
      }
      writer.finish();
      if (writer.must_wake_reader()) ++reader_wakes;
      reader_wakes.notify_one();
    }};
    std::vector<std::byte> received;
    std::vector<std::byte> into(150'000);
    while (true) {
      auto is_finished = reader.is_finished();
      auto count = reader.read(into);
      received.insert(received.end(), into.begin(), into.begin() + static_cast<ptrdiff_t>(count));
      if (reader.must_wake_writer()) {
        ++writer_wakes;
        writer_wakes.notify_one();
      }
      if (count == 0 && is_finished) break;
      if (count > 0 || !reader.sleeps()) continue;
      while (reader_wakes == 0)
        std::this_thread::yield();
      --reader_wakes;
    }
    thread.join();
    CHECK(received == sent);
  }

  TEST_CASE("another process maps the memory by its descriptor") {
    auto made = ring_memory::make().value();
    auto opened = ring_memory::open(::dup(made->descriptor())).value();
    ring_writer writer{made->from_dialer()};
    ring_reader reader{opened->from_dialer()};
    ring_reader other_way{opened->from_acceptor()};
    write_all(writer, bytes(200));
    CHECK(read(reader, 1000) == bytes(200));
    CHECK_FALSE(other_way.has_news());
  }

  TEST_CASE("memory that its maker could take away is refused") {
    auto made = ring_memory::make().value();
    auto size = ::lseek(made->descriptor(), 0, SEEK_END);
    auto unsealed = ::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(::ftruncate(unsealed, size) == 0);
    CHECK(ring_memory::open(unsealed).error().code == errc::malformed);
    auto short_one = ::memfd_create("short", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(::ftruncate(short_one, size - 1) == 0);
    REQUIRE(::fcntl(short_one, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
    CHECK(ring_memory::open(short_one).error().code == errc::malformed);
    std::array<int, 2> pipe{};
    REQUIRE(::pipe(pipe.data()) == 0);
    CHECK(ring_memory::open(pipe[0]).error().code == errc::malformed);
    ::close(pipe[1]);
  }
}

} // namespace shared_ring_test
