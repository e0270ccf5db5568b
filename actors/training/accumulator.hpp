// SPDX-License-Identifier: Apache-2.0
// The accumulator: collects the gradients of one variable, or of those that are updated together,
// and drops those that come too late.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"
#include "actors/policies/gradient_ledger.hpp"
#include "actors/replication/request_session.hpp"
#include "actors/training/accumulator_form.hpp"
#include "actors/training/gradient_check.hpp"
#include "actors/world/world.hpp"
#include "messages/payload.hpp"

#include <deque>
#include <optional>
#include <set>
#include <variant>
#include <vector>

namespace troupe {

/// The gradients that an accumulator collects, and the owner that gets them.
struct accumulator_config {
  variable_form variable;         ///< The form of gradients, unless `form` says otherwise.
  variable_owner_actor owner;     ///< Gets the gradients of a step; may be null if `form` is given.
  uint64_t first_step = 0;        ///< The step that the job begins with.
  troupe::world* world = nullptr; ///< Tells when a gradient came. Outlives the actor.
  /// Gets the gradients in the owner's place, for `variable` and the variables in `behind`; null:
  /// there is one variable.
  bundle_actor bundle;
  std::vector<variable_form> behind;    ///< The others, in the order of the bundle.
  std::optional<accumulator_form> form; ///< Given for an accumulator that stands alone.
  reduction reduction_type = reduction::mean;
  bool gradients_are_sums = false; ///< Over examples: an update divides by their number.
  /// A replica's second gradient to a step is dropped; the reply to its first one says to wait for
  /// the next step.
  bool one_gradient_per_replica = false;
  /// If given, no gradient is dropped, and a take has as many as it asks for, in order of arrival.
  std::optional<asynchronous_rule> asynchronous;
  bool requires_finite = false; ///< A gradient with a number that is not finite is refused.
  /// Whether a gradient that comes again, by its replica and iteration, is answered as before and
  /// counts no more: for links that double messages, and replicas that ask again.
  bool remembers = false;
  bool owner_is_replicated = false; ///< Then it is told which replicas' gradients it gets.
  device place{}; ///< Where the variable lies: on a device, gradients may lie there, too.
};

/// Whether a caller may see the sum or mean of a variable's gradients. @param place Where the
/// variable lies. Errors: unimplemented on a device: the host adds up, and cannot read there.
[[nodiscard]] expected<void> check_aggregates(const std::string& variable, device place);

/// Summing gradients as they come would read and write the sum once for each of them. An
/// accumulator does no arithmetic: it keeps the messages, and the owner reads all gradients in one
/// pass. The sum itself is computed here only for a caller that asks for it.
///
/// The rules are those of TensorFlow's conditional accumulators: a gradient from a past step is
/// dropped whatever it holds, else it must fit; taking raises the step by one; takes are served in
/// the order in which they came, and one that must wait holds up those behind it; everything that
/// came before a take is part of it, so that it may have more gradients than it asked for
/// (`gradient_ledger`, which knows asynchronous training, too).
/// Source: tensorflow/core/kernels/conditional_accumulator_base.h.
struct accumulator_state {
  static inline const char* name = "accumulator";

  using update_promise = caf::typed_response_promise<msg<wire::UpdateApplied>>;
  using aggregate_promise = caf::typed_response_promise<msg<wire::Aggregate>>;
  using answer_promise = std::variant<update_promise, aggregate_promise>;

  /// A request for the gradients of a step, and how many there must be.
  struct pending_take {
    uint32_t required = 0;
    bool hold = false;    ///< As in TakeGradient.
    bool measure = false; ///< As in TakeGradient.
    caf::strong_actor_ptr asker;
    answer_promise promise; ///< For the owner's answer, or for that of the accumulator.
  };

  /// A request to see the sum or mean of a step.
  struct pending_await {
    caf::strong_actor_ptr asker;
    aggregate_promise promise;
  };

  accumulator_config config;
  gradient_ledger ledger;
  std::vector<push_bundle> accepted; ///< The gradients in the ledger, in its order.

  /// The replies to the last gradient of each replica: a client that numbers its iterations.
  request_table<msg<wire::PushReply>> remembered;
  std::deque<pending_take> takes;
  std::vector<pending_await> awaits;
  std::set<caf::actor_addr> watched;   ///< Actors that have asked for an aggregate, and may end.
  msg<wire::PushReply> accepted_reply; ///< The reply to each accepted push of this step.

  /// Keeps or drops gradients that came at `now`, one for each variable.
  /// Errors: as the two `check_gradient`; invalid_argument, if they are not as many.
  [[nodiscard]] expected<msg<wire::PushReply>> push(push_bundle pushed, job_time now);

  /// True if the take at the head has what it needs.
  [[nodiscard]] bool can_serve() const {
    return !takes.empty() && ledger.given() >= takes.front().required;
  }

  /// The messages that a take hands out.
  struct taken {
    msg<wire::TakenGradient> report;  ///< For the asker: the arrivals.
    msg<wire::ApplyUpdate> update;    ///< For the owner: the gradients.
    apply_bundle bundled;             ///< For a bundle, in its place.
    msg<wire::Aggregate> aggregate{}; ///< For callers that want to see it; empty if none does.
  };

  /// Closes the step. @param aggregates Whether a caller wants to see its sum or mean.
  /// @param take The request for it.
  /// @pre As many gradients are given as are required.
  [[nodiscard]] taken close_step(bool aggregates, const pending_take& take);

  /// The takes of `asker` for `of_step` need `at_most` gradients from now on.
  void lower_takes(const caf::strong_actor_ptr& asker, uint64_t of_step, uint32_t at_most);

  /// Forgets the takes and awaits of `asker`, or all if it is null. @returns Their promises, which
  /// the caller answers.
  [[nodiscard]] std::vector<answer_promise> forget(const caf::actor_addr* asker = nullptr);

  [[nodiscard]] msg<wire::AccumulatorStatus> status() const;

private:
  [[nodiscard]] std::vector<push_bundle> take_first(size_t count);
  [[nodiscard]] msg<wire::PushReply> reply_to_accepted(uint64_t next_step);
  [[nodiscard]] std::optional<msg<wire::PushReply>> former_reply(const origin& from) const;
  [[nodiscard]] expected<msg<wire::PushReply>> judge(push_bundle pushed, const origin& from,
                                                     job_time now);
  [[nodiscard]] expected<void> check(const push_bundle& pushed) const;
  [[nodiscard]] expected<void> check_examples(const origin& from) const;
  [[nodiscard]] expected<void> check_form(wire::Gradient::Reader gradient) const;
  [[nodiscard]] msg<wire::Aggregate> sum_up(uint64_t step,
                                            const msg<wire::ApplyUpdate>& update) const;
};

/// The behaviour of an accumulator.
bundle_accumulator_actor::behavior_type
accumulator(observed_pointer<bundle_accumulator_actor, accumulator_state> self,
            accumulator_config config);

} // namespace troupe
