// SPDX-License-Identifier: Apache-2.0
// One actor seen from outside: counters, and its last messages.
#pragma once

#include "actors/interfaces/message_kind.hpp"
#include "actors/recording/records.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

namespace troupe {

/// A message that an actor began to handle.
struct sighting {
  job_time when{0};
  const message_kind* kind = nullptr; ///< Null if it is not known.
  uint64_t sender = 0;                ///< The CAF id of its sender; 0 for none, and from 2^24 on.
  uint64_t step = no_step;            ///< The step that it is about; none from 2^32 - 1 on.
};

/// The present activity of an actor.
enum class actor_doing : uint8_t {
  waiting,   ///< For a message.
  working,   ///< It handles a message.
  computing, ///< It waits for work of its own: a replica's gradient, with the delay of its pace.
  ended,
};

/// "waiting", "working", "computing" or "ended".
[[nodiscard]] constexpr const char* to_string(actor_doing doing) {
  constexpr const char* names[] = {"waiting", "working", "computing", "ended"};
  return names[static_cast<size_t>(doing)];
}

/// A reader of what an actor is doing must not make it wait, and may be the handler of the signal
/// that it died of. So the actor alone writes here, and a reader puts up with a moment's difference
/// between two figures: no lock, no allocation, no pointer that could dangle.
///
/// Thread: `receive` and all const members any, at any time; the others the one that runs the
/// actor.
class observation {
public:
  static constexpr size_t messages_kept = 64;

  explicit observation(uint64_t actor) { begin_anew(actor); }

  /// Makes this the observation of another actor. @pre The one before has ended: at most a late
  /// sender, which may count a message too many, and a signal handler still look at it.
  void begin_anew(uint64_t actor);

  // -- written by the actor and its senders --

  /// A message has come into the mailbox.
  void receive() { received_.fetch_add(1, std::memory_order_relaxed); }

  /// The actor takes a message out of it. Cost: one cache line of the ring.
  void begin_message(const sighting& seen) {
    auto number = begun_.load(std::memory_order_relaxed);
    begun_.store(number + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    ring_[number % messages_kept].write(seen);
    written_.store(number + 1, std::memory_order_release);
  }

  /// The actor is done with it.
  void end_message() {
    done_.store(begun_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

  /// The message was put back: it is as if it had not been taken out.
  void put_back_message();

  /// Work begins that the actor waits for while others do it.
  void begin_computing(job_time when) {
    computing_since_.store(when.count(), std::memory_order_relaxed);
  }

  /// The work is done.
  void end_computing() { computing_since_.store(not_computing, std::memory_order_relaxed); }

  /// How long a message took; told of some of them.
  void add_timed(job_time took);

  /// Something failed: a request was answered with an error, or the actor died of one.
  void count_error() { errors_.store(errors() + 1, std::memory_order_relaxed); }

  /// The actor is gone.
  void end() { ended_.store(true, std::memory_order_release); }

  /// Says which kind of actor it is. @param role Lives as long as the process.
  void set_role(const char* role) { role_.store(role, std::memory_order_relaxed); }

  /// Its name in the job. @param name Lives, unchanged, as long as the observatory: a signal
  /// handler may have begun to read it when the actor gets another name, or the observation another
  /// actor.
  void set_name(const char* name) { name_.store(name, std::memory_order_release); }

  // -- read by observers --

  [[nodiscard]] uint64_t actor() const { return actor_.load(std::memory_order_relaxed); }

  [[nodiscard]] actor_doing doing() const;

  /// When its work began; nothing if it does not compute.
  [[nodiscard]] std::optional<job_time> computing_since() const;

  /// Messages that came, those in the mailbox included.
  [[nodiscard]] uint64_t received() const { return received_.load(std::memory_order_relaxed); }

  /// Messages that the actor is done with.
  [[nodiscard]] uint64_t handled() const { return done_.load(std::memory_order_relaxed); }

  /// Messages that wait in the mailbox.
  [[nodiscard]] uint64_t mailbox_depth() const;

  [[nodiscard]] uint64_t errors() const { return errors_.load(std::memory_order_relaxed); }

  /// Messages that were timed, and what they took together.
  [[nodiscard]] uint64_t timed() const { return timed_.load(std::memory_order_relaxed); }

  [[nodiscard]] job_time timed_total() const {
    return job_time{timed_total_.load(std::memory_order_relaxed)};
  }

  /// Its name; null if it has none. Lives as long as the observatory.
  [[nodiscard]] const char* name() const { return name_.load(std::memory_order_acquire); }

  /// Its role; null if it never ran.
  [[nodiscard]] const char* role() const { return role_.load(std::memory_order_relaxed); }

  /// The last messages, the oldest first. @returns How many there are in `into`.
  size_t last_messages(std::array<sighting, messages_kept>& into) const;

  /// The next observation of the same observatory; null after the last.
  [[nodiscard]] const observation* next() const { return next_.load(std::memory_order_acquire); }

private:
  friend class observatory;

  /// A `sighting` in 16 bytes, which may be read while it is written. A thousand actors on several
  /// cores hand their rings from cache to cache, and that is most of what observing costs.
  struct slot {
    std::atomic<int64_t> when{0};
    std::atomic<uint64_t> bits{0}; ///< From the lowest bit on: kind (8), sender (24), step (32).

    void write(const sighting& seen) {
      when.store(seen.when.count(), std::memory_order_relaxed);
      bits.store(packed(seen), std::memory_order_relaxed);
    }

    [[nodiscard]] sighting read() const {
      return unpacked(job_time{when.load(std::memory_order_relaxed)},
                      bits.load(std::memory_order_relaxed));
    }
  };

  [[nodiscard]] static uint64_t packed(const sighting& seen);
  [[nodiscard]] static sighting unpacked(job_time when, uint64_t bits);

  // Counters that change with every message, on one cache line: senders write the first, the actor
  // the rest.
  alignas(64) std::atomic<uint64_t> received_{0};
  std::atomic<uint64_t> begun_{0};
  std::atomic<uint64_t> written_{0}; ///< Messages of `begun_` with a whole slot.
  std::atomic<uint64_t> done_{0};
  std::atomic<uint64_t> errors_{0};
  std::atomic<uint64_t> timed_{0};
  std::atomic<int64_t> timed_total_{0};
  std::atomic<bool> ended_{false};

  static constexpr int64_t not_computing = -1;
  std::atomic<int64_t> computing_since_{not_computing};

  // Fields that are written once.
  alignas(64) std::atomic<uint64_t> actor_{0};
  std::atomic<const char*> role_{nullptr};
  std::atomic<const char*> name_{nullptr};
  std::atomic<const observation*> next_{nullptr};

  std::array<slot, messages_kept> ring_;
};

} // namespace troupe
