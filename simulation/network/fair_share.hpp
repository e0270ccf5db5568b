// SPDX-License-Identifier: Apache-2.0
// How long transfers take that share network cards.
#pragma once

#include "actors/recording/records.hpp"

#include <cstdint>
#include <optional>
#include <queue>
#include <set>
#include <unordered_map>
#include <vector>

namespace troupe {

/// One transfer of many bytes slows down the others at its two cards. Each card sends and receives
/// so many bytes a second, which its transfers share evenly, in each direction; a transfer has the
/// lesser of its two shares. The others do not get the part that one cannot use: where all
/// transfers are alike, as in training, there is no such part.
///
/// Cost: a transfer that begins or ends touches those at its two cards, once for all that happens
/// at one moment.
class fair_share {
public:
  /// @param bytes_per_second Speed of each card in each direction; above 0.
  explicit fair_share(double bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  /// Begins a transfer. @param factor Multiplies its speed; above 0. @returns Its number.
  uint64_t begin(uint32_t from, uint32_t to, double bytes, double factor, job_time now);

  /// Gives up what has not arrived from or at `card`. @returns The transfers' numbers.
  [[nodiscard]] std::vector<uint64_t> give_up(uint32_t card, job_time now);

  /// Transfers under way from `card`, in the order of beginning.
  [[nodiscard]] std::vector<uint64_t> sent_by(uint32_t card) const;

  /// Gives up one transfer. @pre It is under way.
  void give_up_one(uint64_t number, job_time now);

  /// Ends the transfers that are over at `now`. @returns Their numbers, in the order of beginning.
  [[nodiscard]] std::vector<uint64_t> finish(job_time now);

  /// When the next one is over, if nothing else begins before; nothing if there is none. To be
  /// asked whenever something has begun or ended: shares hold from then on.
  /// @pre Everything that happens at `now` has happened.
  [[nodiscard]] std::optional<job_time> next_end(job_time now);

private:
  struct transfer {
    uint32_t from = 0;
    uint32_t to = 0;
    double bytes = 0; ///< Left at `seen`.
    double speed = 0; ///< Since `seen`, in bytes a second.
    double factor = 1;
    job_time seen{0};
    uint64_t turn = 0; ///< Changes of speed so far: older ends are void.
  };

  /// When a transfer is over, if its speed stays.
  struct planned_end {
    job_time time{0};
    uint64_t transfer = 0;
    uint64_t turn = 0;

    bool operator<(const planned_end& other) const { // the earliest is the top of a queue
      return time != other.time ? time > other.time : transfer > other.transfer;
    }
  };

  /// The transfers of a card in one direction.
  using side = std::unordered_map<uint32_t, std::set<uint64_t>>;

  void end(uint64_t number);
  void settle(job_time now);
  [[nodiscard]] bool is_void(const planned_end& end) const;

  double bytes_per_second_;
  uint64_t begun_ = 0;
  std::unordered_map<uint64_t, transfer> transfers_;
  side sending_;
  side receiving_;
  std::set<uint64_t> unsettled_; ///< Transfers whose speed may have changed at this moment.
  std::priority_queue<planned_end> ends_;
};

} // namespace troupe
