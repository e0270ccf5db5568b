// SPDX-License-Identifier: Apache-2.0
// The part that all copies and slices of a group share: its members, and the actor that asks them.
#pragma once

#include "actors/groups/gatherer.hpp"

#include <caf/actor_control_block.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// The members of a group. Thread: any.
class group_members {
public:
  /// @param name The group's name: observers know it as "group jury". @param names The members'
  /// names. @param world Outlives all copies of the group.
  /// @param size The members by the group's shape. Errors: throws `failure` with invalid_argument
  /// for an empty handle, if there is not one name for each member, or if `size` differs.
  group_members(troupe::world& world, std::string name, std::vector<caf::strong_actor_ptr> actors,
                std::vector<std::string> names, size_t size);

  /// Ends the gatherer. The members go on.
  ~group_members();

  group_members(const group_members&) = delete;
  group_members& operator=(const group_members&) = delete;

  [[nodiscard]] troupe::world& world() const { return world_; }

  [[nodiscard]] const std::string& name() const { return name_; }

  [[nodiscard]] const gatherer_actor& gatherer() const { return gatherer_; }

  [[nodiscard]] const caf::strong_actor_ptr& actor(size_t member) const { return actors_[member]; }

  [[nodiscard]] const std::string& name_of(size_t member) const { return names_[member]; }

  /// A number that no other stream of this group has.
  [[nodiscard]] uint64_t new_stream() const { return ++streams_; }

private:
  troupe::world& world_;
  std::string name_;
  std::vector<caf::strong_actor_ptr> actors_;
  std::vector<std::string> names_;
  gatherer_actor gatherer_;
  mutable std::atomic<uint64_t> streams_{0};
};

/// The number of answers that are enough. Errors: throws `failure` with invalid_argument for more
/// than `members`, and for a limit that is not above 0, or is above ten years.
[[nodiscard]] size_t check_group_options(const std::string& group, const group_options& options,
                                         size_t members);

} // namespace troupe
