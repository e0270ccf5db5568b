// SPDX-License-Identifier: Apache-2.0
// Memory for the frames of an actor's coroutines, next to the actor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace troupe {

/// The frames of one actor's coroutines, in a stack, since a coroutine that another one awaits ends
/// first. They are all touched when the actor wakes, and each of ten thousand actors has left the
/// caches when its turn comes: frames that lie together can be brought back at once. A frame that
/// does not fit is on the heap.
///
/// Outlives its frames. Thread: the one that runs the actor.
class frame_stack {
public:
  frame_stack() = default;
  frame_stack(const frame_stack&) = delete;
  frame_stack& operator=(const frame_stack&) = delete;

  /// Memory for a frame, aligned as that of `operator new`: on the stack that is in use on this
  /// thread, if one is and has room.
  [[nodiscard]] static void* allocate(size_t bytes);

  /// Gives it back, on any thread that runs the actor.
  static void release(void* frame) noexcept;

  /// The stack that is in use on this thread; null if none is.
  [[nodiscard]] static frame_stack*& current();

private:
  static constexpr size_t capacity = 2048; ///< A step of `train` takes 1.9 kB.

  /// The block in front of each frame.
  struct alignas(16) header {
    frame_stack* home; ///< Null: the heap.
    uint32_t below;    ///< Where the frame under it begins.
    bool is_free;
  };

  [[nodiscard]] header* push(size_t bytes);
  void pop(header* frame) noexcept;

  uint32_t top_ = 0;  ///< Where the next frame goes.
  uint32_t last_ = 0; ///< Where the topmost one begins, if there is one.
  alignas(16) std::array<std::byte, capacity> memory_;
};

} // namespace troupe
