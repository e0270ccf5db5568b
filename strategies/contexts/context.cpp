// SPDX-License-Identifier: Apache-2.0
// Enters and leaves contexts, and refuses calls in the wrong one.
#include "strategies/contexts/context.hpp"

#include "actors/world/activity.hpp"
#include "messages/errors/throw_failure.hpp"
#include "strategies/contexts/default_strategy.hpp"
#include "strategies/contexts/replica_context.hpp"
#include "strategies/contexts/strategy.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

namespace {

[[noreturn]] void refuse_context(std::string line) {
  throw failure{{errc::wrong_context, std::move(line)}};
}

bool is_cross_replica(context_kind kind) {
  return kind == context_kind::cross_replica || kind == context_kind::update;
}

} // namespace

context_stack& context_stack::current() {
  thread_local context_stack of_thread{true};
  auto* of_coroutine = static_cast<context_stack*>(activity::current_surroundings());
  return of_coroutine != nullptr ? *of_coroutine : of_thread;
}

std::string describe(const context_frame& frame) {
  switch (frame.kind) {
  case context_kind::cross_replica:
    return "the cross-replica context";
  case context_kind::replica:
    return fmt::format("the replica context of replica {}",
                       frame.replica->replica_id_in_sync_group());
  case context_kind::update:
    return fmt::format("the update context of copy {}", *frame.component);
  case context_kind::computing:
    return "the work of `compute`";
  case context_kind::closure:
    return "a function that a coordinator has scheduled";
  default:
    return "the default context";
  }
}

bool has_strategy() {
  auto* owner = context_stack::current().top().owner;
  return owner != nullptr && owner != default_strategy::instance();
}

strategy& get_strategy() {
  if (auto* owner = context_stack::current().top().owner; owner != nullptr) return *owner;
  if (auto* fallback = default_strategy::instance(); fallback != nullptr) return *fallback;
  throw_failure(errc::failed_precondition,
                "get_strategy was called outside every scope, and there is no default strategy; "
                "enter a scope, or make a default_strategy");
}

bool in_cross_replica_context() {
  auto kind = context_stack::current().top().kind;
  return is_cross_replica(kind) || kind == context_kind::closure;
}

replica_context* get_replica_context() {
  return context_stack::current().top().replica;
}

std::optional<uint32_t> get_update_replica_id() {
  return context_stack::current().top().component;
}

void experimental_set_strategy(strategy* chosen) {
  auto& stack = context_stack::current();
  if (!stack.frames_.empty() && !stack.top().is_set)
    refuse_context(
      fmt::format("experimental_set_strategy was called in {}. Must not be called inside a "
                  "`strategy.scope()`; leave it first",
                  describe(stack.top())));
  stack.frames_.clear();
  if (chosen != nullptr)
    stack.push({.kind = context_kind::cross_replica, .owner = chosen, .is_set = true});
}

void context_stack::leave(uint64_t number) {
  frames_.erase(std::ranges::find(frames_, number, &context_frame::number), frames_.end());
}

strategy_scope::strategy_scope(strategy& entered)
  : strategy_(entered), stack_(&context_stack::current()) {
  auto current = stack_->top();
  if (current.kind == context_kind::replica || current.kind == context_kind::computing
      || current.kind == context_kind::closure)
    refuse_context(
      fmt::format("scope was called in {}, but needs the cross-replica context; enter the "
                  "scope around `run`",
                  describe(current)));
  if (current.owner != nullptr && current.owner != &entered)
    refuse_context(
      &entered == default_strategy::instance()
        ? "Must not nest tf.distribute.Strategy scopes: the default strategy's scope was "
          "entered inside that of another; leave that one first"
        : "Mixing different tf.distribute.Strategy objects: scope was called inside the scope "
          "of another strategy; leave that one first");
  number_ = stack_->push({.kind = context_kind::cross_replica,
                          .owner = &entered,
                          .component = current.component,
                          .beside = current.beside});
}

strategy_scope::~strategy_scope() {
  if (stack_ != nullptr) stack_->leave(number_);
}

void strategy_scope::exit() {
  if (stack_ == nullptr) return;
  if (stack_->top().number != number_)
    refuse_context(
      "scope nesting error: a scope was left while another, entered later, was not; leave "
      "them in the order of their nesting");
  stack_->leave(number_);
  stack_ = nullptr;
}

namespace context_check {

void cross_replica(std::string_view call, const strategy& owner) {
  auto frame = context_stack::current().top();
  if (frame.kind == context_kind::default_replica) return;
  if (frame.owner != &owner && frame.owner != nullptr)
    refuse_context(fmt::format("{} was called in {} of another strategy. Mixing different "
                               "tf.distribute.Strategy objects; leave the other scope first",
                               call, describe(frame)));
  if (frame.kind == context_kind::closure)
    refuse_context(
      fmt::format("{} was called in {}; call it where all processes do, before they serve", call,
                  describe(frame)));
  if (!is_cross_replica(frame.kind))
    refuse_context(
      fmt::format("{} was called in {}. Method requires being in cross-replica context, use "
                  "get_replica_context().merge_call()",
                  call, describe(frame)));
}

void blocking(std::string_view call, const strategy& owner, std::string_view awaited) {
  cross_replica(call, owner);
  const auto& stack = context_stack::current();
  if (!stack.may_block())
    refuse_context(
      fmt::format("{} of the strategy was called in {}, inside a coroutine, but it blocks; "
                  "await {} of the cross_replica_context",
                  call, describe(stack.top()), awaited));
}

void waiting(std::string_view call, std::string_view remedy) {
  const auto& stack = context_stack::current();
  if (stack.may_block() && stack.top().kind != context_kind::computing) return;
  refuse_context(
    fmt::format("{} was called in {}, but it blocks; {}", call, describe(stack.top()), remedy));
}

void replica(std::string_view call, const replica_context& context) {
  auto frame = context_stack::current().top();
  if (frame.replica == &context) return;
  if (frame.kind == context_kind::replica)
    refuse_context(
      fmt::format("{} was called for replica {} in {}. Mismatching ReplicaContext; use the "
                  "context that your function was given",
                  call, context.replica_id_in_sync_group(), describe(frame)));
  refuse_context(
    fmt::format("{} was called in {}, but needs the replica context of replica {}; call it in "
                "the function that `run` runs",
                call, describe(frame), context.replica_id_in_sync_group()));
}

} // namespace context_check

} // namespace troupe
