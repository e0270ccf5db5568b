// SPDX-License-Identifier: Apache-2.0
// The checks of a frame: first its segment table, then every pointer, then the message's own rules.
#include "messages/decode.hpp"

#include "messages/checks/check.hpp"
#include "messages/checks/limits.hpp"
#include "messages/checks/visit_plan.hpp"
#include "messages/checks/walk.hpp"
#include "messages/own.capnp.h"
#include "messages/own_message.hpp"

#include <capnp/message.h>

#include <cstring>
#include <vector>

namespace troupe {
namespace {

constexpr size_t bytes_of_word = sizeof(capnp::word);
using words = kj::ArrayPtr<const capnp::word>;

words as_words(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const capnp::word*>(bytes.data()), bytes.size() / bytes_of_word};
}

/// The segments of a frame. Most have one, which takes no memory of its own.
struct frame_segments {
  words only;
  std::vector<words> several{};

  [[nodiscard]] kj::ArrayPtr<const words> list() const {
    return several.empty() ? kj::arrayPtr(&only, 1) : kj::arrayPtr(several.data(), several.size());
  }
};

size_t word_count(kj::ArrayPtr<const words> segments) {
  size_t count = 0;
  for (auto segment : segments)
    count += segment.size();
  return count;
}

/// A message in the buffer that it came in.
struct received_message final : message_storage {
  received_message(frame_segments parts, received_bytes bytes)
    : owner(std::move(bytes.owner)), segments_of_frame(std::move(parts)),
      reader(segments_of_frame.list(), unlimited()) {
    if (bytes.array.empty()) {
      received_frame = bytes.frame;
    } else { // then it is as if it had been built here
      segments = segments_of_frame.list();
      attachments.push_back({bytes.array, std::move(bytes.array_owner)});
    }
  }

  /// The walk has been through the whole message within the limits, so later readers may read any
  /// part of it any number of times.
  static capnp::ReaderOptions unlimited() {
    return {.traversalLimitInWords = UINT64_MAX, .nestingLimit = limits::nesting_max};
  }

  std::shared_ptr<const void> owner;
  frame_segments segments_of_frame;
  capnp::SegmentArrayMessageReader reader;
};

/// Nothing to do in general: buffers from the pools are aligned, and so are frames that follow
/// frames.
void align(received_bytes& bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.frame.data()) % bytes_of_word == 0) return;
  auto count = bytes.frame.size() / bytes_of_word;
  auto copy = std::make_shared_for_overwrite<uint64_t[]>(count);
  std::memcpy(copy.get(), bytes.frame.data(), bytes.frame.size());
  bytes.frame = std::as_bytes(std::span(copy.get(), count));
  bytes.owner = std::move(copy);
}

uint32_t read_uint32(std::span<const std::byte> bytes, size_t index) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
  return value;
}

/// The segment table is inside the frame, and the segments are the rest of it, to the byte.
expected<void> check_segment_table(const received_bytes& bytes) {
  const auto& frame = bytes.frame;
  auto size = frame.size() + bytes.array.size();
  if (size > limits::frame_bytes_max)
    return fail(errc::limit_exceeded, "frame of " + std::to_string(size) + " bytes, at most "
                                        + std::to_string(limits::frame_bytes_max)
                                        + " are accepted");
  if (frame.size() < bytes_of_word || size % bytes_of_word != 0)
    return fail(errc::malformed,
                "frame of " + std::to_string(size) + " bytes: no whole number of words");
  auto segments = size_t{read_uint32(frame, 0)} + 1;
  if (segments > limits::segments_max)
    return fail(errc::limit_exceeded, "frame of " + std::to_string(segments) + " segments, at most "
                                        + std::to_string(limits::segments_max) + " are accepted");
  auto needed = segments / 2 + 1; // for the table
  auto has_table = needed * bytes_of_word <= frame.size();
  for (size_t i = 1; i <= segments && has_table; ++i)
    needed += read_uint32(frame, i);
  if (!has_table || needed * bytes_of_word != size)
    return fail(errc::malformed, "frame of " + std::to_string(size)
                                   + " bytes, its segment table says "
                                   + std::to_string(needed * bytes_of_word));
  if (!bytes.array.empty() && read_uint32(frame, segments) * bytes_of_word != bytes.array.size())
    return fail(errc::malformed, "frame whose last segment is not the array that lies apart");
  return {};
}

/// The segments by the table, which has been checked.
frame_segments segments_of(const received_bytes& bytes) {
  auto count = size_t{read_uint32(bytes.frame, 0)} + 1;
  auto left = as_words(bytes.frame);
  left = left.slice(count / 2 + 1, left.size());
  if (count == 1 && bytes.array.empty()) return {left};
  std::vector<words> segments(count);
  for (size_t i = 0; i < segments.size(); ++i) {
    auto is_apart = i + 1 == segments.size() && !bytes.array.empty();
    auto size = is_apart ? 0 : read_uint32(bytes.frame, i + 1);
    segments[i] = is_apart ? as_words(bytes.array) : left.slice(0, size);
    left = left.slice(size, left.size());
  }
  return {{}, std::move(segments)};
}

expected<void> check_protocol(wire::Envelope::Reader envelope) {
  if (envelope.getProtocol() == wire::PROTOCOL_VERSION) return {};
  return fail(errc::unimplemented, "message of protocol " + std::to_string(envelope.getProtocol())
                                     + ", this build speaks "
                                     + std::to_string(wire::PROTOCOL_VERSION)
                                     + ": run one version everywhere");
}

const visit_plan& envelope_plan() {
  static const auto& plan = plan_for(capnp::Schema::from<wire::Envelope>());
  return plan;
}

expected<void> check_body_is_known(wire::Envelope::Reader envelope) {
  if (envelope.which() < envelope_plan().members.size()) return {};
  return fail(errc::unimplemented,
              "message of the unknown kind " + std::to_string(envelope.which()));
}

/// A frame with pointers that share a target would pretend to be a larger message, so the walk may
/// read no more words than the frame has; twice as many, because Cap'n Proto counts the root
/// pointer and every pointer between segments twice.
capnp::ReaderOptions limited_to(size_t words) {
  return {.traversalLimitInWords = 2 * words, .nestingLimit = limits::nesting_max};
}

/// Visits every pointer.
expected<void> check_pointers(kj::ArrayPtr<const words> segments, const fault_listener& faults) {
  capnp::SegmentArrayMessageReader reader(segments, limited_to(word_count(segments)));
  auto envelope = reader.getRoot<wire::Envelope>();
  if (faults.heard_any()) return fail(errc::malformed, faults.first());
  return check_protocol(envelope)
    .and_then([&] { return check_body_is_known(envelope); })
    .and_then([&] { return walk(envelope, faults); });
}

expected<any_msg> read_frame(received_bytes bytes, const fault_listener& faults) {
  auto segments = segments_of(bytes);
  if (auto checked = check_pointers(segments.list(), faults); !checked)
    return tl::unexpected(std::move(checked.error()));
  auto storage = std::make_shared<received_message>(std::move(segments), std::move(bytes));
  auto envelope = storage->reader.getRoot<wire::Envelope>();
  storage->body = body_of_envelope(envelope);
  storage->which = envelope.which();
  const auto& body = envelope_plan().members[envelope.which()];
  if (auto checked = check_rules(storage->body, *body->inner); !checked)
    return tl::unexpected(std::move(checked.error()));
  if (faults.heard_any()) return fail(errc::malformed, faults.first());
  return any_msg(std::move(storage));
}

/// As `check_pointers`, for a message of another schema.
expected<const own_schema*> check_own_pointers(capnp::MessageReader& reader,
                                               const own_schema_lookup& schemas,
                                               const fault_listener& faults) {
  auto root = reader.getRoot<wire::OwnMessage>();
  if (faults.heard_any()) return fail(errc::malformed, faults.first());
  const auto* schema = schemas(root.getSchema());
  if (schema == nullptr)
    return fail(errc::unimplemented, "message of an unknown schema: add it to the "
                                     "network_messages of every process");
  return walk(root.getBody().getAs<capnp::DynamicStruct>(schema->type), faults).map([&] {
    return schema;
  });
}

expected<received_own_message> read_own_frame(received_bytes bytes,
                                              const own_schema_lookup& schemas,
                                              const fault_listener& faults) {
  auto segments = segments_of(bytes);
  auto list = segments.list();
  capnp::SegmentArrayMessageReader reader(list, limited_to(word_count(list)));
  auto schema = check_own_pointers(reader, schemas, faults);
  if (!schema) return tl::unexpected(std::move(schema.error()));
  auto storage = std::make_shared<received_message>(std::move(segments), std::move(bytes));
  storage->body = storage->reader.getRoot<wire::OwnMessage>().getBody().getAs<capnp::AnyStruct>();
  if (auto checked = check_rules(storage->body, plan_for((*schema)->type)); !checked)
    return tl::unexpected(std::move(checked.error()));
  storage->which = own_body;
  if (faults.heard_any()) return fail(errc::malformed, faults.first());
  return received_own_message{*schema, std::move(storage)};
}

expected<void> check_built(const message_storage& built, const own_schema& schema,
                           const fault_listener& faults) {
  capnp::SegmentArrayMessageReader reader(built.segments, limited_to(word_count(built.segments)));
  return check_own_pointers(
           reader, [&](uint64_t) { return &schema; }, faults)
    .and_then([&](const own_schema*) { return check_rules(built.body, plan_for(schema.type)); });
}

/// Checks the segment table, then has `read` read the aligned frame.
template <class Result, class Read>
expected<Result> read_checked(received_bytes bytes, const Read& read) {
  if (auto checked = check_segment_table(bytes); !checked)
    return tl::unexpected(std::move(checked.error()));
  align(bytes);
  fault_listener faults;
  try {
    return read(std::move(bytes), faults);
  } catch (const kj::Exception& fault) { // Faults after which Cap'n Proto cannot go on.
    faults.hear(fault);
    return fail(errc::malformed, faults.first());
  }
}

} // namespace

tl::unexpected<error> any_msg::mismatch(wire::Envelope::Which body) const {
  return fail(errc::type_mismatch, std::string("message is a ") + body_name(which())
                                     + ", wanted is a " + body_name(body));
}

expected<any_msg> decode_any(received_bytes bytes) {
  return read_checked<any_msg>(std::move(bytes), read_frame);
}

expected<received_own_message> decode_own(received_bytes bytes, const own_schema_lookup& schemas) {
  return read_checked<received_own_message>(
    std::move(bytes), [&](received_bytes aligned, const fault_listener& faults) {
      return read_own_frame(std::move(aligned), schemas, faults);
    });
}

expected<void> check_own_message(const message_storage& built, const own_schema& schema) {
  auto named = [&schema](const error& reason) {
    return fail(reason.code, schema.name + " cannot travel: " + reason.message);
  };
  fault_listener faults;
  try {
    auto checked = check_built(built, schema, faults);
    if (!checked) return named(checked.error());
    return {};
  } catch (const kj::Exception& fault) {
    faults.hear(fault);
    return named({errc::malformed, faults.first()});
  }
}

} // namespace troupe
