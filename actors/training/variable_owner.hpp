// SPDX-License-Identifier: Apache-2.0
// The variable owner: holds a variable on devices, or on the host with a mirror, for its readers.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"
#include "actors/replication/unmirrored_changes.hpp"
#include "actors/training/owned_variable.hpp"
#include "actors/world/device_end.hpp"
#include "actors/world/phases.hpp"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace troupe {

/// The devices of a variable, as its owner asks them; nothing of it counts on the host.
struct owner_devices {
  /// The variable's copies on all devices but the first, which make the same changes.
  std::vector<std::shared_ptr<owned_variable>> elsewhere;
  size_t requests = 0;               ///< Requests that a device's actor has not answered yet.
  device_end end;                    ///< How a device's actor, the first to do so, has ended.
  std::optional<error> torn;         ///< Why the copies are not alike any more, if so.
  std::vector<bundle_actor> bundles; ///< Bundles with the variable, one for each device.
};

/// The mirror of an owner, and what it is told.
struct owner_mirror {
  replicated_owner_actor handle; ///< Null: there is none.
  uint32_t number = 0;           ///< As the directory counts mirrors.
  uint64_t telling
    = 0; ///< How often it was told all there is: answers to an earlier telling are late.
  unmirrored_changes changes; ///< Changes that it has not made yet.
};

/// An owner that has a mirror tells it of each change, one after the other, and answers the caller
/// of the change when the mirror has made it: a change that a caller knows of is in two places. It
/// tells an update by its gradients or by their outcome, in whichever form has fewer bytes. If the
/// owner cannot reach its mirror, it tells the directory, which sees to it that the mirror does not
/// take over; only then the owner goes on without it. A mirror that has taken over refuses the
/// changes of its former owner, so that an owner that was given up by mistake cannot answer any
/// caller.
///
/// A search for a variable may find its former owner's next life. So a mirror refuses readers, and
/// an owner answers none before its mirror has said that it repeats the owner's changes.
///
/// A change that comes by way of a failover client has a number, since it may be asked for again,
/// of the mirror: the variable knows whether it was made. The mirror is told of it once, however
/// often it is asked for. A caller that reads the variable while the mirror does not know of such a
/// change waits until it does: so no caller has seen a change that is lost with an owner, and made
/// once more later.
///
/// The owner of a variable on a device has no mirror. It hands each request on to the device's
/// actor, which makes them one after the other. It answers when the device has done the work, but
/// an update, and a read of a replica that computes there, when the work is queued. The owner
/// answers such a read by itself while the device has no other work of it. It does not if the
/// variable is part of a bundle, which asks the device's actor, too; the owner tells the bundle of
/// each change by hand.
///
/// A variable with a copy on each of several devices is read where the reader computes, or on the
/// first, and changed on all. If some of them refuse a change, or a checkpoint finds bits that are
/// not the same, the variable is torn: the owner refuses everything but to restore it.
///
/// An owner or mirror that comes back in a new life becomes a mirror of the present holder, which
/// tells it all there is between two changes: from then on it is like any other.
struct variable_owner_state {
  static inline const char* name = "variable_owner";

  enum class phase : uint8_t {
    holding,    ///< It holds the variable.
    unsure,     ///< It holds the variable, unless its mirror answers that another process does.
    mirroring,  ///< It repeats the changes of its owner.
    returning,  ///< It has a new life, and is to be told the changes that it missed.
    taken_over, ///< It was the mirror, and holds the variable.
    deposed,    ///< It has lost the variable to its mirror.
  };

  static constexpr std::array transitions{
    leads(phase::holding, phase::unsure, phase::deposed, phase::returning),
    leads(phase::unsure, phase::holding, phase::deposed, phase::returning),
    leads(phase::mirroring, phase::taken_over, phase::returning),
    leads(phase::returning, phase::mirroring, phase::returning),
    leads(phase::taken_over, phase::deposed, phase::returning),
    leads(phase::deposed, phase::deposed, phase::returning),
  };

  variable_owner_config config;
  std::shared_ptr<owned_variable> variable; ///< Shared with the device, if that works on it.
  owner_devices devices;
  phase_in<phase, transitions> now_in{phase::holding};
  std::vector<std::function<void()>> delayed_answers; ///< Answers that wait while it is `unsure`.
  std::optional<come_back> returned;                  ///< While `returning`.
  owner_mirror mirror;
  accumulator_actor accumulator; ///< Gets the next step when this mirror takes over.
  uint64_t first_step = 0;       ///< The job's first step, as its accumulator has it.
  uint64_t clients = 0;          ///< Clients that have a number, where there is no directory.

  variable_owner_state() = default;

  explicit variable_owner_state(variable_owner_config from);

  /// Whether it holds the variable, as far as it knows.
  [[nodiscard]] bool holds() const {
    return now_in == phase::holding || now_in == phase::unsure || now_in == phase::taken_over;
  }

  /// Whether it is a mirror.
  [[nodiscard]] bool repeats() const {
    return now_in == phase::mirroring || now_in == phase::returning;
  }

  /// Its variable at one of its places.
  [[nodiscard]] const std::shared_ptr<owned_variable>& at(size_t place) const {
    return place == 0 ? variable : devices.elsewhere[place - 1];
  }

  /// Goes to another phase; requests that waited for certainty are answered.
  void enter(phase next);

  /// Its mirror repeats its changes, or takes over no more.
  void become_certain();

  /// Begins to return: a new life knows of no mirror, and forgets the changes that it has told.
  void become_newcomer(const come_back& newcomer);
};

/// The behaviour of a variable owner, or of its mirror.
replicated_owner_actor::behavior_type
variable_owner(observed_pointer<replicated_owner_actor, variable_owner_state> self,
               variable_owner_config config);

} // namespace troupe
