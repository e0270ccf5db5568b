// SPDX-License-Identifier: Apache-2.0
// Limits of messages: a peer's message beyond one of them is refused.
#pragma once

#include "messages/tensor.capnp.h"

#include <cstddef>

namespace troupe::limits {

/// Most bytes of one frame. A larger variable has to be cut into several.
inline constexpr size_t frame_bytes_max = size_t{16} << 30;

/// Most segments of one frame; Cap'n Proto's own stream reader, and so its tools, end there too.
inline constexpr size_t segments_max = 512;

/// Most pointers from the root to anything in a message.
inline constexpr int nesting_max = 16;

/// Most bytes of one part of a tensor.
inline constexpr size_t part_bytes_max = wire::MAX_PART_BYTES;

/// Most parts of one tensor.
inline constexpr size_t parts_max = 64;

/// Most extents of one tensor; as in NumPy.
inline constexpr size_t rank_max = 32;

/// Most elements of any list in a message: more than a job has replicas.
inline constexpr size_t list_elements_max = size_t{1} << 20;

/// Most bytes of a text; texts in messages are single lines for people.
inline constexpr size_t text_bytes_max = 4096;

/// A tensor of at most so many bytes, a cache line, is copied into its message: that costs less
/// than the segment of its own that a reference takes.
inline constexpr size_t copied_bytes_max = 64;

/// Most requests of one client that a session remembers, and that a failover client makes at a
/// time.
inline constexpr size_t requests_of_client_max = 256;

/// Words of the segment that lies inside a message's own allocation. Messages without tensors fit.
inline constexpr size_t first_segment_words = 40;

// Cap'n Proto counts the bytes of a blob in 29 bits.
static_assert(part_bytes_max <= (size_t{1} << 29) - 1);
// Parts follow each other without a gap only if each is a whole number of words.
static_assert(part_bytes_max % sizeof(capnp::word) == 0);
// A list of structs counts its words in 29 bits; the largest struct has fewer than 16.
static_assert(list_elements_max * 16 <= (size_t{1} << 29) - 1);
// An owner tells its mirror all changes that it remembers, in one list.
static_assert(requests_of_client_max <= list_elements_max);
// The limits agree: a tensor of that many parts fits into a frame of that many segments.
static_assert(parts_max < segments_max);
static_assert(parts_max * part_bytes_max <= frame_bytes_max);

} // namespace troupe::limits
