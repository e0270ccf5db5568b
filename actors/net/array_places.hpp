// SPDX-License-Identifier: Apache-2.0
// Memory that arrays of messages are read into, where their receivers expect them.
#pragma once

#include "messages/collective_message.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>

namespace troupe {

/// Memory for one array that is still to come.
struct array_place {
  std::span<std::byte> memory;       ///< As long as the array.
  std::shared_ptr<const void> owner; ///< Keeps `memory` alive.
};

/// A long array is copied once for nothing if a link reads it into memory of its own, and the
/// receiver needs it elsewhere. A receiver that knows which arrays will come says where they are to
/// lie, and a link that meets the beginning of such a message reads the rest to there. Each place
/// is used once: a message that comes twice, or before its place is known, lies in its own memory.
///
/// Thread: any.
class array_places {
public:
  /// Shorter arrays are not worth a place.
  static constexpr size_t bytes_min = size_t{64} << 10;

  /// The result in a part of a collective is to be read to `place`. Without effect if the memory is
  /// shorter than `bytes_min`, or is not made of whole words of 8 bytes.
  /// @param receiver Actor that the part is for, at this node.
  void expect(uint64_t receiver, const collective_part_key& part, array_place place);

  /// Nothing of a call is expected any more. Arrays that are being read to a place still are.
  void forget(uint64_t receiver, uint64_t call);

  /// Whether arrays are expected for an actor.
  [[nodiscard]] bool expects(uint64_t receiver) const;

  /// The place of the array at the end of a frame, which is used by this.
  /// @param beginning The frame's first bytes, of which nothing has been checked.
  [[nodiscard]] std::optional<array_place> take(uint64_t receiver,
                                                std::span<const std::byte> beginning);

private:
  using key = std::tuple<uint64_t, collective_part_key>; ///< The receiver first.

  mutable std::mutex mutex_;
  std::map<key, array_place> places_;
};

} // namespace troupe
