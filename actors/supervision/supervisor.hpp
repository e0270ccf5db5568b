// SPDX-License-Identifier: Apache-2.0
// Supervisors, whose actors begin anew when they fail.
#pragma once

#include "actors/interfaces/caf_compat.hpp"
#include "actors/observing/observed.hpp"
#include "actors/supervision/restart_ledger.hpp"
#include "messages/errors/errc.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <any>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

class world;
class supervised_proxy;

/// A value that an actor hands over to its successor after a failure. Thread: any.
class handed_over_state {
public:
  /// The latest value counts.
  void keep(std::any value) {
    std::lock_guard guard{mutex_};
    value_ = std::move(value);
  }

  /// The value that was kept last; empty, if none was.
  [[nodiscard]] std::any kept() const {
    std::lock_guard guard{mutex_};
    return value_;
  }

private:
  mutable std::mutex mutex_;
  std::any value_;
};

/// The arguments from which a supervised actor is made.
struct child_start {
  uint32_t restarts = 0; ///< How often this actor has begun anew.
  error why;             ///< The reason of the last restart; none at first.

  /// Holds the value that the predecessor has kept, and takes this actor's. Not null.
  std::shared_ptr<handed_over_state> state;
};

/// How a supervisor treats its actors. Objects that its functions refer to outlive the world: its
/// actor may be in one of them when the supervisor ends.
struct supervisor_options {
  restart_options restart{};

  /// Called with a line for every restart, and when the supervisor gives up. Empty: the lines go to
  /// standard error. Thread: that of the supervisor's actor.
  std::function<void(const std::string& line)> on_warning{};

  /// Called when the supervisor has given up. Thread: as above.
  std::function<void(const error& why)> on_give_up{};
};

/// An actor under supervision. It ends when no supervisor holds it any more.
struct supervised_child {
  enum class phase : uint8_t {
    running,
    ending, ///< It was told to end, because an actor that restarts with it has failed.
    down,   ///< It waits for its restart.
    stopped ///< It has ended as it should, or was told to end.
  };

  supervised_child() = default;
  ~supervised_child();
  supervised_child(const supervised_child&) = delete;
  supervised_child& operator=(const supervised_child&) = delete;

  /// Makes the actor. Errors: throws as `make`; throws `failure` with invalid_argument if it
  /// returns no actor.
  void begin();

  std::string name;
  std::function<caf::strong_actor_ptr(const child_start&)> make;
  caf::strong_actor_ptr proxy;
  std::shared_ptr<handed_over_state> state = std::make_shared<handed_over_state>();
  caf::strong_actor_ptr actor{}; ///< The actor that runs now; null if none does.
  phase now_in = phase::running;
  uint32_t restarts = 0;
  error why{};
  std::optional<restart_ledger> failures{}; ///< Unless all actors restart together.

  [[nodiscard]] supervised_proxy& handle() const;
};

/// A message to a supervisor's actor, which supervises the child from now on.
struct supervise_child {
  std::shared_ptr<supervised_child> child;
};

struct stop_child {
  std::weak_ptr<supervised_child> child;
};

/// The backoff of a restart is over.
struct restart_due {
  std::weak_ptr<supervised_child> child; ///< The actor that has failed.
  uint64_t failure = 0; ///< The failure's number: a later one has a backoff of its own.
};

} // namespace troupe

TROUPE_LOCAL_MESSAGE(troupe::supervise_child)
TROUPE_LOCAL_MESSAGE(troupe::stop_child)
TROUPE_LOCAL_MESSAGE(troupe::restart_due)

namespace troupe {

using supervisor_actor = caf::typed_actor<caf::reacts_to<supervise_child>,
                                          caf::reacts_to<stop_child>, caf::reacts_to<restart_due>>;

struct supervisor_state;
using supervisor_pointer = observed_pointer<supervisor_actor, supervisor_state>;

/// The state of a supervisor's actor: its children, in the order in which they were added.
struct supervisor_state {
  static inline const char* name = "supervisor";
  using child_pointer = std::shared_ptr<supervised_child>;

  void add(const child_pointer& child);
  void lose(const caf::actor_addr& gone, const caf::error& reason);
  void stop(supervised_child& child);
  void restart(const restart_due& due);
  void end_all(const error& why, const caf::error& reason);

  supervisor_pointer self = nullptr;
  troupe::world* world = nullptr;
  std::string called;
  supervisor_options options;
  std::vector<child_pointer> children;
  std::optional<restart_ledger> failures; ///< The failures of all actors, if they restart together.
  uint64_t failure_count = 0;
  bool may_begin = false; ///< The last backoff of actors that restart together is over.

private:
  void fail(supervised_child& child, error why);
  void begin_anew(supervised_child& child);
  void restart_all();
  void give_up(const supervised_child& child);
};

/// Spawns the actor of a `supervisor`. @param world Not null; outlives the actor.
[[nodiscard]] supervisor_actor::behavior_type supervise(supervisor_pointer self,
                                                        troupe::world* world,
                                                        const std::string& name,
                                                        supervisor_options options);

/// An actor that dies of an exception, of an error or of a kill is made anew after a moment, alone
/// or with its siblings. One that ends as it should (`normal`, `user_shutdown`) is not.
///
///     supervisor readers{world, "readers", {.restart = {.restarts = 5}}};
///     auto reader = readers.add<reader_actor>("reader 0", [&](const child_start& start) {
///       return world.system().spawn(read, start);
///     });
///
/// Its handle stays the same, can be published, and stands for whichever actor runs now. A question
/// is answered once: by the actor, or with `unavailable` and the reason when the actor ends before,
/// or has ended and is not back. The supervisor repeats no question: it cannot know what was done.
/// With too many failures the supervisor gives up: it ends all its actors, tells why, and monitors
/// of their handles are told.
///
/// The author of an actor decides where its state comes from: `child_start::state` is kept in
/// memory; an actor may ask a peer, or read a checkpoint, when it begins.
///
/// Thread: any. Must not outlive its world.
class supervisor {
public:
  /// @param name Known to observers as "supervisor <name>".
  /// Errors: throws `failure` with invalid_argument for a `within` of 0 or less, and for negative
  /// backoffs.
  supervisor(world& world, std::string name, supervisor_options options = {});

  /// Ends all its actors.
  ~supervisor();

  supervisor(const supervisor&) = delete;
  supervisor& operator=(const supervisor&) = delete;

  /// Calls `make` for the actor now, by this thread, and after each failure, by the supervisor's;
  /// objects that it refers to outlive the world. If it throws, that is a failure of the actor; the
  /// first time the caller gets the exception.
  /// @param name For error messages, "reader 0". @returns The actor's handle.
  /// Errors: throws `failure` with invalid_argument for an empty `make`, or one that returns no
  /// actor.
  template <class Handle>
  [[nodiscard]] Handle add(const std::string& name,
                           std::function<Handle(const child_start&)> make) {
    std::function<caf::strong_actor_ptr(const child_start&)> made;
    if (make)
      made = [make = std::move(make)](const child_start& start) {
        return caf::actor_cast<caf::strong_actor_ptr>(make(start));
      };
    return caf::actor_cast<Handle>(add_child(name, std::move(made)));
  }

private:
  [[nodiscard]] caf::strong_actor_ptr
  add_child(const std::string& name, std::function<caf::strong_actor_ptr(const child_start&)> make);

  troupe::world& world_;
  supervisor_actor actor_;
};

} // namespace troupe
