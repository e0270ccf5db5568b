// SPDX-License-Identifier: Apache-2.0
// Queues of work on a GPU, and points in them that others can wait for.
#pragma once

#include "messages/errors/errc.hpp"

#include <chrono>
#include <functional>
#include <memory>

// CUDA's own handle types, without its headers.
struct CUevent_st;
struct CUstream_st;

namespace troupe::cuda {

/// A point in a stream. Thread: as CUDA's, any.
class event {
public:
  /// @param timed Whether `elapsed_since` is wanted; costs a little more.
  /// Errors: not_found, resource.
  [[nodiscard]] static expected<event> create(int device_index, bool timed = false);

  [[nodiscard]] CUevent_st* handle() const { return handle_.get(); }

  /// Whether all that came before it in its stream is done; true if it was never recorded.
  /// Errors: unavailable, if that work broke the device.
  [[nodiscard]] expected<bool> has_passed() const;

  /// Blocks until then.
  [[nodiscard]] expected<void> synchronise() const;

  /// Time on the device between two events. @pre Both are timed, recorded, and have passed.
  [[nodiscard]] expected<std::chrono::duration<float>> elapsed_since(const event& earlier) const;

private:
  event(CUevent_st* handle, int device_index) : handle_(handle, {device_index}) {}

  struct destroy {
    int device_index;
    void operator()(CUevent_st* handle) const;
  };

  [[nodiscard]] int device_index() const { return handle_.get_deleter().device_index; }

  std::unique_ptr<CUevent_st, destroy> handle_;
};

/// A queue of copies and kernels on one GPU, done one after the other; streams run side by side.
/// Thread: calls from several threads are safe, but then their order is open.
class stream {
public:
  /// Errors: not_found if there is no such device, resource.
  [[nodiscard]] static expected<stream> create(int device_index);

  [[nodiscard]] CUstream_st* handle() const { return handle_.get(); }

  [[nodiscard]] int device_index() const { return handle_.get_deleter().device_index; }

  /// Blocks until all queued work is done. Errors: unavailable, if it broke the device.
  [[nodiscard]] expected<void> synchronise() const;

  /// Whether all queued work is done. Errors: unavailable, if it broke the device.
  [[nodiscard]] expected<bool> is_idle() const;

  /// Marks the end of what is queued now.
  [[nodiscard]] expected<void> record(const event& mark) const;

  /// Lets what is queued here from now on wait, on the device, for an event of any stream.
  [[nodiscard]] expected<void> wait_for(const event& mark) const;

  /// Queues `size` bytes from one place to another, each on a device or on the host. Memory of the
  /// host should be pinned, else the copy is slow and may block.
  /// @pre Both places stay alive, and `to` unread, until the copy is done.
  [[nodiscard]] expected<void> copy(const void* from, void* to, size_t size) const;

  /// Queues zeros.
  [[nodiscard]] expected<void> clear(void* to, size_t size) const;

  /// Queues a call of `function` on a thread of the driver: to tell a waiter that all before is
  /// done. There is no call if the device breaks before. @pre `function` is short, throws nothing
  /// and calls nothing of CUDA, nor anything here.
  [[nodiscard]] expected<void> call(std::function<void()> function) const;

private:
  stream(CUstream_st* handle, int device_index) : handle_(handle, {device_index}) {}

  struct destroy {
    int device_index;
    void operator()(CUstream_st* handle) const;
  };

  std::unique_ptr<CUstream_st, destroy> handle_;
};

} // namespace troupe::cuda
