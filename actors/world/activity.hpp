// SPDX-License-Identifier: Apache-2.0
// The coroutine of an actor, and its waits: for replies, for computing, for time to pass.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/world/ask_again.hpp"
#include "actors/world/paced_work.hpp"
#include "actors/world/task.hpp"
#include "actors/world/world.hpp"
#include "messages/payload.hpp"

#include <caf/typed_event_based_actor.hpp>

#include <coroutine>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// A coroutine must not block the thread that runs its actor, and its actor must answer messages
/// while the coroutine waits. The activity of an actor is what the coroutine awaits instead.
///
/// One wait at a time: an actor has one coroutine, and the coroutine awaits one thing.
/// Thread: the one that runs the actor, but for `world`, which is safe anywhere.
class activity {
public:
  activity(replica_actor::pointer self, troupe::world& world, pace_function pace)
    : self_(self), world_(world),
      computing_(self, world, std::move(pace), [this] { resume(waiter_); }) {}

  activity(const activity&) = delete;
  activity& operator=(const activity&) = delete;

  [[nodiscard]] troupe::world& world() { return world_; }

  /// Requests that have no answer after this time are made again, word for word, as often as it
  /// takes; 0, as at the beginning = never, since a reliable link loses nothing but with an actor.
  /// The receiver must take one that comes twice for one.
  void set_ask_again_after(job_time ask_again_after) { ask_again_after_ = ask_again_after; }

  /// Sets how long computing takes from now on, in place of the pace that the activity was made
  /// with.
  void set_pace(pace_function pace) { computing_.set_pace(std::move(pace)); }

  /// Sends `message` and waits for a `Reply`.
  /// Deadline: the chief's watch, which knows the missing replicas; a timer for each request would
  /// cost more than the request. An actor that is gone answers at once.
  /// @returns The reply. Errors: what the other side answers; unavailable, if it is gone;
  /// invalid_argument for an empty handle; user_code, if its handler throws.
  template <class Reply, class Handle, class Message>
  [[nodiscard]] auto request(Handle to, Message message) {
    return reply_awaiter<Reply, Handle, Message>{*this, std::move(to), std::move(message), {}};
  }

  /// Replies that are on their way; shared by their senders and the coroutine.
  template <class Reply>
  struct pending_replies {
    std::vector<expected<Reply>> replies; ///< In the order of the messages.
    size_t missing = 0;
    std::coroutine_handle<> waiter; ///< Null while no coroutine waits.
    activity* host = nullptr;
  };

  /// Sends every message to its receiver at once; `settled` waits for the replies.
  /// @param ask_again_after As `set_ask_again_after`.
  template <class Reply, class Handle, class Message>
  [[nodiscard]] auto begin_requests(std::vector<std::pair<Handle, Message>> messages,
                                    job_time ask_again_after = job_time{0}) {
    auto pending = std::make_shared<pending_replies<Reply>>();
    pending->missing = messages.size();
    pending->host = this;
    pending->replies.resize(messages.size(), fail(errc::unavailable, "no reply"));
    for (size_t i = 0; i < messages.size(); ++i)
      ask_until_answered<Reply>(self_, messages[i].first, std::move(messages[i].second),
                                ask_again_after, [pending, i](expected<Reply> arrived) {
                                  pending->replies[i] = std::move(arrived);
                                  if (--pending->missing == 0 && pending->waiter)
                                    pending->host->resume(pending->waiter);
                                });
    return pending;
  }

  /// Waits for all replies of `begin_requests`. @returns The replies in the order of the messages.
  template <class Reply>
  [[nodiscard]] auto settled(std::shared_ptr<pending_replies<Reply>> pending) {
    return replies_awaiter<Reply>{std::move(pending)};
  }

  /// Sends every message to its receiver at once, and waits for all replies.
  /// @returns The replies in the order of the messages.
  template <class Reply, class Handle, class Message>
  [[nodiscard]] auto request_all(std::vector<std::pair<Handle, Message>> messages) {
    return settled(begin_requests<Reply>(std::move(messages), ask_again_after_));
  }

  /// The actor that hosts the coroutine: the receiver of a `wake`.
  [[nodiscard]] replica_actor handle() const { return self_; }

  /// Waits for the `wake` that another actor sends for something that this coroutine has told it;
  /// it can only come later than the call. @returns Its value. Errors: rethrows what it holds.
  [[nodiscard]] auto woken() { return wake_awaiter{*this, {}}; }

  /// Runs `work` on the world's computing threads and waits for it, whatever the pace.
  /// Errors: rethrows what `work` threw.
  [[nodiscard]] auto offload(std::function<void()> work) {
    begin_offload(std::move(work));
    return woken();
  }

  /// Has `work` ask a stream, wherever that is, and waits until the stream has done it, whatever
  /// the pace. @param purpose For errors: "a reduction". @pre `where.device` is not null.
  /// Errors: rethrows what `work` threw; throws `failure` as `gpu_actor` answers.
  [[nodiscard]] auto offload_to(const processor& where, std::string purpose,
                                std::function<void(compute_stream&)> work) {
    begin_offload_to(where, std::move(purpose), std::move(work));
    return woken();
  }

  /// Sends `message` as the actor.
  template <class Handle, class Message>
  void send(const Handle& to, Message message) {
    self_->send(to, std::move(message));
  }

  /// Sets `current_surroundings` for the times when the coroutine runs, and at once: code above
  /// keeps there in which context user code is. @pre Called by the coroutine itself.
  void set_surroundings(void* surroundings) {
    surroundings_ = surroundings;
    current_surroundings() = surroundings;
  }

  /// The surroundings of the activity that runs on this thread; null where none does.
  [[nodiscard]] static void*& current_surroundings();

  /// Calls `step`, which runs the coroutine until it waits, in its surroundings.
  template <class Step>
  void run(const Step& step) {
    auto* outer = std::exchange(current_surroundings(), surroundings_);
    auto* frames = std::exchange(frame_stack::current(), &frames_);
    step();
    frame_stack::current() = frames;
    current_surroundings() = outer;
  }

  /// Runs `work` on the world's computing threads and waits for it, and for what the pace adds.
  /// `cancel_before` ends the wait: at once during the pace's delay, else as soon as the work
  /// returns, which it does early if it looks at its stop token.
  [[nodiscard]] auto compute(std::function<void(std::stop_token)> work) {
    return work_awaiter{*this, {std::move(work), {}}};
  }

  /// Runs `work` on the activity's processor, as `compute` does elsewhere: `work` asks a stream for
  /// everything, and the wait is over when the stream has done it. Without a processor the stream
  /// is `host_stream`, on the computing threads. Errors, thrown as `failure` in the outcome: as
  /// `gpu_actor`.
  [[nodiscard]] auto compute_on_device(std::function<void(std::stop_token, compute_stream&)> work) {
    return work_awaiter{*this, {{}, std::move(work)}};
  }

  /// Where `compute_on_device` computes from now on. @param purpose For errors: "a step of replica
  /// 3".
  void set_processor(processor where, std::string purpose) {
    computing_.set_processor(std::move(where), std::move(purpose));
  }

  /// The processor of `set_processor`; without a device before that.
  [[nodiscard]] const processor& computes_at() const { return computing_.computes_at(); }

  /// The step that the coroutine works for; the coroutine says when it goes on to another.
  [[nodiscard]] uint64_t local_step() const { return local_step_; }

  void set_local_step(uint64_t step) { local_step_ = step; }

  /// Steps that the coroutine has finished; the coroutine counts them.
  [[nodiscard]] uint64_t iteration() const { return iteration_; }

  void count_iteration() { ++iteration_; }

  /// Keeps a value for checkpoints, under a name: the latest counts.
  void keep(const std::string& name, tensor value);

  /// The value kept under that name, by this activity or the one it was restored from.
  [[nodiscard]] std::optional<tensor> kept(const std::string& name) const;

  /// Where the coroutine is; `replica` is left to the caller.
  [[nodiscard]] replica_progress progress() const;

  /// Goes on from the progress of a saved activity. @pre Nothing was computed yet.
  void restore(const replica_progress& saved);

  /// Waits for the rest of the computation that `restore` has told of, as `compute` would; its
  /// result is not needed. @returns The outcome of the whole computation.
  [[nodiscard]] auto rest(job_time remaining) { return rest_awaiter{*this, remaining}; }

  /// Results for steps before `step` are not needed any more: a `compute` for one ends `cancelled`.
  void cancel_before(uint64_t step);

  /// Has `cancel_before` call `action`, too, once; a cancelled activity calls it now. An empty
  /// function takes that back.
  void when_cancelled(std::function<void()> action);

  /// Whether `cancel_before` has been told a later step than the one that the coroutine is at.
  [[nodiscard]] bool is_cancelled() const { return local_step_ < needed_from_; }

  /// To be called by the actor for each message of these kinds.
  void on(const work_done& done) { computing_.on(done); }

  void on(const delay_over& over) { computing_.on(over); }

  void on(wake woken);

private:
  template <class Reply, class Handle, class Message>
  struct reply_awaiter {
    activity& owner;
    Handle to;
    Message message;
    expected<Reply> reply;

    [[nodiscard]] bool await_ready() const { return false; }

    void await_suspend(std::coroutine_handle<> waiter) {
      ask_until_answered<Reply>(owner.self_, to, std::move(message), owner.ask_again_after_,
                                [this, waiter](expected<Reply> arrived) {
                                  reply = std::move(arrived);
                                  owner.resume(waiter);
                                });
    }

    expected<Reply> await_resume() { return std::move(reply); }
  };

  template <class Reply>
  struct replies_awaiter {
    std::shared_ptr<pending_replies<Reply>> pending;

    [[nodiscard]] bool await_ready() const { return pending->missing == 0; }

    void await_suspend(std::coroutine_handle<> waiter) { pending->waiter = waiter; }

    std::vector<expected<Reply>> await_resume() { return std::move(pending->replies); }
  };

  struct work_awaiter {
    activity& owner;
    work_of_two_kinds work;

    [[nodiscard]] bool await_ready() const { return false; }

    void await_suspend(std::coroutine_handle<> waiter) {
      owner.waiter_ = waiter;
      owner.computing_.begin(std::move(work), owner.is_cancelled());
    }

    work_outcome await_resume() { return owner.computing_.take_outcome(); }
  };

  struct rest_awaiter {
    activity& owner;
    job_time remaining;

    [[nodiscard]] bool await_ready() const { return false; }

    void await_suspend(std::coroutine_handle<> waiter) {
      owner.waiter_ = waiter;
      owner.computing_.begin_rest(remaining, owner.is_cancelled());
    }

    work_outcome await_resume() { return owner.computing_.take_outcome(); }
  };

  struct wake_awaiter {
    activity& owner;
    wake content;

    [[nodiscard]] bool await_ready() const { return false; }

    void await_suspend(std::coroutine_handle<> waiter) {
      owner.sleeper_ = waiter;
      owner.woken_ = &content;
    }

    std::shared_ptr<void> await_resume() {
      if (content.thrown) std::rethrow_exception(content.thrown);
      return std::move(content.value);
    }
  };

  void begin_offload(std::function<void()> work);
  void begin_offload_to(const processor& where, std::string purpose,
                        std::function<void(compute_stream&)> work);

  void resume(std::coroutine_handle<> waiter) {
    run([waiter] { waiter.resume(); });
  }

  replica_actor::pointer self_;
  troupe::world& world_;
  job_time ask_again_after_{0};
  frame_stack frames_;
  void* surroundings_ = nullptr;

  paced_work computing_;
  std::coroutine_handle<> waiter_;  ///< Waits for what is computed.
  std::coroutine_handle<> sleeper_; ///< Waits for a `wake`; null while none does.
  wake* woken_ = nullptr;           ///< Where its content goes.

  uint64_t local_step_ = 0;
  uint64_t needed_from_ = 0; ///< Results for steps before this one are not needed.
  uint64_t iteration_ = 0;
  std::map<std::string, tensor> kept_;
  std::function<void()> when_cancelled_;
};

} // namespace troupe
