// SPDX-License-Identifier: Apache-2.0
// How long replicas compute, in a simulation.
#pragma once

#include "actors/recording/records.hpp"
#include "kernels/tensor/random_lanes.hpp"

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

class computing_time;

/// A function of a replica and an iteration, of which a `computing_time` is made.
template <class Draw>
concept draws_times = std::is_invocable_r_v<job_time, Draw&, uint32_t,
                                            uint64_t> && !std::same_as<Draw, computing_time>;

/// The time that a replica's n-th gradient takes. The same arguments give the same time in every
/// run, so that two scenarios that differ in one option are compared on the same draws.
class computing_time {
public:
  /// Times of consecutive iterations.
  using block = std::array<job_time, random_lanes>;
  using draw_one = std::function<job_time(uint32_t replica, uint64_t iteration)>;
  using draw_block = std::function<block(uint32_t replica, uint64_t first)>;

  /// @param draw Callable as `draw_one`.
  template <draws_times Draw>
  computing_time(Draw draw) : draw_one_(std::move(draw)) {}

  /// @param many Draws the times that `one` draws one after the other, in less time.
  computing_time(draw_one one, draw_block many)
    : draw_one_(std::move(one)), draw_block_(std::move(many)) {}

  [[nodiscard]] job_time operator()(uint32_t replica, uint64_t iteration) const {
    return draw_one_(replica, iteration);
  }

  /// Whether `ahead` may be called: where a block takes less time than its draws one by one.
  [[nodiscard]] bool draws_ahead() const { return draw_block_ != nullptr; }

  /// The times of the iterations from `first` on.
  [[nodiscard]] block ahead(uint32_t replica, uint64_t first) const {
    return draw_block_(replica, first);
  }

private:
  draw_one draw_one_;
  draw_block draw_block_;
};

/// Every gradient takes the same time.
[[nodiscard]] computing_time constant_time(job_time time);

/// Independent exponential times. @param mean Above 0. @param seed Names the streams.
[[nodiscard]] computing_time exponential_time(job_time mean, uint64_t seed);

/// The times of a real run: `times[replica][iteration]`; a replica that runs out begins again.
/// A replica without times takes what the others take on average.
/// @pre At least one time is given.
[[nodiscard]] computing_time replayed_times(std::vector<std::vector<job_time>> times);

} // namespace troupe
