// SPDX-License-Identifier: Apache-2.0
// The kind of a message, and its gradient.
#include "simulation/network/in_flight_message.hpp"

#include "actors/interfaces/interfaces.hpp"
#include "actors/interfaces/message_kind.hpp"
#include "messages/message_storage.hpp"

namespace troupe {

const char* kind_of(const parcel& parcel) {
  if (parcel.kind == parcel::content_kind::down) return "down";
  if (parcel.kind != parcel::content_kind::message) return "find";
  if (parcel.content.empty()) return "empty";
  auto [number, type] = parcel.content.type(0);
  const auto* kind = find_message_kind(number, type);
  return kind == nullptr ? "unknown" : kind->name;
}

std::optional<std::pair<uint32_t, uint64_t>> gradient_of(const parcel& parcel) {
  if (!parcel.content.match_elements<msg<wire::PushGradient>>()) return std::nullopt;
  auto origin = parcel.content.get_as<msg<wire::PushGradient>>(0).reader().getOrigin();
  return std::pair{origin.getReplica(), origin.getIteration()};
}

bool is_recalled(const parcel& parcel) {
  if (!parcel.content.match_elements<msg<wire::PushGradient>>()) return false;
  const auto& storage = parcel.content.get_as<msg<wire::PushGradient>>(0).owner();
  return storage && storage->recalled;
}

} // namespace troupe
