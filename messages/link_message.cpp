// SPDX-License-Identifier: Apache-2.0
// Each message of links, field by field.
#include "messages/link_message.hpp"

#include "messages/message_builder.hpp"

namespace troupe {

msg<wire::Unimplemented> make_unimplemented(uint16_t body) {
  message_builder<wire::Unimplemented> message;
  message.body.setBody(body);
  return std::move(message).finish();
}

msg<wire::Abort> make_abort(errc code, std::string_view reason) {
  message_builder<wire::Abort> message;
  message.body.setCode(static_cast<wire::Errc>(code));
  write_reason(message.body, reason);
  return std::move(message).finish();
}

msg<wire::Hello> make_hello(const greeting& who) {
  message_builder<wire::Hello> message;
  message.body.setJob(who.job);
  message.body.setNodes(who.nodes);
  message.body.setNode(who.node);
  message.body.setIncarnation(who.incarnation);
  message.body.setHeartbeat(static_cast<uint64_t>(who.heartbeat.count()));
  message.body.setWindow(who.window);
  return std::move(message).finish();
}

greeting read_hello(wire::Hello::Reader hello) {
  return {.job = hello.getJob(),
          .nodes = hello.getNodes(),
          .node = hello.getNode(),
          .incarnation = hello.getIncarnation(),
          .heartbeat = std::chrono::nanoseconds{hello.getHeartbeat()},
          .window = hello.getWindow()};
}

msg<wire::FindActor> make_find_actor(std::string_view name) {
  message_builder<wire::FindActor> message;
  message.body.setName(std::string{cut_text(name)});
  return std::move(message).finish();
}

} // namespace troupe
