// SPDX-License-Identifier: Apache-2.0
// A message on its way from node to node.
#pragma once

#include "actors/net/parcel.hpp"
#include "actors/recording/records.hpp"

#include <cstdint>
#include <optional>
#include <utility>

namespace troupe {

/// A parcel on its way.
struct in_flight_message {
  node_address from;
  troupe::parcel parcel;
  const char* kind = "";
  job_time sent{0};
  uint64_t own_bytes = 0; ///< Bytes of a bulk message of another schema.
  job_time late{0};       ///< By which a fault makes it come later.
  bool is_out = false;    ///< It has left its node.
  bool is_served = false; ///< The receiving node has been busy with it.

  [[nodiscard]] node_index to() const { return parcel.to.at.node; }
};

/// The kind of a parcel's message: "PushGradient", "Token".
[[nodiscard]] const char* kind_of(const parcel& parcel);

/// A gradient's replica, and its number among that replica's; nothing if it is no gradient.
[[nodiscard]] std::optional<std::pair<uint32_t, uint64_t>> gradient_of(const parcel& parcel);

/// Whether its sender has recalled it, as it may a gradient.
[[nodiscard]] bool is_recalled(const parcel& parcel);

} // namespace troupe
