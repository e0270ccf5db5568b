// SPDX-License-Identifier: Apache-2.0
// The beginning of a message, and its tensors, which are not copied.
#include "messages/message_builder.hpp"

#include "messages/errors/assert.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/tensor_message.hpp"

#include <capnp/orphan.h>
#include <capnp/schema.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe {
namespace {

bool is_word_aligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % sizeof(capnp::word) == 0;
}

template <class ListBuilder>
void write_extents(ListBuilder target, const std::vector<int64_t>& extents) {
  if (extents.size() > limits::rank_max)
    throw_failure(errc::limit_exceeded,
                  "an array of {} dimensions goes into no message; at most {} are possible",
                  extents.size(), limits::rank_max);
  for (size_t i = 0; i < extents.size(); ++i)
    target.set(static_cast<capnp::uint>(i), extents[i]);
}

void write_parts(built_message& storage, wire::Tensor::Builder target, const tensor& tensor) {
  auto count = (tensor.bytes() + limits::part_bytes_max - 1) / limits::part_bytes_max;
  auto parts = target.initParts(static_cast<capnp::uint>(count));
  const auto* elements = static_cast<const std::byte*>(tensor.data());
  auto is_on_device = tensor.device().kind != device_kind::cpu;
  auto by_reference
    = is_on_device || (tensor.bytes() > limits::copied_bytes_max && is_word_aligned(elements));
  storage.is_on_device |= is_on_device;
  for (size_t i = 0; i < count; ++i) {
    auto begin = i * limits::part_bytes_max;
    auto bytes = std::min(limits::part_bytes_max, tensor.bytes() - begin);
    auto data = reinterpret_cast<const capnp::byte*>(elements) + begin;
    auto part = capnp::Data::Reader(data, bytes);
    if (!by_reference) {
      parts.set(static_cast<capnp::uint>(i), part);
      continue;
    }
    parts.adopt(static_cast<capnp::uint>(i),
                storage.builder.getOrphanage().referenceExternalData(part));
    storage.attachments.push_back({{elements + begin, bytes}, tensor.owner()});
  }
}

bool is_copied(wire::Tensor::Reader tensor) {
  if (tensor.getDeviceKind() != 0) return false;
  size_t bytes = 0;
  for (auto part : tensor.getParts())
    bytes += part.size();
  return bytes <= limits::copied_bytes_max;
}

/// A message of a single segment, and nothing else.
template <size_t words_max>
struct compact_message final : message_storage {
  explicit compact_message(const built_message& finished) {
    auto from = finished.segments[0];
    TROUPE_ASSERT(from.size() <= words_max, from.size());
    std::memcpy(words.data(), from.begin(), from.size() * sizeof(capnp::word));
    segment = kj::arrayPtr(words.data(), from.size());
    segments = kj::arrayPtr(&segment, 1);
    which = finished.which;
    is_on_device = finished.is_on_device;
    body = body_of_envelope(capnp::readMessageUnchecked<wire::Envelope>(words.data()));
  }

  std::array<capnp::word, words_max> words;
  kj::ArrayPtr<const capnp::word> segment;
};

} // namespace

built_message::built_message()
  : builder(kj::arrayPtr(first_segment.data(), first_segment.size())) {}

std::shared_ptr<const message_storage> compact(std::shared_ptr<const built_message> finished) {
  if (finished->segments.size() > 1) return finished;
  auto words = finished->segments[0].size();
  if (words <= 8) return std::make_shared<compact_message<8>>(*finished);
  if (words <= 24) return std::make_shared<compact_message<24>>(*finished);
  return std::make_shared<compact_message<limits::first_segment_words>>(*finished);
}

capnp::AnyPointer::Builder begin_envelope(built_message& storage, wire::Envelope::Which body) {
  static const auto offset
    = 2 * capnp::Schema::from<wire::Envelope>().getProto().getStruct().getDiscriminantOffset();
  auto envelope = storage.builder.initRoot<wire::Envelope>();
  envelope.setProtocol(wire::PROTOCOL_VERSION);
  // Generated code begins a body by a function for each; this does the same for all of them.
  capnp::AnyStruct::Builder fields{std::move(envelope)};
  auto discriminant = static_cast<uint16_t>(body);
  fields.getDataSection()[offset] = static_cast<capnp::byte>(discriminant & 0xff);
  fields.getDataSection()[offset + 1] = static_cast<capnp::byte>(discriminant >> 8);
  return fields.getPointerSection()[0];
}

void write_tensor(built_message& storage, wire::Tensor::Builder target, const tensor& value) {
  target.setDtype(static_cast<wire::DType>(value.type()));
  target.setDeviceKind(static_cast<uint8_t>(value.device().kind));
  target.setDeviceIndex(static_cast<uint16_t>(value.device().index));
  write_extents(target.initShape(static_cast<capnp::uint>(value.rank())), value.extents().dims());
  if (value.is_contiguous()) return write_parts(storage, target, value);
  write_parts(storage, target, value.contiguous());
}

void write_gradient(built_message& storage, wire::Gradient::Builder target,
                    const optional_gradient& gradient) {
  if (!gradient) return target.setNone();
  if (const auto* dense = std::get_if<tensor>(&*gradient))
    return write_tensor(storage, target.initDense(), *dense);
  const auto& sparse = std::get<indexed_slices>(*gradient);
  auto slices = target.initSparse();
  write_tensor(storage, slices.initIndices(), sparse.indices);
  write_tensor(storage, slices.initValues(), sparse.values);
  const auto& extents = sparse.dense_extents.dims();
  write_extents(slices.initDenseShape(static_cast<capnp::uint>(extents.size())), extents);
}

// Copies a small dense gradient as it lies in the other message, without decoding it.
void write_gradient(built_message& storage, wire::Gradient::Builder target,
                    wire::Gradient::Reader gradient, const std::shared_ptr<const void>& owner) {
  if (gradient.isDense() && is_copied(gradient.getDense()))
    target.setDense(gradient.getDense());
  else
    write_gradient(storage, target, read_gradient(gradient, owner));
}

std::string_view cut_text(std::string_view line) {
  if (line.size() <= limits::text_bytes_max) return line;
  auto is_inside_character = [&](size_t index) { return (line[index] & 0xC0) == 0x80; };
  auto end = limits::text_bytes_max;
  while (end > 0 && is_inside_character(end))
    --end;
  return line.substr(0, end);
}

} // namespace troupe
