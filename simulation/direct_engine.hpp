// SPDX-License-Identifier: Apache-2.0
// A simulation engine without actors: their decisions, and a queue of moments instead of messages.
#pragma once

#include "actors/policies/backup_choice.hpp"
#include "actors/policies/gradient_ledger.hpp"
#include "actors/policies/slack_gate.hpp"
#include "actors/policies/token_ledger.hpp"
#include "actors/training/step_ledger.hpp"
#include "simulation/moment_queue.hpp"
#include "simulation/replica_draws.hpp"
#include "simulation/scenario.hpp"
#include "simulation/step_book.hpp"
#include "simulation/update_delay.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe {

/// With actors a gradient is five messages, and most of a simulation's time goes into them. Where
/// messages take no time, nothing is lost and nothing is learnt, they decide nothing. This engine
/// asks the actors' own classes what was given, which replica gets a token, when a step is over,
/// and leaves the messages out. Its ledger is that of the actors, bit for bit.
///
/// Replicas that end computing at one moment come in the order in which the virtual world ranks
/// their actors; the chief acts when the moment is over. A computation that takes no time ends in
/// the same moment, after those that were due before: among several of these the actors may have
/// another order.
class direct_engine {
public:
  /// Both outlive it. @pre `reason_for_actors(scenario)` is empty.
  /// Errors: throws `failure` with invalid_argument, as `sync_options::validate`.
  direct_engine(const scenario& scenario, scenario_report& report);

  /// Errors: as of `simulate`.
  void run();

private:
  /// A replica that asks for a token.
  struct waiter {
    uint32_t replica = 0;
    uint64_t local_step = 0;
    uint64_t not_before = 0;
  };

  struct replica_state {
    uint64_t local_step = 0; ///< The step of its token.
    uint64_t iteration = 0;  ///< Gradients that it has begun.
    uint32_t left = 0;       ///< Computations until its gradient is complete; 0: it waits.
    job_time compute{0};     ///< For the current gradient.
    job_time waited{0};      ///< For its token.
    job_time asked{0};       ///< Since when it waits, if it does.
  };

  struct ranked_replica {
    uint64_t rank;
    uint32_t replica;
  };

  void begin_job();
  void pass_moment();
  void find_due();
  void end_computation(uint32_t replica);
  void begin_gradient(uint32_t replica, uint64_t token);
  void compute(uint32_t replica);
  void ask(uint32_t replica, uint64_t not_before);
  void grant(uint32_t replica, uint64_t token);
  void bring_near(uint32_t replica) const;
  void close_if_full();
  void end_step();
  void cancel();
  void begin_step();
  void stall();

  [[nodiscard]] bool is_over() const { return report_.step_times.size() == scenario_.steps; }

  const scenario& scenario_;
  scenario_report& report_;
  step_book book_;
  replica_draws draws_;
  update_delay updates_;
  gradient_ledger gradients_;
  closed_gradients closed_; ///< The step's gradients, if it is closed.
  token_ledger<waiter> tokens_;
  slack_gate<waiter> gate_;
  std::optional<backup_choice> choice_; ///< If the number of backups is dynamic.
  std::vector<replica_state> replicas_;
  std::vector<uint32_t> live_;         ///< Ascending.
  moment_queue moments_;               ///< At which computations end.
  std::vector<uint32_t> due_;          ///< Their computations end now.
  std::vector<ranked_replica> ranked_; ///< Kept, for its memory.
  std::vector<uint64_t> identities_;   ///< The replicas' actors; they order events of one moment.
  job_time now_{0};
  job_time began_{0};      ///< The step.
  uint32_t needed_ = 0;    ///< Gradients of the step.
  bool is_closed_ = false; ///< The step has what it needs, and its moment is not over.
  step_record record_;     ///< Kept, for its memory.
};

} // namespace troupe
