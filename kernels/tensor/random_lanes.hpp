// SPDX-License-Identifier: Apache-2.0
// Random numbers of eight named streams at once: the bits of `random_stream`, by vector code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe {

/// Streams that are drawn from together.
inline constexpr size_t random_lanes = 8;

/// A number for each of these streams.
using lane_values = std::array<double, random_lanes>;

/// A program that needs one number of each of many streams spends its time on names: a stream's
/// first block costs ten dependent rounds. Here the first blocks of eight consecutive steps share
/// vector registers.
///
///     stream_lanes streams{seed, "computing time"};
///     streams.uniforms(replica, step, first, second);
///     // first[i] is random_stream{{seed, "computing time", replica, step + i}}.uniform()
///
/// Thread: a value; may be used from any thread.
class stream_lanes {
public:
  /// @param purpose As in `random_key`.
  stream_lanes(uint64_t seed, std::string_view purpose);

  /// The first two draws of `uniform` from each of the streams of `index` and the steps from `step`
  /// on.
  void uniforms(uint32_t index, uint64_t step, lane_values& first, lane_values& second) const;

private:
  uint64_t key_;
};

/// Replaces each number by its `portable_log`. @pre Each is finite, and 0 or positive and normal.
void log_lanes(lane_values& x);

/// Replaces each number by its `portable_exp`.
void exp_lanes(lane_values& x);

} // namespace troupe
