// SPDX-License-Identifier: Apache-2.0
// Which rank sends which elements where, and what becomes of them: decided without actors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace troupe {

/// Positions in a flattened array. Unit: elements.
struct element_range {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool operator==(const element_range&) const = default;

  [[nodiscard]] uint64_t count() const { return end - begin; }

  [[nodiscard]] bool is_empty() const { return begin == end; }

  [[nodiscard]] bool covers(const element_range& other) const {
    return begin <= other.begin && other.end <= end;
  }
};

/// An action of a process on a range. Its *partial* is the sum so far, which it would send: its own
/// contributions, until something was added to them.
enum class step_action : uint8_t {
  send_own,     ///< Its contributions, all of them if their order matters.
  send_partial, ///< The sum so far.
  send_result,  ///< The final values.
  keep_own,     ///< The peer's contributions come, and are kept.
  add,          ///< The peer's partial comes; the partial is now that plus the partial.
  add_last,     ///< As `add`, and the new partial is the result.
  sum_kept,     ///< The result is the sum of all that was kept, and its own, by rank.
  copy_result,  ///< The peer's result comes.
};

/// Whether a step waits for a peer.
[[nodiscard]] constexpr bool is_receiving(step_action action) {
  return action == step_action::keep_own || action == step_action::add
         || action == step_action::add_last || action == step_action::copy_result;
}

/// The peer of a step that sends the same to all.
inline constexpr uint32_t everybody = std::numeric_limits<uint32_t>::max();

/// One thing to do.
struct plan_step {
  step_action action = step_action::send_own;
  uint32_t peer = everybody; ///< A rank; without meaning for `sum_kept`.
  element_range range;

  bool operator==(const plan_step&) const = default;
};

/// Steps that are done one after the other.
using plan_strand = std::vector<plan_step>;

/// The steps of one process. Strands run side by side, each on elements of its own: one waits for a
/// peer while another adds, and many are on their way. Every process has as many strands, and a
/// peer receives in the strand in which the sender sends.
struct collective_plan {
  std::vector<plan_strand> strands;
  /// Strands that are best under way at a time, from the first on: enough that none waits, few
  /// enough that arriving elements find memory that is still in the cache. At least 1; no plan
  /// needs more.
  size_t strands_at_once = 4;
};

/// Where a process is in its group.
struct group_place {
  uint32_t rank = 0;
  uint32_t size = 1;
};

/// How an array is cut.
struct plan_grain {
  uint64_t segment_elements = 1; ///< About as many are sent with one message.
  uint64_t aligned_elements = 1; ///< Cuts are made at multiples of this.
};

/// `parts + 1` positions that cut an array into parts of about the same length, ascending.
[[nodiscard]] std::vector<uint64_t> even_cuts(uint64_t elements, uint32_t parts, uint64_t aligned);

/// The rows of a reduce_scatter's sum that a rank gets: as many as others, or one more if it is
/// among the first.
[[nodiscard]] element_range rows_of(group_place place, uint64_t rows);

/// Every rank sends its contributions to all others, and adds all up.
/// Cost: 1 round; size - 1 times the array is sent and received
[[nodiscard]] collective_plan plan_direct(group_place place, uint64_t elements, plan_grain grain);

/// Every rank that has a slice of the array adds up all contributions to it.
/// @param cuts `place.size + 1` positions between the slices, ascending; a slice may be empty.
/// @param spreads Whether it then sends the sum to all others.
/// Cost: 1 round, with `spreads` 2; if slices are even, (size - 1) / size of the array is sent and
/// received in each
[[nodiscard]] collective_plan plan_all_to_all(group_place place, const std::vector<uint64_t>& cuts,
                                              plan_grain grain, bool spreads);

/// Each rank adds its contributions to the sum of those before it; the last one's sum goes the same
/// way, to all others. The order is that of ranks. @pre `place.size > 1`
/// Cost: 2 size - 2 rounds, of which segments make one; twice the array is sent and received
[[nodiscard]] collective_plan plan_chain(group_place place, uint64_t elements, plan_grain grain);

/// A sum begins at each rank for one slice of the array, and all go round twice: added to, then
/// copied. @pre `place.size > 1`
/// Cost: 2 size - 2 rounds; 2 (size - 1) / size of the array is sent and received
[[nodiscard]] collective_plan plan_ring(group_place place, uint64_t elements, plan_grain grain);

/// Half of the array is swapped and added with the rank half a group away, half of that with the
/// one a quarter away, and so on; then back. Ranks beyond a power of two give theirs to a neighbour
/// before, and get the sum from it. @pre `place.size > 1`
/// Cost: 2 log2 size rounds, rounded down, and 2 more if that is no whole number; with it
/// 2 (size - 1) / size of the array is sent and received, without it up to twice the array more
/// Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
/// MPICH" (2005), section 4.4.
[[nodiscard]] collective_plan plan_halving_doubling(group_place place, uint64_t elements,
                                                    plan_grain grain);

/// Sums go up a binomial tree to rank 0, and the result down again. @pre `place.size > 1`
/// Cost: 2 log2 size rounds, rounded up; rank 0 sends and receives log2 size times the array
[[nodiscard]] collective_plan plan_tree(group_place place, uint64_t elements, plan_grain grain);

/// The root's value goes down a binomial tree.
/// Cost: log2 size rounds, rounded up; the root sends log2 size times the array
[[nodiscard]] collective_plan plan_tree_broadcast(group_place place, uint32_t root,
                                                  uint64_t elements, plan_grain grain);

/// The root's value goes from each rank to the next.
/// Cost: size - 1 rounds, of which segments make one; the array is sent and received once
[[nodiscard]] collective_plan plan_chain_broadcast(group_place place, uint32_t root,
                                                   uint64_t elements, plan_grain grain);

/// The root sends its value to all others.
/// Cost: 1 round; the root sends size - 1 times the array
[[nodiscard]] collective_plan plan_direct_broadcast(group_place place, uint32_t root,
                                                    uint64_t elements, plan_grain grain);

} // namespace troupe
