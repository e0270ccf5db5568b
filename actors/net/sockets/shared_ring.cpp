// SPDX-License-Identifier: Apache-2.0
// Positions, copies, and memory that two processes map.
#include "actors/net/sockets/shared_ring.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace {

static_assert(std::atomic<uint64_t>::is_always_lock_free, "a lock would be this process's own");

// A ring that stays in a processor's second cache is faster than one that holds whole messages.
constexpr size_t ring_bytes = 1024 * 1024;

// The reader copies one piece while the writer writes the next.
constexpr size_t piece_bytes = 64 * 1024;

// Both controls lie in front, each in a page of its own.
constexpr size_t page_bytes = 4096;
constexpr size_t memory_bytes = 2 * (page_bytes + ring_bytes);

static_assert(sizeof(ring_control) <= page_bytes);

// Neither process can take the memory away from the other, which would be ended by a signal.
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::byte* map(int descriptor) {
  auto* begin = ::mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return begin == MAP_FAILED ? nullptr : static_cast<std::byte*>(begin);
}

// Copies between a ring and memory, from a position on; the ring's end is followed by its begin.
template <class Copy>
void for_pieces(std::span<std::byte> ring, uint64_t position, size_t count, const Copy& copy) {
  auto begin = static_cast<size_t>(position % ring.size());
  auto first = std::min(count, ring.size() - begin);
  copy(ring.data() + begin, size_t{0}, first);
  if (count > first) copy(ring.data(), first, count - first);
}

} // namespace

// ---- the writer ----

size_t ring_writer::room() const {
  auto unread = written_ - ring_.control->read;
  return unread > ring_.bytes.size() ? 0 : ring_.bytes.size() - unread; // a reader may tell lies
}

size_t ring_writer::write(std::span<const std::byte> bytes) {
  auto count = std::min({bytes.size(), room(), piece_bytes});
  if (count == 0) return 0;
  for_pieces(ring_.bytes, written_, count, [&](std::byte* to, size_t offset, size_t size) {
    std::memcpy(to, bytes.data() + offset, size);
  });
  written_ += count;
  ring_.control->written = written_;
  return count;
}

bool ring_writer::must_wake_reader() {
  auto& sleeps = ring_.control->reader_sleeps;
  return sleeps != 0 && sleeps.exchange(0) != 0;
}

bool ring_writer::sleeps() {
  if (room() >= ring_.bytes.size() / 2) return false;
  ring_.control->writer_sleeps = 1;
  if (room() < ring_.bytes.size() / 2) return true;
  ring_.control->writer_sleeps = 0; // the reader was faster
  return false;
}

// ---- the reader ----

size_t ring_reader::read(std::span<std::byte> into) {
  auto there = available();
  if (there == 0 || there > ring_.bytes.size()) return 0;
  auto count = std::min<size_t>(there, into.size());
  for_pieces(ring_.bytes, read_, count, [&](const std::byte* from, size_t offset, size_t size) {
    std::memcpy(into.data() + offset, from, size);
  });
  read_ += count;
  ring_.control->read = read_;
  return count;
}

bool ring_reader::must_wake_writer() {
  auto& sleeps = ring_.control->writer_sleeps;
  return sleeps != 0 && available() <= ring_.bytes.size() / 2 && sleeps.exchange(0) != 0;
}

bool ring_reader::sleeps() {
  if (has_news()) return false;
  ring_.control->reader_sleeps = 1;
  if (!has_news()) return true;
  ring_.control->reader_sleeps = 0; // the writer was faster
  return false;
}

bool ring_reader::has_news() const {
  return is_finished() || available() != 0;
}

bool ring_reader::is_broken() const {
  return available() > ring_.bytes.size();
}

// ---- memory ----

expected<std::shared_ptr<ring_memory>> ring_memory::make() {
  auto descriptor = ::memfd_create("troupe ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  auto* begin = descriptor >= 0 && ::ftruncate(descriptor, memory_bytes) == 0
                    && ::fcntl(descriptor, F_ADD_SEALS, seals) == 0
                  ? map(descriptor)
                  : nullptr;
  if (begin == nullptr) {
    auto reason = fmt::format("no memory to share with another process: {}", std::strerror(errno));
    if (descriptor >= 0) ::close(descriptor);
    return fail(errc::unavailable, reason);
  }
  for (size_t ring : {0, 1})
    new (begin + ring * page_bytes) ring_control;
  return std::shared_ptr<ring_memory>{new ring_memory{descriptor, begin}};
}

expected<std::shared_ptr<ring_memory>> ring_memory::open(int descriptor) {
  struct stat status {};

  auto sealed = ::fcntl(descriptor, F_GET_SEALS);
  auto is_right = sealed >= 0 && (sealed & seals) == seals && ::fstat(descriptor, &status) == 0
                  && status.st_size == memory_bytes;
  auto* begin = is_right ? map(descriptor) : nullptr;
  ::close(descriptor);
  if (begin == nullptr)
    return fail(errc::malformed, "the peer offers memory that is none to be shared");
  return std::shared_ptr<ring_memory>{new ring_memory{-1, begin}};
}

ring_memory::~ring_memory() {
  ::munmap(begin_, memory_bytes);
  close_descriptor();
}

void ring_memory::close_descriptor() {
  if (auto descriptor = std::exchange(descriptor_, -1); descriptor >= 0) ::close(descriptor);
}

ring_view ring_memory::ring(size_t index) const {
  auto* control = std::launder(reinterpret_cast<ring_control*>(begin_ + index * page_bytes));
  return {control, {begin_ + 2 * page_bytes + index * ring_bytes, ring_bytes}};
}

} // namespace troupe
