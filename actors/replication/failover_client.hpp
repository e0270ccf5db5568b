// SPDX-License-Identifier: Apache-2.0
// The failover client: passes requests to the holder of a variable, and outlasts its owner's loss.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/net/placement.hpp"
#include "actors/observing/observed.hpp"
#include "actors/policies/asynchronous_rule.hpp"
#include "actors/replication/request_session.hpp"
#include "actors/replication/resend_buffer.hpp"
#include "actors/world/phases.hpp"
#include "actors/world/world.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The actors that a failover client stands for: first the owner and accumulator that hold the
/// variable at the beginning, then the ones that may take over, in turn. They are searched for when
/// they are needed, since one of them may be gone, or be there again.
struct failover_client_config {
  uint32_t variable = 0; ///< Its position among those of the strategy.
  std::string name;      ///< The variable's name.
  std::array<actor_search, 2> owners;
  std::array<actor_search, 2> accumulators; ///< Empty functions, where no gradients are given.
  directory_actor directory;
  bool closes_steps = false;                     ///< The chief's: it takes gradients.
  uint64_t first_step = 0;                       ///< The job's.
  std::optional<asynchronous_rule> asynchronous; ///< As its accumulators have it.
  /// How long to wait for the holder of the variable to be there.
  job_time start_deadline = std::chrono::seconds{60};
  /// How long to wait, after the owner is lost, for the directory's message about the new holder.
  job_time timeout = std::chrono::seconds{15};
  /// As `ask_until_answered` has it, for reads, gradients and changes. A request for the sum or
  /// mean of a step is made once.
  job_time ask_again_after{0};
};

/// A request that has not been answered yet.
struct flight {
  /// Asks the present holder of the variable.
  std::function<void()> ask;
  /// Answers by the last step that the mirror knows of; false, if that does not tell the answer.
  std::function<bool(const std::optional<closed_step>&)> settle;
  std::function<void(const error&)> fail;
  bool is_repetition = false; ///< Gives a gradient again that was accepted before.
  bool keeps_order = false;   ///< It must not overtake others that do.
  bool is_early = false;      ///< The actor to ask is not found yet, or it would overtake another.
  uint32_t attempts = 0;
  std::optional<error> failed; ///< Why it waits for another holder of the variable.
};

/// The requests without an answer, by a number, in the order in which they came.
class flight_list {
public:
  /// @returns The number of the flight.
  uint64_t add(flight request);

  /// @pre It is not over.
  [[nodiscard]] flight& at(uint64_t id) { return flights_.at(id); }

  /// The flight, if it is not over and was not asked again since that attempt; else null.
  [[nodiscard]] flight* find(uint64_t id, uint32_t attempt);

  /// Takes a flight out, which is over. @pre It is in the list.
  flight take(uint64_t id);

  /// Takes out the flights of which `is_over` is true.
  template <class Predicate>
  std::vector<flight> take_if(const Predicate& is_over) {
    std::vector<flight> taken;
    std::erase_if(flights_, [&](auto& item) {
      auto ends = is_over(item.second);
      if (ends) taken.push_back(std::move(item.second));
      return ends;
    });
    return taken;
  }

  /// The flights in the order in which they are to be asked: gradients that were accepted come
  /// before all other requests.
  [[nodiscard]] std::vector<uint64_t> in_order() const;

  /// Whether flights that keep their order come before it, in the order of `in_order`.
  [[nodiscard]] bool would_overtake(uint64_t id) const;

  /// Whether a flight waits for another holder.
  [[nodiscard]] bool any_failed() const;

  /// Whether a flight waits for any holder.
  [[nodiscard]] bool any_waits() const;

private:
  std::map<uint64_t, flight> flights_;
  uint64_t count_ = 0; ///< All flights so far.
};

/// The changes that are asked for by number: as many at once as their owner remembers. `client` is
/// 0 until the directory has given it a number.
struct change_numbers : request_numbers {
  std::deque<std::function<void()>> later; ///< Each asks for a change, when there is room.

  /// Calls the functions in `later` for which there is room. @param is_lost Calls all: they are
  /// refused.
  void ask_later_ones(bool is_lost);
};

/// The reports of closed steps: the chief hears of each gradient once, whichever accumulators
/// report it, and not before it is certain that the gradient is part of the step.
class step_reports {
public:
  step_reports() = default;

  /// @param are_certain Whether every report is certain when it comes.
  step_reports(uint64_t first_step, bool are_certain)
    : next_(first_step), are_certain_(are_certain) {}

  /// The step that the next take is for, after the one that was closed last.
  [[nodiscard]] uint64_t next() const { return next_; }

  void close(uint64_t step) { next_ = step + 1; }

  /// An accumulator reports. @returns The report for the chief now; empty: none.
  [[nodiscard]] msg<wire::TakenGradient> add(const msg<wire::TakenGradient>& taken);

  /// A mirror knows of a step, of which the report may be lost. @returns As `add`.
  [[nodiscard]] msg<wire::TakenGradient> add_closed(const closed_step& closed);

  /// The uncertain report is certain now. @returns As `add`.
  [[nodiscard]] msg<wire::TakenGradient> release();

  /// The uncertain report is void.
  void forget_uncertain() { uncertain_ = {}; }

  [[nodiscard]] bool has_uncertain() const { return !uncertain_.is_empty(); }

private:
  [[nodiscard]] msg<wire::TakenGradient> news(const msg<wire::TakenGradient>& taken);

  uint64_t next_ = 0;
  bool are_certain_ = true;
  msg<wire::TakenGradient> reported_;  ///< The last report, with its amendments.
  msg<wire::TakenGradient> uncertain_; ///< Mostly empty.
};

/// The actors that hold the variable, as far as they have been needed and found.
struct variable_holder {
  uint64_t term = 0; ///< How often the variable has moved.
  variable_owner_actor owner;
  accumulator_actor accumulator;
  bool is_sought = false;  ///< The searches for them have begun.
  job_time looked{0};      ///< How long the client has looked for them.
  bool is_looking = false; ///< A tick will come, for the next look.
};

/// A replica that pushes a gradient, or a chief that closes a step, is to notice nothing of the
/// loss of an owner. So each talks to a failover client, which passes its requests on, and makes
/// them again when the mirror has taken over. It gives gradients again that were accepted and might
/// not be part of an update yet, and answers requests by the mirror's knowledge, where that tells
/// the answer.
///
/// | the mirror knows of   | a take that waits           | a gradient that waits          |
/// |-----------------------|-----------------------------|--------------------------------|
/// | the step to be closed | answered as its owner would | answered, if it was part of it |
/// | the step before       | asked again                 | given again                    |
/// | an earlier one        | fails: the mirror is behind | given again                    |
///
/// The directory says which owner holds the variable. The client asks none before, and an owner
/// that does not hold the variable need not be there.
///
/// Where training is asynchronous, an accumulator may hold gradients for several steps, and a
/// mirror that takes over is given them in another order. The mirror knows the last gradient of
/// each replica that the variable has: later gradients are given again. The gradients of a step are
/// certain only when the mirror has them, too; so the chief does not hear of them before the step
/// is closed.
///
/// A request that changes the variable by itself, by hand or as an update, is made again, too, by
/// its number: a holder that has made the change answers, and does not make it twice. The directory
/// gives the client the number by which it asks.
struct failover_client_state {
  static inline const char* name = "failover_client";

  enum class phase : uint8_t {
    asking,    ///< Until the directory has answered.
    seeking,   ///< Until the holder of the variable is found, or the deadline.
    following, ///< Until another holds the variable.
    lost,      ///< None holds it any more.
  };

  static constexpr std::array transitions{
    leads(phase::asking, phase::seeking, phase::lost),
    leads(phase::seeking, phase::seeking, phase::following, phase::lost), // seeking: it moves again
    leads(phase::following, phase::seeking, phase::lost),
    leads(phase::lost, phase::lost), // for another reason
  };

  failover_client_config config;
  phase_in<phase, transitions> now_in{phase::asking};
  error why; ///< Why it is lost, if it is.
  variable_holder holder;
  flight_list flights;
  change_numbers changes;
  resend_buffer kept;
  step_reports reports;
  caf::strong_actor_ptr closer; ///< The actor that takes gradients.
  uint32_t waits = 0;           ///< Waits for a new holder that have not timed out yet.
  msg<wire::CancelTakes> limit; ///< The strictest limit of the present take; mostly empty.
  std::vector<std::function<void()>> unsaid;      ///< Each sends a message, after the flights.
  std::vector<std::function<void()>> early_looks; ///< Each asks again, when reports are certain.

  failover_client_state() = default;

  explicit failover_client_state(failover_client_config from)
    : config(std::move(from)), reports(config.first_step, !config.asynchronous) {}

  /// Which of the two places in the config holds the variable.
  [[nodiscard]] size_t place() const { return holder.term % 2; }

  /// An actor of the present term was found, or none that lives. If all are found, it follows the
  /// variable.
  void find(const holder_found& found);

  /// The variable has moved.
  void move(uint64_t term);

  /// Remembers a limit of the present take, unless a stricter one is known: a cancelled take stays
  /// cancelled.
  void keep_limit(const msg<wire::CancelTakes>& other);

  /// Forgets the gradients that a mirror has. @param closed The last step that it knows of.
  void forget_counted(const std::optional<closed_step>& closed);

  /// The error of a mirror that does not know of all steps that the chief has heard of.
  /// @param closed The last step that it knows of.
  [[nodiscard]] std::optional<error> behind(const std::optional<closed_step>& closed) const;

private:
  [[nodiscard]] uint64_t collected(const std::optional<closed_step>& closed) const {
    return closed ? closed->step + 1 : config.first_step;
  }
};

/// The behaviour of a failover client.
failover_client_actor::behavior_type
failover_client(observed_pointer<failover_client_actor, failover_client_state> self,
                failover_client_config config);

} // namespace troupe
