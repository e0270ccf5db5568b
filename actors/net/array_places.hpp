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
/// lie, and a link that meets the beginning of such a message reads the rest to there. If two
/// messages have the same array, one is used: the first that a link reads to the place, or one in
/// its own memory that the receiver accepts before. So nothing is written to a place that is in
/// use.
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

  /// Whether arrays are expected for an actor.
  [[nodiscard]] bool expects(uint64_t receiver) const;

  /// The place of the array at the end of a frame, for the link that reads it to there.
  /// @param beginning The frame's first bytes, of which nothing has been checked.
  /// @returns Nothing, if it is not expected, or another message was read to its place.
  [[nodiscard]] std::optional<array_place> take(uint64_t receiver,
                                                std::span<const std::byte> beginning);

  /// Whether the receiver is to use a result that has come, which begins at `array`: that in its
  /// place, or any other as long as none is read to there; then none will be.
  [[nodiscard]] bool accept(uint64_t receiver, const collective_part_key& part, const void* array);

  /// Nothing of a call is expected any more.
  void forget(uint64_t receiver, uint64_t call);

  /// The actor expects nothing any more.
  void forget(uint64_t receiver);

private:
  using key = std::tuple<uint64_t, collective_part_key>; ///< The receiver first.

  /// A place, until its call has ended.
  struct entry {
    array_place place;
    bool is_taken = false;
  };

  void forget(const key& first, const key& last);

  mutable std::mutex mutex_;
  std::map<key, entry> places_;
};

} // namespace troupe
