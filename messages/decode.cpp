// SPDX-License-Identifier: Apache-2.0
// Checking a frame: first its segment table, then every pointer, then what the message says.
#include "messages/decode.hpp"

#include "messages/check.hpp"
#include "messages/limits.hpp"
#include "messages/walk.hpp"

#include <capnp/serialize.h>

#include <cstring>

namespace troupe {
namespace {

constexpr size_t bytes_of_word = sizeof(capnp::word);
using words = kj::ArrayPtr<const capnp::word>;

/// A message in the buffer that it came in.
struct received_message final : message_storage {
  received_message(words frame, std::shared_ptr<const void> frame_owner)
    : owner(std::move(frame_owner)), reader(frame, unlimited()) {}

  /// The walk has been through the whole message within the limits, so later readers may read any
  /// part of it any number of times.
  static capnp::ReaderOptions unlimited() {
    return {.traversalLimitInWords = UINT64_MAX, .nestingLimit = limits::nesting_max};
  }

  std::shared_ptr<const void> owner;
  capnp::FlatArrayMessageReader reader;
};

words as_words(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const capnp::word*>(bytes.data()), bytes.size() / bytes_of_word};
}

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
expected<void> check_segment_table(std::span<const std::byte> frame) {
  if (frame.size() > limits::frame_bytes_max)
    return fail(errc::limit_exceeded,
                "frame of " + std::to_string(frame.size()) + " bytes, at most "
                  + std::to_string(limits::frame_bytes_max) + " are accepted");
  if (frame.size() < bytes_of_word || frame.size() % bytes_of_word != 0)
    return fail(errc::malformed,
                "frame of " + std::to_string(frame.size()) + " bytes: no whole number of words");
  auto segments = size_t{read_uint32(frame, 0)} + 1;
  if (segments > limits::segments_max)
    return fail(errc::limit_exceeded, "frame of " + std::to_string(segments) + " segments, at most "
                                        + std::to_string(limits::segments_max) + " are accepted");
  auto table_words = segments / 2 + 1;
  auto needed = table_words;
  if (needed * bytes_of_word <= frame.size())
    for (size_t i = 1; i <= segments; ++i)
      needed += read_uint32(frame, i);
  if (needed * bytes_of_word != frame.size())
    return fail(errc::malformed, "frame of " + std::to_string(frame.size())
                                   + " bytes, its segment table says "
                                   + std::to_string(needed * bytes_of_word));
  return {};
}

expected<void> check_protocol(wire::Envelope::Reader envelope) {
  if (envelope.getProtocol() == wire::PROTOCOL_VERSION) return {};
  return fail(errc::unimplemented, "message of protocol " + std::to_string(envelope.getProtocol())
                                     + ", this build speaks "
                                     + std::to_string(wire::PROTOCOL_VERSION)
                                     + ": run one version everywhere");
}

expected<void> check_body_is_known(wire::Envelope::Reader envelope) {
  auto members = capnp::Schema::from<wire::Envelope>().getUnionFields().size();
  if (envelope.which() < members) return {};
  return fail(errc::unimplemented,
              "message of the unknown kind " + std::to_string(envelope.which()));
}

/// Visits every pointer. A frame with pointers that share a target would pretend to be a larger
/// message, so the walk may read no more words than the frame has; twice as many, because Cap'n
/// Proto counts the root pointer and every pointer between segments twice.
expected<void> check_pointers(words frame, const fault_listener& faults) {
  capnp::FlatArrayMessageReader reader(
    frame, {.traversalLimitInWords = 2 * frame.size(), .nestingLimit = limits::nesting_max});
  auto envelope = reader.getRoot<wire::Envelope>();
  if (faults.heard_any()) return fail(errc::malformed, faults.first());
  return check_protocol(envelope)
    .and_then([&] { return check_body_is_known(envelope); })
    .and_then([&] { return walk(envelope, faults); });
}

expected<any_msg> read_frame(received_bytes bytes, const fault_listener& faults) {
  auto frame = as_words(bytes.frame);
  if (auto checked = check_pointers(frame, faults); !checked)
    return tl::unexpected(std::move(checked.error()));
  auto storage = std::make_shared<received_message>(frame, std::move(bytes.owner));
  auto envelope = storage->reader.getRoot<wire::Envelope>();
  if (auto checked = check_body(envelope); !checked)
    return tl::unexpected(std::move(checked.error()));
  storage->body = body_of_envelope(envelope);
  storage->which = envelope.which();
  storage->received_frame = bytes.frame;
  if (faults.heard_any()) return fail(errc::malformed, faults.first());
  return any_msg(std::move(storage));
}

} // namespace

tl::unexpected<error> any_msg::mismatch(wire::Envelope::Which wanted) const {
  return fail(errc::type_mismatch, std::string("message is a ") + body_name(which())
                                     + ", wanted is a " + body_name(wanted));
}

expected<any_msg> decode_any(received_bytes bytes) {
  if (auto checked = check_segment_table(bytes.frame); !checked)
    return tl::unexpected(std::move(checked.error()));
  align(bytes);
  fault_listener faults;
  try {
    return read_frame(std::move(bytes), faults);
  } catch (const kj::Exception& fault) { // Faults after which Cap'n Proto cannot go on.
    faults.hear(fault);
    return fail(errc::malformed, faults.first());
  }
}

} // namespace troupe
