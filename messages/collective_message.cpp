// SPDX-License-Identifier: Apache-2.0
// The messages by which processes combine arrays, built and read.
#include "messages/collective_message.hpp"

#include "messages/checks/walk.hpp"
#include "messages/mapped.hpp"
#include "messages/message_builder.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

#include <capnp/message.h>

#include <array>
#include <cstring>
#include <functional>

namespace troupe {
namespace {

void write_meaning(wire::CollectiveMeaning::Builder target, const collective_meaning& meaning) {
  target.setKind(static_cast<wire::CollectiveKind>(meaning.kind));
  target.setAlgorithm(static_cast<wire::CollectiveAlgorithm>(meaning.algorithm));
  target.setIsUnordered(!meaning.fixed_order);
  target.setDtype(static_cast<wire::DType>(meaning.dtype));
  target.setContributions(meaning.contributions);
  target.setRoot(meaning.root);
  target.setName(meaning.name);
  auto shape = target.initShape(static_cast<capnp::uint>(meaning.extents.size()));
  for (capnp::uint i = 0; i < shape.size(); ++i)
    shape.set(i, meaning.extents[i]);
}

// The key of the part in an envelope, of which only the first segment is there.
std::optional<collective_part_key>
read_key(kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) {
  fault_listener faults;
  capnp::SegmentArrayMessageReader reader{segments};
  auto envelope = reader.getRoot<wire::Envelope>();
  if (faults.heard_any() || !envelope.isCollectivePart()) return std::nullopt;
  auto part = envelope.getCollectivePart();
  if (faults.heard_any() || part.getStage() != wire::CollectiveStage::RESULT) return std::nullopt;
  return collective_part_key{part.getCall(), part.getRank(), part.getStrand(), part.getBegin()};
}

bool is_shape(capnp::List<int64_t>::Reader shape, const std::vector<int64_t>& extents) {
  if (shape.size() != extents.size()) return false;
  for (capnp::uint i = 0; i < shape.size(); ++i)
    if (shape[i] != extents[i]) return false;
  return true;
}

} // namespace

std::string_view name_of(collective_kind kind) {
  constexpr std::array<std::string_view, 5> names{"all_reduce", "all_gather", "reduce_scatter",
                                                  "broadcast", "barrier"};
  static_assert(names.size() == static_cast<size_t>(collective_kind::barrier) + 1);
  return names[static_cast<size_t>(kind)];
}

msg<wire::CollectivePart> make_collective_part(const collective_meaning& meaning,
                                               const collective_part& part) {
  message_builder<wire::CollectivePart> message;
  message.body.setCall(part.call);
  message.body.setRank(part.rank);
  write_meaning(message.body.initMeaning(), meaning);
  message.body.setStage(static_cast<wire::CollectiveStage>(part.stage));
  message.body.setStrand(part.strand);
  message.body.setBegin(part.begin);
  auto values = message.body.initValues(static_cast<capnp::uint>(part.values.size()));
  for (capnp::uint i = 0; i < values.size(); ++i)
    write_tensor(*message.storage, values[i], part.values[i]);
  return std::move(message).finish();
}

msg<wire::CollectiveFailed> make_collective_failed(const collective_failure& failure) {
  message_builder<wire::CollectiveFailed> message;
  message.body.setCall(failure.call);
  message.body.setRank(failure.rank);
  message.body.setCode(static_cast<wire::Errc>(failure.reason.code));
  write_reason(message.body, failure.reason.message);
  return std::move(message).finish();
}

collective_meaning read_meaning(wire::CollectiveMeaning::Reader from) {
  return {.kind = static_cast<collective_kind>(from.getKind()),
          .algorithm = static_cast<collective_algorithm>(from.getAlgorithm()),
          .fixed_order = !from.getIsUnordered(),
          .dtype = static_cast<uint8_t>(from.getDtype()),
          .contributions = from.getContributions(),
          .root = from.getRoot(),
          .name = from.getName(),
          .extents = mapped(from.getShape(), std::identity{})};
}

bool means(wire::CollectiveMeaning::Reader from, const collective_meaning& meaning) {
  auto name = from.getName();
  return from.getKind() == static_cast<wire::CollectiveKind>(meaning.kind)
         && from.getAlgorithm() == static_cast<wire::CollectiveAlgorithm>(meaning.algorithm)
         && from.getIsUnordered() != meaning.fixed_order
         && from.getDtype() == static_cast<wire::DType>(meaning.dtype)
         && from.getContributions() == meaning.contributions && from.getRoot() == meaning.root
         && std::string_view{name.begin(), name.size()} == meaning.name
         && is_shape(from.getShape(), meaning.extents);
}

collective_part read_collective_part(const msg<wire::CollectivePart>& from) {
  auto body = from.reader();
  collective_part part{.call = body.getCall(),
                       .rank = body.getRank(),
                       .stage = static_cast<collective_stage>(body.getStage()),
                       .strand = body.getStrand(),
                       .begin = body.getBegin(),
                       .values = {}};
  for (auto value : body.getValues())
    part.values.push_back(read_tensor(value, from.owner()));
  return part;
}

std::optional<collective_part_beginning> read_part_beginning(std::span<const std::byte> frame) {
  constexpr auto word_bytes = sizeof(capnp::word);
  std::array<uint32_t, 4> table{}; // segments less one, the words of each, nothing
  if (frame.size() < sizeof table || reinterpret_cast<uintptr_t>(frame.data()) % word_bytes != 0)
    return std::nullopt;
  std::memcpy(table.data(), frame.data(), sizeof table);
  auto first = frame.subspan(sizeof table);
  if (table[0] != 1 || first.size() / word_bytes < table[1]) return std::nullopt;
  kj::ArrayPtr<const capnp::word> segments[]
    = {{reinterpret_cast<const capnp::word*>(first.data()), table[1]}, {}};
  try {
    auto key = read_key(kj::arrayPtr(segments, std::size(segments)));
    if (!key) return std::nullopt;
    return collective_part_beginning{*key, table[2] * word_bytes};
  } catch (const kj::Exception&) { // Faults after which Cap'n Proto cannot go on.
    return std::nullopt;
  }
}

collective_failure read_collective_failed(wire::CollectiveFailed::Reader from) {
  return {.call = from.getCall(),
          .rank = from.getRank(),
          .reason = read_error(from.getCode(), from.getReason())};
}

} // namespace troupe
