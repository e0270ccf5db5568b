// SPDX-License-Identifier: Apache-2.0
// Which of CAF's messages is which frame, by tables made of the list of all messages.
#include "actors/net/parcel_codec.hpp"

#include "actors/net/network_messages.hpp"
#include "messages/body.hpp"
#include "messages/checks/visit_plan.hpp"
#include "messages/errors/throw_site.hpp"
#include "messages/link_message.hpp"
#include "messages/own_message.hpp"
#include "messages/training_message.hpp"

#include <caf/exit_reason.hpp>
#include <caf/message_id.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <memory>
#include <type_traits>
#include <typeindex>
#include <unordered_map>

namespace troupe {

namespace {

constexpr uint8_t receiver_down = 255;

/// How a message of one type is taken out of CAF's hands and given into them.
struct message_form {
  std::shared_ptr<const message_storage> (*storage_of)(const caf::message&);
  caf::message (*make)(const any_msg&);
  troupe::lane lane;
};

// Messages that may hold arrays, of whatever length, and what must not pass those: all of one lane,
// so that they keep their order.
template <class T>
lane lane_of() {
  auto follows_arrays = std::is_same_v<T, wire::CollectiveFailed>; // behind its parts
  return plan_for(capnp::Schema::from<T>()).has_tensors || follows_arrays ? lane::bulk
                                                                          : lane::control;
}

template <class T>
message_form form_of() {
  return {[](const caf::message& content) { return content.get_as<msg<T>>(0).owner(); },
          [](const any_msg& message) { return caf::make_message(*message.as<T>()); }, lane_of<T>()};
}

template <class... Bodies>
std::array<message_form, sizeof...(Bodies)> make_forms(body_list<Bodies...>) {
  return {form_of<Bodies>()...};
}

const message_form& form_at(wire::Envelope::Which which) {
  static const auto forms = make_forms(every_body{});
  return forms[static_cast<size_t>(which)];
}

using form_table = std::unordered_map<std::type_index, const message_form*>;

template <class... Bodies>
form_table make_table(body_list<Bodies...>) {
  return {{typeid(msg<Bodies>), &form_at(body_of<Bodies>)}...};
}

// The C++ type of a message, unless it is one of CAF's own.
const std::type_info* content_type(const caf::message& content) {
  if (content.size() != 1) return nullptr;
  auto [number, type] = content.type(0);
  return number == 0 ? type : nullptr;
}

const message_form* find_form(const std::type_info& type) {
  static const auto table = make_table(every_body{});
  auto found = table.find(type);
  return found == table.end() ? nullptr : found->second;
}

// ---- messages of other schemas ----

tl::unexpected<error> does_not_travel(const caf::message& content) {
  constexpr std::string_view ours = "troupe::msg<";
  const auto* type = content_type(content);
  auto name = type == nullptr ? caf::to_string(content) : demangled(type->name());
  if (name.starts_with(ours))
    return fail(errc::unimplemented,
                fmt::format("{} does not travel between nodes: add it to the network_messages of "
                            "every process",
                            name.substr(ours.size(), name.size() - ours.size() - 1)));
  return fail(errc::unimplemented,
              fmt::format("{} does not travel between nodes: it has no schema; send a msg<T> of a "
                          "struct of a Cap'n Proto schema",
                          name));
}

// How a message of another schema is sent. Errors: as `check_travels`.
expected<const network_messages::form*> own_form(const caf::message& content,
                                                 const network_messages* known) {
  const auto* type = content_type(content);
  const auto* form = type && known ? known->find(*type) : nullptr;
  if (form == nullptr) return does_not_travel(content);
  auto storage = form->storage_of(content);
  if (!storage || storage->is_on_device || !storage->received_frame.empty()) return form;
  return check_own_message(*storage, form->schema).map([form] { return form; });
}

// How a message of ours is sent; null if it is none, or was made as one of another schema.
const message_form* form_in_envelope(const caf::message& content) {
  const auto* type = content_type(content);
  const auto* form = type ? find_form(*type) : nullptr;
  if (form == nullptr) return nullptr;
  auto storage = form->storage_of(content);
  return storage && storage->which == own_body ? nullptr : form;
}

// ---- errors ----

uint8_t detail_of(const caf::error& reason) {
  if (!reason) return 0;
  if (reason == caf::sec::request_receiver_down) return receiver_down;
  if (reason.category() == caf::atom("exit"))
    return static_cast<uint8_t>(std::min<int>(1 + reason.code(), receiver_down - 1));
  return 0;
}

expected<encoded_parcel> encode_error(frame_header header, const caf::error& reason) {
  auto ours = from_caf(reason);
  header.detail = detail_of(reason);
  return frame(make_abort(ours)).map([&](message_frame body) {
    header.body_bytes = body.bytes();
    return encoded_parcel{header, std::move(body)};
  });
}

// The error in a frame: one of CAF's if `detail` says so, else one of ours. A code that is none
// becomes an error of no kind in particular.
caf::error error_of(const frame_header& header, wire::Abort::Reader abort) {
  if (header.detail == receiver_down) return caf::sec::request_receiver_down;
  if (header.detail > 0) return {static_cast<uint8_t>(header.detail - 1), caf::atom("exit")};
  auto ours = read_error(abort);
  return ours.code == errc::none ? caf::error{} : to_caf(ours);
}

// ---- what has come ----

expected<caf::message> read_content(const frame_header& header, received_bytes body,
                                    const network_messages* known) {
  auto read_error = [&] {
    return decode<wire::Abort>(std::move(body)).map([&](const msg<wire::Abort>& abort) {
      return error_of(header, abort.reader());
    });
  };
  switch (header.content) {
  case content_code::none:
  case content_code::found:
    if (header.body_bytes == 0) return caf::message{};
    return fail(errc::malformed, "frame with a body that its content does not have");
  case content_code::message:
    return decode_any(std::move(body)).map([](const any_msg& message) {
      return form_at(message.which()).make(message);
    });
  case content_code::own: {
    auto schema_of = [known](uint64_t id) -> const own_schema* {
      const auto* form = known ? known->find(id) : nullptr;
      return form ? &form->schema : nullptr;
    };
    return decode_own(std::move(body), schema_of).map([known](received_own_message own) {
      return known->find(own.schema->type.getProto().getId())->make(std::move(own.storage));
    });
  }
  case content_code::error:
  case content_code::down:
    return read_error().map([](caf::error reason) { return caf::make_message(std::move(reason)); });
  case content_code::exit:
    return read_error().map([](caf::error reason) {
      return caf::make_message(caf::exit_msg{caf::actor_addr{}, std::move(reason)});
    });
  case content_code::find:
    return decode<wire::FindActor>(std::move(body)).map([](const msg<wire::FindActor>& find) {
      return caf::make_message(std::string{find.reader().getName().cStr()});
    });
  }
  return fail(errc::malformed, "frame with a content of no kind");
}

parcel::content_kind kind_of(content_code content) {
  switch (content) {
  case content_code::down:
    return parcel::content_kind::down;
  case content_code::find:
    return parcel::content_kind::find;
  case content_code::found:
    return parcel::content_kind::found;
  default:
    return parcel::content_kind::message;
  }
}

expected<encoded_parcel> with_body(frame_header header,
                                   std::shared_ptr<const message_storage> storage) {
  return message_frame::make(std::move(storage)).map([&](message_frame body) {
    header.body_bytes = body.bytes();
    return encoded_parcel{header, std::move(body)};
  });
}

expected<encoded_parcel> encode_message(frame_header header, const caf::message& content,
                                        const network_messages* known) {
  if (const auto* form = form_in_envelope(content)) {
    header.lane = form->lane;
    header.content = content_code::message;
    return with_body(header, form->storage_of(content));
  }
  auto form = own_form(content, known);
  if (!form) return tl::unexpected<error>(form.error());
  header.lane = (*form)->schema.has_arrays ? lane::bulk : lane::control;
  header.content = content_code::own;
  return with_body(header, (*form)->storage_of(content));
}

// Whether it is one of those that every node knows how to write.
bool is_of_every_node(const parcel& message) {
  const auto& content = message.content;
  return message.kind != parcel::content_kind::message || content.empty()
         || content.match_elements<caf::unit_t>() || content.match_elements<caf::error>()
         || content.match_elements<caf::exit_msg>() || form_in_envelope(content) != nullptr;
}

} // namespace

expected<encoded_parcel> encode_parcel(const parcel& message, const network_messages* known) {
  frame_header header{
    .kind = frame_kind::parcel, .from = message.from, .to = message.to.actor, .id = message.id};
  auto encode_as = [&header](content_code content) {
    header.content = content;
    return header;
  };
  switch (message.kind) {
  case parcel::content_kind::found:
    return encoded_parcel{encode_as(content_code::found), {}};
  case parcel::content_kind::find: {
    auto body = frame(make_find_actor(message.content.get_as<std::string>(0)));
    if (!body) return tl::unexpected<error>(body.error());
    header.content = content_code::find;
    header.body_bytes = body->bytes();
    return encoded_parcel{header, std::move(*body)};
  }
  case parcel::content_kind::down:
    return encode_error(encode_as(content_code::down), message.content.match_elements<caf::error>()
                                                         ? message.content.get_as<caf::error>(0)
                                                         : caf::error{});
  case parcel::content_kind::message:
    break;
  }
  const auto& content = message.content;
  if (content.empty() || content.match_elements<caf::unit_t>())
    return encoded_parcel{encode_as(content_code::none), {}};
  if (content.match_elements<caf::error>())
    return encode_error(encode_as(content_code::error), content.get_as<caf::error>(0));
  if (content.match_elements<caf::exit_msg>())
    return encode_error(encode_as(content_code::exit), content.get_as<caf::exit_msg>(0).reason);
  return encode_message(header, content, known);
}

expected<parcel> decode_parcel(const node_address& at, const frame_header& header,
                               received_bytes body, const network_messages* known) {
  auto charge = body.owner;
  return read_content(header, std::move(body), known).map([&](caf::message content) {
    return parcel{.kind = kind_of(header.content),
                  .to = {at, header.to},
                  .from = header.from,
                  .id = header.id,
                  .content = std::move(content),
                  .charge = std::move(charge)};
  });
}

expected<uint64_t> check_travels(const parcel& message, const network_messages* known) {
  if (is_of_every_node(message)) return 0;
  auto form = own_form(message.content, known);
  if (!form) return tl::unexpected<error>(form.error());
  return message_frame::make((*form)->storage_of(message.content))
    .map([&](const message_frame& body) {
      return (*form)->schema.has_arrays ? uint64_t{body.bytes()} : 0;
    });
}

std::optional<parcel> refusal_of(const parcel& message, const error& why) {
  auto id = caf::make_message_id(message.id);
  if (message.kind != parcel::content_kind::message) return std::nullopt;
  if (!id.is_request() && !id.is_response()) return std::nullopt;
  parcel refusal{.to = message.to, .from = message.from, .id = message.id};
  if (id.is_request())
    refusal
      = {.to = message.from, .from = {message.from.at, 0}, .id = id.response_id().integer_value()};
  refusal.content = caf::make_message(to_caf(why));
  return refusal;
}

} // namespace troupe
