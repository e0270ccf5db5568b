// SPDX-License-Identifier: Apache-2.0
// The messages of owners that are replicated, field by field.
#include "messages/replication_message.hpp"

#include "messages/mapped.hpp"
#include "messages/message_builder.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

namespace troupe {

namespace {

void write_latest(wire::ClosedStep::Builder target, const std::vector<gradient_id>& latest) {
  if (latest.empty()) return; // training is synchronous
  auto list = target.initLatest(static_cast<unsigned>(latest.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setReplica(latest[i].replica);
    list[i].setIteration(latest[i].iteration);
  }
}

// Reports are small: they are copied.
void write_closed_step(wire::ClosedStep::Builder target, const closed_step& closed) {
  auto taken = make_taken_gradient(closed.step, closed.accepted, closed.stale);
  target.setTaken(taken.reader());
  auto applied = make_update_applied(closed.applied);
  target.setApplied(applied.reader());
  write_latest(target, closed.latest);
  if (!closed.released) return;
  auto released = make_update_applied(*closed.released);
  target.setReleased(released.reader());
}

// Their arrays are small: they are copied.
void write_made(built_message& storage, wire::MirrorState::Builder target,
                std::span<const made_change> made) {
  if (made.empty()) return;
  auto list = target.initMade(static_cast<unsigned>(made.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    write_request_id(list[i].initId(), made[i].id);
    if (const auto& applied = made[i].applied) {
      auto answer = make_update_applied(*applied);
      list[i].setApplied(answer.reader());
    }
    if (const auto& snapshot = made[i].snapshot) {
      auto answer = list[i].initSnapshot();
      answer.setVersion(snapshot->version);
      write_tensor(storage, answer.initValue(), snapshot->value);
    }
  }
}

} // namespace

msg<wire::MirrorState> make_mirror_state(const variable_payload& state,
                                         const std::optional<closed_step>& closed,
                                         std::span<const made_change> made) {
  message_builder<wire::MirrorState> message;
  write_state(*message.storage, message.body.initState(), state);
  if (closed) write_closed_step(message.body.initClosed(), *closed);
  write_made(*message.storage, message.body, made);
  return std::move(message).finish();
}

msg<wire::FollowOwner> make_follow_owner(uint32_t variable, bool closes_steps) {
  message_builder<wire::FollowOwner> message;
  message.body.setVariable(variable);
  message.body.setClosesSteps(closes_steps);
  return std::move(message).finish();
}

msg<wire::TakeOver> make_take_over(uint64_t term) {
  message_builder<wire::TakeOver> message;
  message.body.setTerm(term);
  return std::move(message).finish();
}

msg<wire::TookOver> make_took_over(uint64_t term, const std::optional<closed_step>& closed) {
  message_builder<wire::TookOver> message;
  message.body.setTerm(term);
  if (closed) write_closed_step(message.body.initClosed(), *closed);
  return std::move(message).finish();
}

msg<wire::TookOver> make_nobody_took_over(const error& reason) {
  message_builder<wire::TookOver> message;
  message.body.setCode(static_cast<wire::Errc>(reason.code));
  write_reason(message.body, reason.message);
  return std::move(message).finish();
}

msg<wire::OwnerFollowed> make_owner_followed() {
  return message_builder<wire::OwnerFollowed>().finish();
}

msg<wire::OwnerFollowed> make_client_known(uint64_t client) {
  message_builder<wire::OwnerFollowed> message;
  message.body.setClient(client);
  return std::move(message).finish();
}

msg<wire::OwnerFollowed> make_mirror_wanted(uint32_t mirror) {
  message_builder<wire::OwnerFollowed> message;
  message.body.setMirror(mirror);
  return std::move(message).finish();
}

msg<wire::OwnersLost> make_owners_lost(std::string_view reason) {
  message_builder<wire::OwnersLost> message;
  write_reason(message.body, reason);
  return std::move(message).finish();
}

msg<wire::OfferMirror> make_offer_mirror(uint32_t variable, bool is_mirrors, bool is_filled) {
  message_builder<wire::OfferMirror> message;
  message.body.setVariable(variable);
  message.body.setIsMirrors(is_mirrors);
  message.body.setIsFilled(is_filled);
  return std::move(message).finish();
}

msg<wire::OfferMirror> make_miss_mirror(uint32_t variable, uint32_t mirror) {
  message_builder<wire::OfferMirror> message;
  message.body.setVariable(variable);
  message.body.setIsMissed(true);
  message.body.setMirror(mirror);
  return std::move(message).finish();
}

msg<wire::RepeatChanges> make_repeat_changes(uint32_t mirror) {
  message_builder<wire::RepeatChanges> message;
  message.body.setMirror(mirror);
  return std::move(message).finish();
}

msg<wire::OwnersMirrored> make_owners_mirrored(std::string_view reason) {
  message_builder<wire::OwnersMirrored> message;
  write_reason(message.body, reason);
  return std::move(message).finish();
}

std::vector<arrival> read_arrivals(capnp::List<wire::Arrival>::Reader from) {
  return mapped(from, read_arrival);
}

std::vector<made_change> read_made_changes(capnp::List<wire::MadeChange>::Reader from,
                                           const std::shared_ptr<const void>& owner) {
  std::vector<made_change> made;
  made.reserve(from.size());
  for (auto change : from) {
    auto& result = made.emplace_back(made_change{read_request_id(change.getId())});
    if (change.hasApplied()) result.applied = read_update_applied(change.getApplied());
    if (!change.hasSnapshot()) continue;
    auto snapshot = change.getSnapshot();
    result.snapshot = {snapshot.getVersion(), read_tensor(snapshot.getValue(), owner)};
  }
  return made;
}

std::optional<closed_step> read_closed_step(wire::ClosedStep::Reader from) {
  if (!from.hasTaken()) return std::nullopt;
  closed_step closed{.step = from.getTaken().getStep(),
                     .accepted = read_arrivals(from.getTaken().getAccepted()),
                     .stale = read_arrivals(from.getTaken().getStale()),
                     .applied = read_update_applied(from.getApplied())};
  if (from.hasReleased()) closed.released = read_update_applied(from.getReleased());
  for (auto gradient : from.getLatest())
    closed.latest.push_back({gradient.getReplica(), gradient.getIteration()});
  return closed;
}

} // namespace troupe
