// SPDX-License-Identifier: Apache-2.0
// Each message of links, field by field.
#include "messages/link_message.hpp"

#include "messages/errors/printable.hpp"
#include "messages/message_builder.hpp"
#include "messages/nanoseconds.hpp"
#include "messages/own.capnp.h"
#include "messages/own_message.hpp"

namespace troupe {

msg<wire::Abort> make_abort(const error& reason) {
  message_builder<wire::Abort> message;
  write_error(message.body, reason);
  return std::move(message).finish();
}

msg<wire::Hello> make_hello(const greeting& hello) {
  message_builder<wire::Hello> message;
  message.body.setJob(hello.job);
  message.body.setNodes(hello.nodes);
  message.body.setNode(hello.node);
  message.body.setIncarnation(hello.incarnation);
  message.body.setHeartbeat(static_cast<uint64_t>(hello.heartbeat.count()));
  message.body.setWindow(hello.window);
  return std::move(message).finish();
}

greeting read_hello(wire::Hello::Reader hello) {
  return {.job = hello.getJob(),
          .nodes = hello.getNodes(),
          .node = hello.getNode(),
          .incarnation = hello.getIncarnation(),
          .heartbeat = to_length(hello.getHeartbeat()),
          .window = hello.getWindow()};
}

message_frame make_known_messages(const std::vector<known_message>& known) {
  own_message_builder<wire::KnownMessages> message;
  auto list = message.body.initMessages(static_cast<capnp::uint>(known.size()));
  for (capnp::uint i = 0; i < list.size(); ++i) {
    list[i].setSchema(known[i].schema);
    list[i].setVersion(known[i].version);
    list[i].setName(known[i].name);
  }
  return *frame(std::move(message).finish());
}

expected<std::vector<known_message>> read_known_messages(received_bytes bytes) {
  static const auto schema
    = *read_own_schema(capnp::Schema::from<wire::KnownMessages>(), "KnownMessages");
  auto is_it
    = [](uint64_t id) { return id == capnp::typeId<wire::KnownMessages>() ? &schema : nullptr; };
  auto received = decode_own(std::move(bytes), is_it);
  if (!received) return tl::unexpected<error>(received.error());
  auto list = received->storage->body.as<wire::KnownMessages>().getMessages();
  if (list.size() > limits::own_messages_max)
    return fail(errc::limit_exceeded, "it knows too many messages");
  std::vector<known_message> known;
  for (auto message : list) {
    auto name = message.getName();
    if (name.size() == 0 || name.size() > limits::own_name_bytes_max)
      return fail(errc::malformed, "a message that it knows has no name, or one that is too long");
    known.push_back({message.getSchema(), message.getVersion(), printable(name)});
  }
  return known;
}

msg<wire::FindActor> make_find_actor(std::string_view name) {
  message_builder<wire::FindActor> message;
  message.body.setName(std::string{cut_text(name)});
  return std::move(message).finish();
}

msg<wire::ActorMade> make_actor_made(std::string_view name) {
  message_builder<wire::ActorMade> message;
  message.body.setName(std::string{cut_text(name)});
  return std::move(message).finish();
}

} // namespace troupe
