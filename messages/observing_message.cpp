// SPDX-License-Identifier: Apache-2.0
// The reports of processes about their actors, built and read.
#include "messages/observing_message.hpp"

#include "messages/mapped.hpp"
#include "messages/message_builder.hpp"
#include "messages/nanoseconds.hpp"

namespace troupe {

namespace {

void write_message(wire::SeenMessage::Builder to, const seen_message& seen) {
  to.setWhenNanoseconds(to_count(seen.when));
  to.setKind(seen.kind);
  to.setSender(seen.sender);
  to.setStep(seen.step);
}

void write_actor(wire::ActorReport::Builder to, const actor_report& actor) {
  to.setName(actor.name);
  to.setActor(actor.actor);
  to.setDoing(actor.doing);
  to.setSinceNanoseconds(to_count(actor.since));
  to.setMailboxDepth(actor.mailbox_depth);
  to.setReceived(actor.received);
  to.setHandled(actor.handled);
  to.setErrors(actor.errors);
  to.setTimed(actor.timed);
  to.setTimedNanoseconds(to_count(actor.timed_total));
  auto messages = to.initMessages(static_cast<capnp::uint>(actor.messages.size()));
  for (capnp::uint i = 0; i < messages.size(); ++i)
    write_message(messages[i], actor.messages[i]);
}

seen_message read_message(wire::SeenMessage::Reader from) {
  return {.when = to_length(from.getWhenNanoseconds()),
          .kind = from.getKind(),
          .sender = from.getSender(),
          .step = from.getStep()};
}

actor_report read_actor(wire::ActorReport::Reader from) {
  return {.name = from.getName(),
          .actor = from.getActor(),
          .doing = from.getDoing(),
          .since = to_length(from.getSinceNanoseconds()),
          .mailbox_depth = from.getMailboxDepth(),
          .received = from.getReceived(),
          .handled = from.getHandled(),
          .errors = from.getErrors(),
          .timed = from.getTimed(),
          .timed_total = to_length(from.getTimedNanoseconds()),
          .messages = mapped(from.getMessages(), read_message)};
}

} // namespace

msg<wire::ReadTask> make_read_task(uint32_t messages) {
  message_builder<wire::ReadTask> message;
  message.body.setMessages(messages);
  return std::move(message).finish();
}

msg<wire::TaskReport> make_task_report(const task_report& report) {
  message_builder<wire::TaskReport> message;
  message.body.setClockNanoseconds(to_count(report.clock));
  message.body.setResidentBytes(report.resident_bytes);
  message.body.setCpuSeconds(report.cpu_seconds);
  auto actors = message.body.initActors(static_cast<capnp::uint>(report.actors.size()));
  for (capnp::uint i = 0; i < actors.size(); ++i)
    write_actor(actors[i], report.actors[i]);
  message.body.setLeftOut(report.left_out);
  return std::move(message).finish();
}

task_report read_task_report(wire::TaskReport::Reader from) {
  return {.clock = to_length(from.getClockNanoseconds()),
          .resident_bytes = from.getResidentBytes(),
          .cpu_seconds = from.getCpuSeconds(),
          .actors = mapped(from.getActors(), read_actor),
          .left_out = from.getLeftOut()};
}

} // namespace troupe
