// SPDX-License-Identifier: Apache-2.0
// The stack of coroutine frames beside an actor.
#include "actors/world/frame_stack.hpp"

#include <new>

namespace troupe {

void* frame_stack::allocate(size_t bytes) {
  auto* stack = current();
  auto* made = stack != nullptr ? stack->push(bytes) : nullptr;
  if (made == nullptr)
    made = new (::operator new(sizeof(header) + bytes)) header{nullptr, 0, false};
  return made + 1;
}

void frame_stack::release(void* frame) noexcept {
  auto* released = static_cast<header*>(frame) - 1;
  if (released->home != nullptr)
    released->home->pop(released);
  else
    ::operator delete(released);
}

frame_stack*& frame_stack::current() {
  thread_local frame_stack* stack = nullptr;
  return stack;
}

frame_stack::header* frame_stack::push(size_t bytes) {
  auto rounded = (sizeof(header) + bytes + alignof(header) - 1) / alignof(header) * alignof(header);
  if (top_ + rounded > capacity) return nullptr;
  auto* made = new (memory_.data() + top_) header{this, last_, false};
  last_ = top_;
  top_ += static_cast<uint32_t>(rounded);
  return made;
}

// A frame that ends before those above it is popped with them.
void frame_stack::pop(header* frame) noexcept {
  frame->is_free = true;
  while (top_ > 0) {
    auto* topmost = reinterpret_cast<header*>(memory_.data() + last_);
    if (!topmost->is_free) return;
    top_ = last_;
    last_ = topmost->below;
  }
}

} // namespace troupe
