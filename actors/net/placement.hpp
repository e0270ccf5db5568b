// SPDX-License-Identifier: Apache-2.0
// Where the actors of a job stand.
#pragma once

#include "actors/recording/records.hpp"
#include "messages/errors/errc.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace troupe {

class array_places;

/// Looks for one actor, which may be in a process that has not come yet, or is there in a new life,
/// without waiting.
/// @param found Called when the actor is there, on any thread, perhaps at once; with null, if its
/// process ends before; never, if it does not come there. @returns False, if its process has not
/// come yet: nothing will be called, and it is to be asked again later. Thread: any.
using actor_search
  = std::function<bool(const std::function<void(const caf::strong_actor_ptr&)>& found)>;

/// The processes that a job may lose without an end: whether it goes on is seen when one is lost.
struct spared_tasks {
  bool workers = false; ///< All but the chief's process: replicas that are left may be enough.
  bool parameter_servers = false; ///< Variables are held by two of them.

  bool operator==(const spared_tasks&) const = default;
};

/// A job whose actors stand on several nodes is started like any other: the same calls are
/// made in the same order for each of its processes, and a placement says which actors are to be
/// spawned in this one, and gives out the handles that hold where they are needed. Actors go by the
/// names by which the world knows them: "replica 3", "owner weights", "accumulator weights",
/// "token queue", "chief".
///
/// A simulation has all nodes in one process: every actor is spawned here, and only handles differ.
///
/// Thread: the one that made the world.
class placement {
public:
  virtual ~placement() = default;

  /// Whether the job's chief stands in this process.
  [[nodiscard]] virtual bool leads() const { return true; }

  /// The position of this process among the job's; 0 if there is but one.
  [[nodiscard]] virtual uint32_t here() const { return 0; }

  /// The name of this process: "worker:1 (10.0.0.3:2222)"; empty if there is but one.
  [[nodiscard]] virtual std::string name_here() const { return {}; }

  /// The names of the job's other processes, by position.
  [[nodiscard]] virtual std::map<uint32_t, std::string> others() const { return {}; }

  /// How many run the closures of a coordinator; nothing: as many as the strategy has replicas.
  /// They go by the names "worker 0", "worker 1" and so on.
  [[nodiscard]] virtual std::optional<uint32_t> worker_count() const { return std::nullopt; }

  /// How many processes hold owners and talk to each other: a replicated owner needs one for each
  /// copy. Its mirror goes by the name "mirror owner weights", and stands in the process after its
  /// own.
  [[nodiscard]] virtual uint32_t owner_places() const { return 1; }

  /// How long others are waited for.
  [[nodiscard]] virtual job_time start_deadline() const { return std::chrono::seconds{60}; }

  /// An actor is about to be spawned, here or elsewhere; said in every process, before
  /// anything else is said of the actor, again for each actor that follows it under its name.
  /// @param load Its weight, where there are several places for its role: each actor goes to the
  /// place with the smallest sum by then.
  /// @returns Whether it stands here and is to be spawned, and placed.
  /// Errors: invalid_argument, if it has no place anywhere, or a load that cannot be added up.
  [[nodiscard]] virtual expected<bool> enter(const std::string& /*name*/, double /*load*/ = 1) {
    return true;
  }

  /// As `enter`, for an actor that stands in the process of `neighbour`, which has entered before.
  /// No place counts it: the actors that follow stand where they would without it.
  /// Errors: not_found, if nothing has entered as `neighbour`.
  [[nodiscard]] virtual expected<bool> enter_beside(const std::string& name,
                                                    const std::string& /*neighbour*/) {
    return enter(name);
  }

  /// The process where an actor that has entered stands.
  [[nodiscard]] virtual uint32_t where(const std::string& /*name*/) const { return 0; }

  /// Ends all calls of `see`, those to come included; with nothing, `see` waits again.
  /// Thread: any.
  virtual void give_up(const std::optional<error>& /*why*/) {}

  /// A process cannot be reached by another one of the job: it is given up here, too, as if it were
  /// gone, and ends when it hears of that. Thread: any.
  virtual void part_with(uint32_t /*lost*/, uint32_t /*lost_by*/) {}

  /// The memory where arrays for actors of this process are to lie, if they come from other
  /// processes; null if none do.
  [[nodiscard]] virtual std::shared_ptr<array_places> arrays() const { return nullptr; }

  /// Says, in one line, what this process still waits for. Thread: any.
  virtual void tell_waiting(const std::string& /*line*/) {}

  /// The job begins: from now on a process that is refused changes nothing for the others. Said
  /// where the chief stands.
  virtual void begin() {}

  /// The job may outlast the loss of these tasks: for the launcher of this process, if there is one
  /// that wants to know. Said where the chief stands.
  virtual void tell_spared(const spared_tasks& /*spared*/) {}

  /// `actor`, which was spawned here, stands where its name says.
  virtual void place(const std::string& name, const caf::strong_actor_ptr& actor) = 0;

  /// `actor`, which was spawned here and which is never looked for, stands where `neighbour` does.
  virtual void stand_beside(const std::string& /*neighbour*/,
                            const caf::strong_actor_ptr& /*actor*/) {}

  /// The actor that goes by a name, as the actor `viewer`, which stands here, knows it. Waits until
  /// it has been placed in its process. Null if no actor there is ever spoken to from here.
  /// Errors: deadline_exceeded and unavailable, naming the actor and its process; not_found, if no
  /// actor has entered under the name; that of `give_up`; failed_precondition, if this process was
  /// given other settings than the chief's, or the chief's hears that another one was.
  [[nodiscard]] virtual expected<caf::strong_actor_ptr> see(const std::string& viewer,
                                                            const std::string& name)
    = 0;

  /// As `see`, for callers that are not to wait, or that do not need the actor yet. May be used as
  /// long as the job's nodes are there.
  /// Errors: not_found, if no actor has entered under the name.
  [[nodiscard]] virtual expected<actor_search> search(const std::string& viewer,
                                                      const std::string& name)
    = 0;

  /// Has `come_back` called whenever a replica's node is there again after it was gone, and it has
  /// to be spawned anew; with an empty function no more calls are made.
  virtual void on_return(std::function<void(uint32_t replica)> come_back) = 0;

  /// Has `come_back` called whenever a process is there again that was gone, and what it held of
  /// replicated variables has to be spawned anew, here; with an empty function no more calls
  /// are made. Only where one process plays all.
  virtual void on_owners_return(std::function<void(uint32_t process)> /*come_back*/) {}

  /// Has `refused` called if a process is refused before the job has begun, so that it cannot
  /// begin: at once, if that has happened. Where the chief stands. Thread of the call: any.
  virtual void on_refusal(std::function<void(const error& why)> /*refused*/) {}

  /// As `place`, for a handle of any type.
  template <class Handle>
  void put(const std::string& name, const Handle& actor) {
    place(name, caf::actor_cast<caf::strong_actor_ptr>(actor));
  }

  /// As `see`, for a handle of any type.
  template <class Handle>
  [[nodiscard]] expected<Handle> find(const std::string& viewer, const std::string& name) {
    return see(viewer, name).map([](const caf::strong_actor_ptr& actor) {
      return caf::actor_cast<Handle>(actor);
    });
  }
};

} // namespace troupe
