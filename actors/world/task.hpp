// SPDX-License-Identifier: Apache-2.0
// task<T>: the coroutine type of everything that waits without holding a thread.
#pragma once

#include "actors/world/frame_stack.hpp"
#include "messages/errors/assert.hpp"
#include "messages/errors/failure.hpp"

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace troupe {

template <class T = void>
class task;

namespace detail {

[[noreturn]] inline void refuse_await() {
  throw failure{{errc::failed_precondition,
                 "this task cannot be awaited: it was awaited before, was moved from, or is empty "
                 "as from 'return {}'; call its function again for each co_await"}};
}

[[noreturn]] inline void refuse_start() {
  throw failure{{errc::failed_precondition,
                 "this task cannot be started: it has ended, was moved from, or is empty"}};
}

[[noreturn]] inline void refuse_result() {
  throw failure{{errc::failed_precondition,
                 "this task has no result yet, or none at all; ask for it when it is done()"}};
}

/// The part that the promises of all tasks share: the coroutine that waits for the end, and the
/// exception that ended the task.
struct task_promise_base {
  struct resume_waiter {
    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      auto next = ended.promise().waiter;
      return next ? next : std::noop_coroutine();
    }

    void await_resume() const noexcept {}
  };

  std::coroutine_handle<> waiter;
  std::exception_ptr thrown;

  static void* operator new(size_t bytes) { return frame_stack::allocate(bytes); }

  static void operator delete(void* frame) noexcept { frame_stack::release(frame); }

  std::suspend_always initial_suspend() noexcept { return {}; }

  resume_waiter final_suspend() noexcept { return {}; }

  void unhandled_exception() noexcept { thrown = std::current_exception(); }
};

template <class T>
struct task_promise : task_promise_base {
  std::optional<T> value;

  task<T> get_return_object() noexcept;

  template <class U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }

  T take() {
    if (thrown) std::rethrow_exception(thrown);
    TROUPE_ASSERT(value.has_value());
    return std::move(*value);
  }
};

template <>
struct task_promise<void> : task_promise_base {
  task<void> get_return_object() noexcept;

  void return_void() noexcept {}

  void take() {
    if (thrown) std::rethrow_exception(thrown);
  }
};

} // namespace detail

/// A replica waits for messages most of its life, and ten thousand of them must fit in a process.
/// A task suspends the function instead of the thread: `co_await` it inside another task.
///
/// A task starts when it is first awaited (or `start`ed) and runs on whatever thread resumes it,
/// which for a task that lives in an actor is always a thread that runs that actor. An exception
/// that leaves the function comes out of `co_await`. Destroying a task destroys what it suspended.
/// A task is awaited once: `co_await` throws `failure` with failed_precondition for one that was
/// awaited before, has ended, was moved from, or is empty.
///
/// GCC 12 loses temporaries in awaited expressions: give every awaited operand a name, and pass
/// state by value.
template <class T>
class [[nodiscard]] task {
public:
  using promise_type = detail::task_promise<T>;
  using handle_type = std::coroutine_handle<promise_type>;

  task() = default;

  explicit task(handle_type handle) : handle_(handle) {}

  task(task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

  task& operator=(task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  ~task() {
    if (handle_) handle_.destroy();
  }

  /// Runs until the first suspension. For the outermost task, which is not awaited.
  /// @pre Not started, not awaited. Errors: throws `failure` with failed_precondition if it has
  /// ended, was moved from, or is empty.
  void start() {
    if (!handle_ || handle_.done()) detail::refuse_start();
    handle_.resume();
  }

  /// True once the function has returned or thrown.
  [[nodiscard]] bool done() const { return handle_ && handle_.done(); }

  /// The result of a task that is done. Errors: rethrows what the function threw; throws `failure`
  /// with failed_precondition if it is not done.
  T result() {
    if (!done()) detail::refuse_result();
    return handle_.promise().take();
  }

  [[nodiscard]] bool await_ready() const {
    if (!handle_ || handle_.promise().waiter || handle_.done()) detail::refuse_await();
    return false;
  }

  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) noexcept {
    handle_.promise().waiter = waiter;
    return handle_;
  }

  T await_resume() { return handle_.promise().take(); }

private:
  handle_type handle_;
};

namespace detail {

template <class T>
task<T> task_promise<T>::get_return_object() noexcept {
  return task<T>{std::coroutine_handle<task_promise<T>>::from_promise(*this)};
}

inline task<void> task_promise<void>::get_return_object() noexcept {
  return task<void>{std::coroutine_handle<task_promise<void>>::from_promise(*this)};
}

} // namespace detail

} // namespace troupe
