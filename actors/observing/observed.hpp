// SPDX-License-Identifier: Apache-2.0
// The base of every actor of a job, by which observers see it.
#pragma once

#include "actors/observing/observatory.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <atomic>
#include <exception>
#include <utility>

namespace troupe {

/// The configuration of an actor system with observed actors.
struct observed_system_config : caf::actor_system_config {
  explicit observed_system_config(observatory* observer) : observed_by(observer) {}

  observatory* observed_by; ///< Outlives the system; null if there is none.
};

/// Records an actor's messages and its end in the observatory of its system, if there is one.
class self_observation {
public:
  explicit self_observation(const caf::actor_system& system, uint64_t actor);

  /// As of `observation`. Nothing is counted for an actor that has ended: it may be sent to as long
  /// as its handle is held, and its observation may be another actor's by then.
  void receive() {
    if (auto* seen = seen_.load(std::memory_order_relaxed)) seen->receive();
  }

  void set_role(const char* role) {
    if (auto* seen = seen_.load(std::memory_order_relaxed)) seen->set_role(role);
  }

  /// Has `consume` handle the message, and writes down that it does.
  template <class Consume>
  caf::invoke_message_result handle(const caf::mailbox_element& message, const Consume& consume) {
    auto* seen = seen_.load(std::memory_order_relaxed);
    if (seen == nullptr) return consume();
    auto began = begin(*seen, message);
    auto result = consume();
    end(*seen, result, began);
    return result;
  }

  /// The actor is gone, for some reason.
  void retire(const caf::error& reason);

private:
  job_time begin(observation& seen, const caf::mailbox_element& message);
  void end(observation& seen, caf::invoke_message_result result, job_time began);

  observatory* observatory_ = nullptr;
  std::atomic<observation*> seen_{nullptr}; ///< Null if it is not observed, or has ended.
};

/// The reason with which an actor ends that has thrown: the exception's text, and the message that
/// the actor was handling. Monitors get it, where CAF tells no more than that there was an
/// exception; a line on standard error has it, too.
[[nodiscard]] caf::error why_thrown(caf::scheduled_actor* actor, std::exception_ptr& thrown);

/// CAF 0.17 does not tell what its actors do. This counts at the two places that every message
/// passes: where it enters the mailbox, and where it is taken out.
///
/// Cost: 35 ns a message in the threads world, of which the clock takes 25.
template <class Base>
class observed : public Base {
public:
  explicit observed(caf::actor_config& config) : Base(config), seen_(this->system(), this->id()) {}

  using Base::enqueue;

  void enqueue(caf::mailbox_element_ptr message, caf::execution_unit* host) override {
    seen_.receive();
    Base::enqueue(std::move(message), host);
  }

  using Base::consume;

  caf::invoke_message_result consume(caf::mailbox_element& message) override {
    return seen_.handle(message, [this, &message] { return Base::consume(message); });
  }

  void initialize() override {
    seen_.set_role(this->name());
    this->set_exception_handler(why_thrown);
    Base::initialize();
  }

  bool cleanup(caf::error&& reason, caf::execution_unit* host) override {
    seen_.retire(reason);
    return Base::cleanup(std::move(reason), host);
  }

private:
  self_observation seen_;
};

/// How such an actor refers to itself: its handle's actor, with a state, observed.
template <class Handle, class State>
using observed_pointer = caf::stateful_actor<State, observed<typename Handle::base>>*;

} // namespace troupe
