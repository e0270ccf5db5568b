// SPDX-License-Identifier: Apache-2.0
// Where the actors of a job stand.
#pragma once

#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace troupe {

/// A job whose actors stand on several nodes is put on stage like any other; only who is handed a
/// handle gets the one that holds where it stands. Actors go by the names by which the world knows
/// them: "replica 3", "owner weights", "accumulator weights", "token queue", "chief".
class placement {
public:
  virtual ~placement() = default;

  /// `actor` stands where its name says.
  virtual void place(const std::string& name, const caf::strong_actor_ptr& actor) = 0;

  /// `actor`, which was placed, as whoever goes by the name `viewer` knows it.
  [[nodiscard]] virtual caf::strong_actor_ptr see(const std::string& viewer,
                                                  const caf::strong_actor_ptr& actor)
    = 0;

  /// Has `come_back` called whenever a replica's node is there again after it was gone, and it has
  /// to be put on stage anew; with an empty function nobody is told any more.
  virtual void on_return(std::function<void(uint32_t replica)> come_back) = 0;

  /// As `place`, of a handle of any kind.
  template <class Handle>
  void put(const std::string& name, const Handle& actor) {
    place(name, caf::actor_cast<caf::strong_actor_ptr>(actor));
  }

  /// As `see`, likewise.
  template <class Handle>
  [[nodiscard]] Handle seen_from(const std::string& viewer, const Handle& actor) {
    return caf::actor_cast<Handle>(see(viewer, caf::actor_cast<caf::strong_actor_ptr>(actor)));
  }
};

} // namespace troupe
