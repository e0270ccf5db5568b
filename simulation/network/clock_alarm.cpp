// SPDX-License-Identifier: Apache-2.0
// An actor without a mailbox: what the clock delivers to it happens at once.
#include "simulation/network/clock_alarm.hpp"

#include "actors/interfaces/activity_messages.hpp"

#include <caf/actor_config.hpp>
#include <caf/actor_proxy.hpp>
#include <caf/actor_system.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_actor.hpp>

#include <utility>

namespace troupe {

namespace {

class bell final : public caf::actor_proxy {
public:
  bell(caf::actor_config& config, std::weak_ptr<std::function<void()>> ring)
    : caf::actor_proxy(config), ring_(std::move(ring)) {}

  void enqueue(caf::mailbox_element_ptr /*message*/, caf::execution_unit* /*host*/) override {
    if (auto ring = ring_.lock()) (*ring)();
  }

  void kill_proxy(caf::execution_unit* /*host*/, caf::error /*reason*/) override {}

private:
  std::weak_ptr<std::function<void()>> ring_;
};

} // namespace

clock_alarm::clock_alarm(caf::actor_system& system, std::function<void()> ring)
  : system_(system), ring_(std::make_shared<std::function<void()>>(std::move(ring))) {
  caf::actor_config config;
  receiver_ = caf::make_actor<bell, caf::strong_actor_ptr>(system.next_actor_id(), system.node(),
                                                           &system, config, std::weak_ptr{ring_});
}

clock_alarm::~clock_alarm() = default;

void clock_alarm::set(caf::actor_clock::time_point time) {
  system_.clock().schedule_message(
    time, receiver_, caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, watch_tick{}));
}

caf::actor_clock::time_point clock_alarm::now() const {
  return system_.clock().now();
}

} // namespace troupe
