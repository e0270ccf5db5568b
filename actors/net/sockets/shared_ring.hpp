// SPDX-License-Identifier: Apache-2.0
// Bytes from one process to another of its machine through memory that both have: a ring for each
// direction.
#pragma once

#include "messages/errors/errc.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace troupe {

/// The part of a ring that both ends change. Positions count bytes since the beginning, and grow.
struct ring_control {
  alignas(64) std::atomic<uint64_t> written{0};
  std::atomic<uint32_t> is_finished{0};   ///< No more will be written.
  std::atomic<uint32_t> writer_sleeps{0}; ///< The writer is to be woken when there is room.
  alignas(64) std::atomic<uint64_t> read{0};
  std::atomic<uint32_t> reader_sleeps{0}; ///< The reader is to be woken when there are bytes.
};

/// A ring in memory; it does not own it.
struct ring_view {
  ring_control* control = nullptr;
  std::span<std::byte> bytes;
};

/// The writing end. It only knows when the reader has to be woken; its user wakes it.
///
/// Thread: one at a time.
class ring_writer {
public:
  explicit ring_writer(ring_view ring) : ring_(ring) {}

  /// Copies the first bytes that there is room for, at most some 64 KiB at a time, so that the
  /// reader copies one piece while the next is written. @returns How many; 0: there is no room.
  size_t write(std::span<const std::byte> bytes);

  /// Whether the reader sleeps and has to be woken now, once.
  [[nodiscard]] bool must_wake_reader();

  /// @returns Whether there is too little room; then the reader wakes the writer when half of the
  /// ring is free.
  [[nodiscard]] bool sleeps();

  /// Nothing is written any more.
  void finish() { ring_.control->is_finished = 1; }

private:
  [[nodiscard]] size_t room() const;

  ring_view ring_;
  uint64_t written_ = 0;
};

/// The reading end. It believes nothing that the peer's process has written but the bytes.
///
/// Thread: one at a time.
class ring_reader {
public:
  explicit ring_reader(ring_view ring) : ring_(ring) {}

  /// Copies what is there. @returns How many bytes; 0: there are none, or the ring is broken.
  size_t read(std::span<std::byte> into);

  /// Whether the writer waits for room that there is now, and has to be woken, once.
  [[nodiscard]] bool must_wake_writer();

  /// @returns Whether there is nothing to read, nor an end; then the writer wakes the reader.
  [[nodiscard]] bool sleeps();

  /// Whether `read` has something to say: bytes, an end, or a broken ring.
  [[nodiscard]] bool has_news() const;

  /// The writer has finished. @pre Asked before the last `read`, which returned nothing.
  [[nodiscard]] bool is_finished() const { return ring_.control->is_finished != 0; }

  /// The writer has counted what cannot be.
  [[nodiscard]] bool is_broken() const;

private:
  [[nodiscard]] uint64_t available() const { return ring_.control->written - read_; }

  ring_view ring_;
  uint64_t read_ = 0;
};

/// The memory of the two rings between a process that dials and one that accepts.
class ring_memory {
public:
  /// Errors: unavailable, if the system has no such memory.
  [[nodiscard]] static expected<std::shared_ptr<ring_memory>> make();

  /// The memory that another process has made. @param descriptor Is closed.
  /// Errors: malformed if it is not what `make` makes: it could shrink under a reader.
  [[nodiscard]] static expected<std::shared_ptr<ring_memory>> open(int descriptor);

  ring_memory(const ring_memory&) = delete;
  ring_memory& operator=(const ring_memory&) = delete;
  ~ring_memory();

  /// For the other process. @pre Made here, and not closed.
  [[nodiscard]] int descriptor() const { return descriptor_; }

  /// The other process has it; the memory stays.
  void close_descriptor();

  [[nodiscard]] ring_view from_dialer() const { return ring(0); }

  [[nodiscard]] ring_view from_acceptor() const { return ring(1); }

private:
  ring_memory(int descriptor, std::byte* begin) : descriptor_(descriptor), begin_(begin) {}

  [[nodiscard]] ring_view ring(size_t index) const;

  int descriptor_;
  std::byte* begin_;
};

} // namespace troupe
