// SPDX-License-Identifier: Apache-2.0
// All actors of a world, for observers.
#pragma once

#include "actors/observing/observation.hpp"

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace troupe {

/// An actor as it was at some moment. Counts of a living one include those of the actors that bore
/// its name before: each run has other replicas, and a counter never goes down.
struct actor_sight {
  std::string name; ///< "replica 3"; "token_queue 17" for one that was not introduced.
  uint64_t actor = 0;
  actor_doing doing = actor_doing::waiting;
  job_time since{0}; ///< When it began to: with its work, or with its last message.
  uint64_t mailbox_depth = 0;
  uint64_t received = 0;
  uint64_t handled = 0;
  uint64_t errors = 0;
  uint64_t timed = 0;
  job_time timed_total{0};
  std::optional<sighting> last;   ///< The message that it handled last, or handles.
  std::vector<sighting> messages; ///< The last ones, oldest first: as many as were asked for.
};

/// Adds what another actor of the name, or of the labels, has received, handled and so on.
void add_counts(actor_sight& sum, const actor_sight& other);

/// A hung job has to be asked what hangs, and a crashed one what it did. An observatory has an
/// observation of every actor of its world, and of the last that ended.
///
/// Observations and names are never freed before the observatory: a signal handler may walk through
/// them at any moment. New actors get the observations of actors that ended long ago.
/// Thread: any.
class observatory {
public:
  /// Actors that ended and can still be seen.
  static constexpr size_t ended_kept_max = 64;

  /// Names whose counts outlast their actors.
  static constexpr size_t names_kept_max = 10'000;

  /// @param clock The world's.
  explicit observatory(std::function<job_time()> clock) : clock_(std::move(clock)) {}

  observatory(const observatory&) = delete;
  observatory& operator=(const observatory&) = delete;

  /// Begins to observe an actor, by its CAF id. The result is the actor's until it is retired.
  [[nodiscard]] observation* watch(uint64_t actor);

  /// The actor is gone; it can be seen for a while, and may not write any more.
  void retire(observation* gone);

  /// Tells the name by which an actor is known. An actor that is not observed is passed over.
  void introduce(uint64_t actor, const std::string& name);

  /// The world's time.
  [[nodiscard]] job_time now() const { return clock_(); }

  /// Every actor, in the order of ids. @param messages How many of each actor's last messages.
  [[nodiscard]] std::vector<actor_sight> look(size_t messages = 0) const;

  /// The observation of an actor, for the actor itself; null if it is not observed.
  [[nodiscard]] observation* find(uint64_t actor) const;

  /// An actor's name, for people; "nobody" for 0.
  [[nodiscard]] std::string name_of(uint64_t actor) const;

  /// The first of all observations, for signal handlers. Null if there is none.
  [[nodiscard]] const observation* first() const { return first_.load(std::memory_order_acquire); }

private:
  void keep_counts(const observation& gone);
  [[nodiscard]] observation* reusable();

  std::function<job_time()> clock_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<observation>> all_;
  std::unordered_map<uint64_t, observation*> by_actor_;
  std::deque<observation*> ended_;          ///< In the order of their ends.
  std::unordered_set<std::string> names_;   ///< All that were told, each once.
  std::map<std::string, actor_sight> past_; ///< By name: the counts of actors that ended.
  std::atomic<const observation*> first_{nullptr};
};

} // namespace troupe
