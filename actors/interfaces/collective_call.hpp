// SPDX-License-Identifier: Apache-2.0
// A call to a communicator, and its result.
#pragma once

#include "actors/interfaces/caf_compat.hpp"
#include "actors/recording/records.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/collective_message.hpp"

#include <caf/actor_control_block.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// A part in a collective: all processes of a group make the same calls in the same order, and each
/// is answered when its share of the outcome is there.
///
/// | kind           | answer                                               |
/// |----------------|------------------------------------------------------|
/// | all_reduce     | the sum of all contributions of all processes        |
/// | all_gather     | all of them, by rank, behind each other along axis 0 |
/// | reduce_scatter | of that sum the rows `rows_of` this rank             |
/// | broadcast      | the root's first contribution                        |
/// | barrier        | nothing: a tensor without elements                   |
///
/// Sums of integers wrap around. Sums of 16-bit floats are rounded once, at the end, if their order
/// is fixed, else also wherever a sum travels.
struct collective_call {
  collective_kind kind = collective_kind::barrier;
  std::string name; ///< Its purpose: "gradient of dense/kernel"; the same everywhere.
  /// One for each replica of this process, in order; not written any more, even after the answer.
  /// The same number everywhere, at most 256, of one shape and dtype; in an all_gather the first
  /// extent may differ. A barrier has none.
  std::vector<tensor> contributions;
  uint32_t root = 0; ///< The rank that gives a broadcast's value.
  collective_algorithm algorithm = collective_algorithm::automatic;
  /// Whether the sum is ((r0 + r1) + r2) + ... over all replicas, whatever their split over
  /// processes; else it is the same everywhere, but its bits depend on the algorithm.
  bool fixed_order = true;
  /// Whether the sum may be written over the contribution. There is one then, in memory that calls
  /// of this group alone read. A long sum takes no memory of its own so; a short one, or one of two
  /// processes up to 32 MiB, still does.
  bool in_place = false;
  job_time timeout{0}; ///< 0: the communicator's own deadline.
  /// Whether devices are to combine the contributions, where a communicator has some: then the
  /// order of a sum is theirs.
  bool on_devices = false;
  /// How many calls, right behind this one, devices are to make together with it: as one.
  uint32_t followers = 0;
};

/// The outcome; its memory may be shared with messages that are still on their way.
struct collective_result {
  tensor value;
};

/// The communicators of a group, by rank, as one of them knows them; null for itself.
struct meet_peers {
  std::vector<caf::strong_actor_ptr> peers;
};

/// The sender wants to know when a group makes no calls any more.
struct await_breakdown {};

/// From now on all calls of a group fail.
struct group_broken {
  error reason; ///< As those calls are answered.
};

/// Most contributions of one process.
inline constexpr uint32_t contributions_max = 256;

} // namespace troupe

TROUPE_LOCAL_MESSAGE(troupe::collective_call)
TROUPE_LOCAL_MESSAGE(troupe::collective_result)
TROUPE_LOCAL_MESSAGE(troupe::meet_peers)
TROUPE_LOCAL_MESSAGE(troupe::await_breakdown)
TROUPE_LOCAL_MESSAGE(troupe::group_broken)
