// SPDX-License-Identifier: Apache-2.0
// The virtual world's scheduler and clock, behind CAF's interfaces for both.
#pragma once

#include "actors/recording/records.hpp"
#include "actors/world/clock_error.hpp"

#include <caf/detail/test_actor_clock.hpp>
#include <caf/execution_unit.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Gives actors clocks that are wrong: asked for each of them by its CAF id; null = it is right.
using clock_errors = std::function<const clock_error*(caf::actor_id)>;

/// Time that goes on only when it is told to. CAF's testing clock keeps timeouts, which are rare
/// and may be cancelled; messages to come, of which every replica has one, are in a heap here.
class virtual_clock final : public caf::detail::test_actor_clock {
public:
  using test_actor_clock::schedule_message;

  void schedule_message(time_point due, caf::strong_actor_ptr receiver,
                        caf::mailbox_element_ptr content) override;

  void cancel_all() override;

  /// Goes on to the next moment for which something is scheduled, which may be the present one, and
  /// lets all of it happen. @returns False if nothing is scheduled.
  bool go_on();

  /// Whether something is scheduled for the present moment.
  [[nodiscard]] bool is_due() const { return next() <= current_time; }

  /// Since the world began.
  [[nodiscard]] job_time elapsed() const { return current_time - origin; }

  /// Measures the waits of actors by clocks of their own from now on.
  void set_errors(clock_errors errors) { errors_ = std::move(errors); }

  [[nodiscard]] bool has_errors() const { return static_cast<bool>(errors_); }

  /// The time on an actor's clock.
  [[nodiscard]] job_time shown_to(caf::actor_id actor) const;

  /// @pre Nothing is scheduled.
  void set_elapsed(job_time time) { current_time = origin + time; }

private:
  static constexpr time_point origin{std::chrono::nanoseconds{1}}; ///< CAF takes 0 for "never".

  struct delayed_message {
    caf::strong_actor_ptr receiver;
    caf::mailbox_element_ptr content;
  };

  /// When a message is due, and where it lies: elements of the heap are small, and plain.
  struct appointment {
    time_point due;
    uint64_t number; ///< Messages due at one moment keep the order in which they were scheduled.
    size_t place;

    bool operator<(const appointment& other) const { // the first is on top of the heap
      return due != other.due ? due > other.due : number > other.number;
    }
  };

  /// When something is scheduled; the end of time if nothing is.
  [[nodiscard]] time_point next() const;

  void send_first();
  void fetch_next() const;

  std::vector<appointment> appointments_; ///< A heap.
  std::vector<delayed_message> messages_;
  std::vector<size_t> free_places_; ///< Unused elements of `messages_`.
  uint64_t count_ = 0;
  clock_errors errors_; ///< Empty: all clocks are right.
};

/// One thread, and the actor that is first in rank goes first: at each moment the seed ranks all
/// actors anew, by their names. CAF's testing scheduler does the same work several times slower.
class virtual_coordinator final : public caf::scheduler::abstract_coordinator {
public:
  /// For `actor_system_config::load`.
  static module* make(caf::actor_system& system, caf::detail::type_list<> /*no parts*/);

  explicit virtual_coordinator(caf::actor_system& system)
    : abstract_coordinator(system), unit_(*this) {}

  /// Sets the seed of the order in which actors go.
  void set_seed(uint64_t seed) { seed_ = seed; }

  /// Ranks the actor by its name from now on, and not by its CAF id.
  void introduce(caf::actor_id actor, const std::string& name);

  /// Has the first in rank of all actors that have messages handle one.
  /// @returns False if there is none.
  bool run_one();

  /// The time on the clock of the actor that runs now; the true time, if none does.
  [[nodiscard]] job_time shown_time() const { return clock_.shown_to(running_); }

  /// As `virtual_clock::go_on`.
  bool let_time_pass();

  /// As `let_time_pass`, if something is due at the present moment.
  bool let_moment_pass() { return clock_.is_due() && let_time_pass(); }

  /// Messages handled, and moments that time went on to, so far.
  [[nodiscard]] uint64_t event_count() const { return event_count_; }

  virtual_clock& clock() noexcept override { return clock_; }

  void enqueue(caf::resumable* actor) override { arrived_.push_back(actor); }

protected:
  void start() override;
  void stop() override;

private:
  /// Where actors find the scheduler while they run.
  class unit final : public caf::execution_unit {
  public:
    explicit unit(virtual_coordinator& owner) : execution_unit(&owner.system()), owner_(owner) {}

    void exec_later(caf::resumable* actor) override { owner_.enqueue(actor); }

  private:
    virtual_coordinator& owner_;
  };

  /// An actor with messages, and where the seed ranks it at this moment.
  struct ranked_actor {
    uint64_t rank;
    caf::resumable* actor;

    bool operator<(const ranked_actor& other) const { // the least is on top of the heap
      return rank > other.rank;
    }
  };

  [[nodiscard]] caf::resumable* first_in_rank();
  [[nodiscard]] uint64_t rank_of(caf::resumable* actor) const;

  virtual_clock clock_;
  unit unit_;
  uint64_t seed_ = 0;
  uint64_t event_count_ = 0;
  caf::actor_id running_ = 0;                       ///< 0: none.
  std::vector<caf::resumable*> arrived_;            ///< Not ranked yet.
  std::vector<ranked_actor> ready_;                 ///< A heap.
  std::vector<std::optional<uint64_t>> identities_; ///< By CAF id, which CAF counts from 1 on.
};

} // namespace troupe
