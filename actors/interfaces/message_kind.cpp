// SPDX-License-Identifier: Apache-2.0
// The table of message kinds, made from the message types.
#include "actors/interfaces/message_kind.hpp"

#include "actors/interfaces/interfaces.hpp"
#include "messages/body.hpp"
#include "messages/errors/assert.hpp"
#include "messages/msg.hpp"

#include <caf/message.hpp>
#include <caf/system_messages.hpp>
#include <capnp/schema.h>

#include <array>
#include <vector>

namespace troupe {

namespace {

// Most bodies have a step of their own; a gradient has it in its origin.
template <class T>
uint64_t step_of_body(const void* message) {
  auto body = static_cast<const msg<T>*>(message)->reader();
  if constexpr (requires { body.getStep(); })
    return body.getStep();
  else if constexpr (requires { body.getLocalStep(); })
    return body.getLocalStep();
  else if constexpr (requires { body.getOrigin().getLocalStep(); })
    return body.getOrigin().getLocalStep();
  else
    return no_step;
}

template <class T>
message_kind wire_kind() {
  return {&typeid(msg<T>), 0, capnp::Schema::from<T>().getShortDisplayName().cStr(),
          step_of_body<T>};
}

template <class T>
uint64_t step_of_local(const void* message) {
  if constexpr (requires(const T& content) { uint64_t{content.step}; })
    return static_cast<const T*>(message)->step;
  else
    return no_step;
}

template <class T>
message_kind local_kind(const char* name) {
  return {&typeid(T), 0, name, step_of_local<T>};
}

template <class T>
message_kind caf_kind(const char* name) {
  return {nullptr, caf::type_nr<T>::value, name, [](const void*) { return no_step; }};
}

template <class... Bodies>
std::array<message_kind, sizeof...(Bodies)> wire_kinds(body_list<Bodies...>) {
  return {wire_kind<Bodies>()...};
}

// CAF's own come first: they are found by number, one after the other.
std::vector<message_kind> make_kinds() {
  std::vector kinds{
    caf_kind<caf::error>("error"),
    caf_kind<caf::exit_msg>("exit"),
    caf_kind<caf::down_msg>("down"),
    caf_kind<caf::timeout_msg>("timeout"),
    local_kind<begin_activity>("begin_activity"),
    local_kind<work_done>("work_done"),
    local_kind<delay_over>("delay_over"),
    local_kind<watch_tick>("watch_tick"),
    local_kind<moment_over>("moment_over"),
    local_kind<wake>("wake"),
    local_kind<step_record>("step_record"),
    local_kind<job_snapshot>("job_snapshot"),
    local_kind<job_report>("job_report"),
    local_kind<give_up>("give_up"),
    local_kind<use_mirror>("use_mirror"),
    local_kind<use_bundle>("use_bundle"),
    local_kind<lend_variable>("lend_variable"),
    local_kind<lent_variable>("lent_variable"),
    local_kind<push_bundle>("push_bundle"),
    local_kind<read_bundle>("read_bundle"),
    local_kind<bundle_values>("bundle_values"),
    local_kind<apply_bundle>("apply_bundle"),
    local_kind<bundle_changed>("bundle_changed"),
    local_kind<watch_owner>("watch_owner"),
    local_kind<watch_job>("watch_job"),
    local_kind<observe_task>("observe_task"),
    local_kind<collect_flight_records>("collect_flight_records"),
    local_kind<merge_arrival>("merge_arrival"),
    local_kind<merge_result>("merge_result"),
    local_kind<departure>("departure"),
    local_kind<rely_on>("rely_on"),
    local_kind<schedule_closure>("schedule_closure"),
    local_kind<await_closures>("await_closures"),
    local_kind<end_service>("end_service"),
    local_kind<closure_ended>("closure_ended"),
    local_kind<device_work>("device_work"),
    local_kind<device_work_done>("device_work_done"),
    local_kind<work_launched>("work_launched"),
    local_kind<work_completed>("work_completed"),
  };
  auto wire = wire_kinds(every_body{});
  kinds.insert(kinds.end(), wire.begin(), wire.end());
  return kinds;
}

// A table by address: kinds are looked up for every message of every actor.
class kind_table {
public:
  kind_table() {
    places_.fill(nullptr);
    for (const auto& kind : message_kinds()) {
      if (kind.type == nullptr) continue;
      auto place = place_of(kind.type);
      while (places_[place] != nullptr)
        place = (place + 1) % places_.size();
      places_[place] = &kind;
    }
  }

  [[nodiscard]] const message_kind* find(const std::type_info* type) const {
    auto place = place_of(type);
    while (places_[place] != nullptr && places_[place]->type != type)
      place = (place + 1) % places_.size();
    return places_[place];
  }

  [[nodiscard]] const message_kind* find(uint16_t number) const {
    for (const auto& kind : message_kinds())
      if (kind.type == nullptr && kind.number == number) return &kind;
    return nullptr;
  }

private:
  [[nodiscard]] static size_t place_of(const std::type_info* type) {
    constexpr uint64_t golden = 0x9e3779b97f4a7c15; // spreads addresses that differ in few bits
    return (reinterpret_cast<uintptr_t>(type) * golden) >> 56;
  }

  std::array<const message_kind*, 256> places_; ///< So many that few are taken.
};

const kind_table& table() {
  static const kind_table kinds;
  return kinds;
}

} // namespace

const message_kind* find_message_kind(uint16_t number, const std::type_info* type) {
  return type != nullptr ? table().find(type) : table().find(number);
}

uint64_t step_of(const caf::message& content) {
  if (content.empty()) return no_step;
  auto [number, type] = content.type(0);
  const auto* kind = find_message_kind(number, type);
  return kind == nullptr ? no_step : kind->step(content.get(0));
}

std::span<const message_kind> message_kinds() {
  static const auto kinds = make_kinds();
  return kinds;
}

} // namespace troupe
