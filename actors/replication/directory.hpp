// SPDX-License-Identifier: Apache-2.0
// The directory: knows the holder of each variable, and has mirrors take over.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe {

/// Each process notices the loss of an owner by itself, so one actor must decide which one holds
/// the variable then, or two would. The directory stands in the chief's process, which a job cannot
/// do without anyway, and watches all owners and mirrors.
///
/// | a variable is | until                                           | then                       |
/// |---------------|-------------------------------------------------|----------------------------|
/// | held          | its holder is gone                              | asking, or lost: no mirror |
/// | asking        | the mirror has answered with its last step      | gathering                  |
/// |               | the mirror is gone, too, or was told nothing yet | lost                      |
/// | gathering     | the replicas have given their gradients again   | closing                    |
/// | closing       | the chief's failover client asks the mirror     | held: the mirror holds it  |
/// | either        | the mirror is gone, too                         | lost                       |
///
/// So no step is closed before all gradients that were accepted for it are there again.
///
/// A variable without a mirror is given the first owner that offers itself, in a new life, in the
/// place that was lost. The newcomer is taken in only while the variable is held, so that the
/// holder can fill it. Mirrors are numbered: a holder may hear late that a former one is gone, and
/// its report is about that one only.
///
/// The holder and the mirror of a variable may lose each other, and be there for all others. The
/// mirror is behind from then on and must not take over. As a process that was given up is never
/// taken in again, the mirror's process is given up here, too, and ends; if its variables have
/// mirrors, they take over. The holder waits for that, so that nothing is lost.
struct directory_state {
  static inline const char* name = "directory";

  enum class phase : uint8_t { held, asking, gathering, closing, lost };

  using followed_promise = caf::typed_response_promise<msg<wire::OwnerFollowed>>;

  /// A failover client that wants to know where a variable is.
  struct follower {
    failover_client_actor client;
    bool closes_steps = false;
    uint64_t number = 0;                     ///< Its place among all followers so far, from 1.
    std::optional<followed_promise> promise; ///< Its request, until the holder is certain.
  };

  /// An owner that wants to be the mirror of a variable, in the place that was lost.
  struct newcomer {
    replicated_owner_actor owner;
    bool is_mirrors = false; ///< That place is the mirror's, not the owner's.
    followed_promise may_begin;
  };

  /// One variable.
  struct entry {
    std::string variable;
    replicated_owner_actor holder;
    replicated_owner_actor mirror; ///< Null: there is none.
    uint32_t mirror_number = 0;    ///< The number, from 0, of the last mirror that came.
    bool is_filled = true;         ///< The mirror has the holder's state.
    uint64_t term = 0;             ///< How often mirrors were asked to take over.
    phase now_in = phase::held;
    std::array<uint32_t, 2> processes{}; ///< The processes of the owner's place, and the mirror's.
    std::optional<followed_promise> misses; ///< The holder has lost its mirror, and waits.
    size_t missing = 0; ///< Followers that have been told, in this term, and have not answered.
    msg<wire::TookOver> announcement; ///< The message to followers; empty in the first term.
    std::optional<newcomer> offer;    ///< It waits to become the mirror.

    /// Whether the lost place, which a new mirror takes, was the mirror's at first.
    [[nodiscard]] bool lacks_mirrors() const { return term % 2 == 0; }

    [[nodiscard]] uint32_t holders_process() const { return processes[term % 2]; }

    [[nodiscard]] uint32_t mirrors_process() const { return processes[1 - term % 2]; }
  };

  using give_up_process = std::function<void(uint32_t lost, uint32_t lost_by)>;

  give_up_process part_with; ///< Empty: none can be given up.
  std::set<uint32_t> parted; ///< Processes that are given up, in their present lives.
  std::vector<entry> variables;
  uint64_t follower_count = 0; ///< All followers so far.
  /// By variable; some of them are still to be watched.
  std::unordered_map<size_t, std::vector<follower>> followers;
  /// The variables that a follower, a holder, a mirror, or an owner that offers itself has to do
  /// with.
  std::unordered_multimap<caf::actor_addr, size_t> concerned;
  std::optional<watch_job> job;

  // Since the watcher was last told of losses, and of returns:
  std::set<std::string> reasons;
  std::vector<std::string> moved;          ///< Variables that mirrors hold.
  std::vector<std::string> unmirrored;     ///< Variables that have lost their mirror.
  std::vector<std::string> mirrored_again; ///< Variables that have a mirror again.

  /// An actor is gone. @returns The variables that it had to do with, in ascending order.
  [[nodiscard]] std::set<size_t> forget(const caf::actor_addr& actor);

  /// True while a mirror is about to take over.
  [[nodiscard]] bool is_moving() const;

  /// "node 'ps 1' is gone: 'w1' held by mirrors now; held once from now on: 'w0', 'w1'". Forgets
  /// the losses; empty, if there were none.
  [[nodiscard]] std::string tell_losses();

  /// True while a mirror is being told the state of its variable.
  [[nodiscard]] bool is_filling() const;

  /// "held twice again: 'w0', 'w1'". Forgets the returns; empty, if there were none.
  [[nodiscard]] std::string tell_returns();
};

/// The behaviour of the directory.
/// @param part_with Makes a process end that another one cannot reach; watchers of its actors here
/// hear that they are gone.
directory_actor::behavior_type directory(observed_pointer<directory_actor, directory_state> self,
                                         directory_state::give_up_process part_with);

} // namespace troupe
