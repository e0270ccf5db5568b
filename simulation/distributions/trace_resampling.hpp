// SPDX-License-Identifier: Apache-2.0
// Computing times of more steps and more replicas than were measured.
#pragma once

#include "simulation/distributions/trace_table.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// A trace is finite. To repeat it would make every pass, and every replica beyond its columns, an
/// exact copy: a maximum over copies is no longer than one over the originals. So what goes beyond
/// the trace is a block bootstrap of it:
///
/// - The draws of the trace's own replicas are those that were measured, in their order. Later
///   draws are blocks of consecutive draws, each from a place that the seed chooses. Blocks keep
///   what lasts for several draws.
/// - Replicas beyond the columns take the columns again, in groups of as many as there are columns,
///   each group in an order that the seed chooses. So each group has the trace's share of slow
///   replicas. All their draws are blocks.
/// - All replicas of a group have a block from the same place, and groups have places of their own.
///   Blocks keep what all replicas share.
///
/// Source: Politis and Romano, "A circular block-resampling procedure for stationary data", 1992.
/// Thread: one at a time.
class trace_resampling {
public:
  /// @param stream Tells its draws from those of other traces of the same seed.
  trace_resampling(std::shared_ptr<const trace_table> table, uint64_t seed,
                   const std::string& stream);

  /// The seconds of a replica's draw.
  [[nodiscard]] double at(uint32_t replica, uint64_t draw);

  /// Consecutive draws that are taken together: the square root of what was measured, rounded up.
  [[nodiscard]] static uint64_t block_length(uint64_t draw_count);

private:
  [[nodiscard]] const std::vector<uint32_t>& columns_of(uint32_t group);
  [[nodiscard]] uint64_t first_of_block(uint32_t group, uint64_t block, uint64_t draw_count) const;

  std::shared_ptr<const trace_table> table_;
  uint64_t seed_;
  std::string places_; ///< Name streams, as the next.
  std::string orders_;
  std::map<uint32_t, std::vector<uint32_t>> columns_; ///< By group, in its order.
};

} // namespace troupe
