// SPDX-License-Identifier: Apache-2.0
// The messages by which processes combine arrays, each made by one function.
// collective.capnp says what they mean and when they are sent.
#pragma once

#include "messages/errors/errc.hpp"
#include "messages/msg.hpp"
#include "messages/payload.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The result of a collective over the contributions of all processes; the values are those of
/// `wire::CollectiveKind`.
enum class collective_kind : uint8_t { all_reduce, all_gather, reduce_scatter, broadcast, barrier };

[[nodiscard]] std::string_view name_of(collective_kind kind);

/// Which rank sends what to which; the values are those of `wire::CollectiveAlgorithm`.
enum class collective_algorithm : uint8_t {
  automatic, ///< The best for the array, the processes and the order.
  direct,
  chain,
  ring,
  halving_doubling,
  tree,
  all_to_all,
};

/// The stage of a part's values; the enumerators have the values of `wire::CollectiveStage`.
enum class collective_stage : uint8_t { called, own, partial, result };

/// The collective that a process asks for; the fields are those of `wire::CollectiveMeaning`.
struct collective_meaning {
  collective_kind kind = collective_kind::barrier;
  collective_algorithm algorithm = collective_algorithm::direct;
  bool fixed_order = true;
  uint8_t dtype = 0;
  uint32_t contributions = 0;
  uint32_t root = 0;
  std::string name;
  std::vector<int64_t> extents;

  bool operator==(const collective_meaning&) const = default;
};

/// Some elements of a collective; the fields are those of `wire::CollectivePart`.
struct collective_part {
  uint64_t call = 0;
  uint32_t rank = 0;
  collective_stage stage = collective_stage::called;
  uint32_t strand = 0;
  uint64_t begin = 0;
  std::vector<tensor> values;
};

/// Tells a result from all other results that a communicator is sent.
struct collective_part_key {
  uint64_t call = 0;
  uint32_t rank = 0; ///< The sender's.
  uint32_t strand = 0;
  uint64_t begin = 0;

  auto operator<=>(const collective_part_key&) const = default;
};

/// A part of which the array has not come yet.
struct collective_part_beginning {
  collective_part_key key;
  uint64_t array_bytes = 0; ///< In the frame behind all else.
};

/// A call that has failed; the fields are those of `wire::CollectiveFailed`.
struct collective_failure {
  uint64_t call = 0;
  uint32_t rank = 0;
  error reason;

  bool operator==(const collective_failure&) const = default;
};

/// Some elements. The message refers to the memory of the values.
/// @pre The name is at most `limits::text_bytes_max` long.
[[nodiscard]] msg<wire::CollectivePart> make_collective_part(const collective_meaning& meaning,
                                                             const collective_part& part);

/// A call has failed. A text beyond `limits::text_bytes_max` is cut there.
[[nodiscard]] msg<wire::CollectiveFailed> make_collective_failed(const collective_failure& failure);

/// The fields as a plain value.
[[nodiscard]] collective_meaning read_meaning(wire::CollectiveMeaning::Reader from);

/// Whether `read_meaning` would give `meaning`; allocates nothing.
[[nodiscard]] bool means(wire::CollectiveMeaning::Reader from, const collective_meaning& meaning);

/// The fields as plain values; elements in place.
[[nodiscard]] collective_part read_collective_part(const msg<wire::CollectivePart>& from);

/// The part that a frame begins with, if it is a result in one array, and all but that is there.
/// Nothing has been checked by this but what is told.
/// @param frame Its first bytes; some may be of the array, or of the next frame.
[[nodiscard]] std::optional<collective_part_beginning>
read_part_beginning(std::span<const std::byte> frame);

/// The fields as a plain value.
[[nodiscard]] collective_failure read_collective_failed(wire::CollectiveFailed::Reader from);

} // namespace troupe
