// SPDX-License-Identifier: Apache-2.0
// Which replicas of a job are there, and which may still come, without actors.
#pragma once

#include "actors/recording/records.hpp"
#include "actors/world/phases.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// A job goes on as long as enough replicas are there or on their way: some come late, some never,
/// some are lost and come back in a new life.
class replica_roster {
public:
  enum class presence : uint8_t {
    coming,  ///< It has not joined yet.
    live,    ///< It has joined and not left.
    awaited, ///< It was lost, and is expected back.
    gone,    ///< It is not expected; it may join all the same.
  };

  static constexpr std::array transitions{
    leads(presence::coming, presence::live, presence::gone),
    leads(presence::live, presence::live, presence::gone), // a new life may join before the loss
    leads(presence::gone, presence::live, presence::awaited),
    leads(presence::awaited, presence::live, presence::gone),
  };

  replica_roster() = default;

  /// @param absent Replicas that are not expected.
  replica_roster(uint32_t replicas, std::span<const uint32_t> absent);

  /// Replicas that the job has, whatever became of them.
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(members_.size()); }

  /// Whether the job has a replica of this index.
  [[nodiscard]] bool has(uint32_t replica) const { return replica < size(); }

  /// Whether a replica is there, or to come for the first time. @pre has(replica).
  [[nodiscard]] bool expects(uint32_t replica) const;

  /// A replica is there. @pre has(replica).
  void join(uint32_t replica) { move(replica, presence::live); }

  /// A replica leaves, is lost, or will never come. @returns Whether it was live or coming; false
  /// for one that is gone or awaited, and for one that the job does not have.
  [[nodiscard]] bool leave(uint32_t replica);

  /// A replica that has left is expected back. @param now Since when.
  /// @param left_as_asked Whether it left because its process was asked to stop.
  void await(uint32_t replica, job_time now, bool left_as_asked);

  /// An awaited replica is expected no more.
  void give_up(uint32_t replica) { move(replica, presence::gone); }

  /// The replicas in a state, by index, and their number.
  [[nodiscard]] std::vector<uint32_t> all(presence state) const;

  [[nodiscard]] uint32_t count(presence state) const { return counts_[static_cast<size_t>(state)]; }

  [[nodiscard]] std::vector<uint32_t> live() const { return all(presence::live); }

  /// The replicas that are there, or to come for the first time, by index.
  [[nodiscard]] std::vector<uint32_t> all_expected() const;

  [[nodiscard]] std::vector<uint32_t> awaited() const { return all(presence::awaited); }

  /// Replicas that are there or on their way.
  [[nodiscard]] uint32_t left() const { return size() - count(presence::gone); }

  /// Whether a replica that was awaited last left because its process was asked to stop.
  [[nodiscard]] bool left_as_asked(uint32_t replica) const {
    return members_[replica].left_as_asked;
  }

  /// Since when a replica is awaited.
  [[nodiscard]] job_time since(uint32_t replica) const { return members_[replica].lost; }

private:
  struct member {
    phase_in<presence, transitions> now_in{presence::coming};
    job_time lost{0};
    bool left_as_asked = false;
  };

  void move(uint32_t replica, presence next);

  std::vector<member> members_;
  std::array<uint32_t, 4> counts_{}; ///< By presence.
};

} // namespace troupe
