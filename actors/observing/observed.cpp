// SPDX-License-Identifier: Apache-2.0
// Each message that an actor handles, and why an actor ends, told to the observatory.
#include "actors/observing/observed.hpp"

#include "actors/interfaces/caf_compat.hpp"
#include "messages/errors/failure.hpp"
#include "messages/errors/throw_site.hpp"

#include <caf/exit_reason.hpp>
#include <caf/scheduled_actor.hpp>

#include <cstdio>
#include <fmt/format.h>
#include <string>
#include <string_view>

namespace troupe {

namespace {

// The first message is timed, and then one of so many: clocks cost as much as all else here.
constexpr uint64_t timed_every = 64;

bool is_failure(const caf::error& reason) {
  return reason && reason != caf::exit_reason::normal && reason != caf::exit_reason::user_shutdown;
}

// "msg<trial::Question>" for a message that is none of Troupe's own.
std::string type_name_of(const std::type_info& type) {
  constexpr std::string_view unnamed = "(anonymous namespace)::";
  auto result = demangled(type.name());
  if (result.starts_with(unnamed)) result.erase(0, unnamed.size());
  return result;
}

std::string name_of_message(const caf::message& content) {
  if (content.empty()) return "an empty message";
  auto [number, type] = content.type(0);
  if (const auto* kind = find_message_kind(number, type)) return kind->name;
  return type != nullptr ? type_name_of(*type) : content.cvals()->stringify(0);
}

} // namespace

caf::error why_thrown(caf::scheduled_actor* actor, std::exception_ptr& thrown) {
  auto reason = reason_of(thrown);
  reason.code = errc::user_code; // monitors must not take any other for the loss of a process
  if (const auto* handled = actor->current_mailbox_element()) {
    auto content = handled->copy_content_to_message();
    reason.message += ", while it handled " + name_of_message(content);
    if (auto step = step_of(content); step != no_step)
      reason.message += " of step " + std::to_string(step);
  }
  std::fprintf(stderr, "actor '%s' has ended: %s\n", actor->name(),
               with_throw_site(reason).c_str());
  reason.throw_site = fmt::format("actor '{}'{}{}", actor->name(),
                                  reason.throw_site.empty() ? "" : ", ", reason.throw_site);
  return to_caf(reason);
}

self_observation::self_observation(const caf::actor_system& system, uint64_t actor) {
  const auto* config = dynamic_cast<const observed_system_config*>(&system.config());
  if (config == nullptr || config->observed_by == nullptr) return;
  observatory_ = config->observed_by;
  seen_ = observatory_->watch(actor);
}

job_time self_observation::begin(observation& seen, const caf::mailbox_element& message) {
  const auto& content = message.content();
  auto [number, type] = content.empty() ? caf::rtti_pair{} : content.type(0);
  const auto* kind = find_message_kind(number, type);
  auto now = observatory_->now();
  seen.begin_message({.when = now,
                      .kind = kind,
                      .sender = message.sender ? message.sender->id() : 0,
                      .step = kind != nullptr ? kind->step(content.get(0)) : no_step});
  if (number == caf::type_nr<caf::error>::value) seen.count_error();
  return now;
}

void self_observation::end(observation& seen, caf::invoke_message_result result, job_time began) {
  if (result == caf::invoke_message_result::skipped) return seen.put_back_message();
  if (seen.handled() % timed_every == 0) seen.add_timed(observatory_->now() - began);
  seen.end_message();
}

void self_observation::retire(const caf::error& reason) {
  auto* seen = seen_.exchange(nullptr, std::memory_order_relaxed);
  if (seen == nullptr) return;
  if (is_failure(reason)) seen->count_error();
  observatory_->retire(seen);
}

} // namespace troupe
