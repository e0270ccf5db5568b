// SPDX-License-Identifier: Apache-2.0
// The messages of synchronous training, each made by one function.
// training.capnp says what they mean and when they are sent.
#pragma once

#include "messages/errors/errc.hpp"
#include "messages/msg.hpp"
#include "messages/payload.hpp"

#include <span>
#include <string_view>
#include <utility>

namespace troupe {

/// All copies of a variable, where one of them could be meant.
inline constexpr int32_t whole_variable = -1;

/// The sender asks an owner for its variable's value. @param component Which copy.
/// @param computes_on Where the sender can look at a value, beside the host's memory.
[[nodiscard]] msg<wire::ReadVariable> make_read_variable(int32_t component = whole_variable,
                                                         device computes_on = {});

/// The sender has an owner change its variable. @param change A value of `troupe::change`, also
/// that of `wire::Change`. The message refers to `operand`'s elements.
[[nodiscard]] msg<wire::ChangeVariable> make_change_variable(uint8_t change,
                                                             const optional_gradient& operand,
                                                             int32_t component = whole_variable);

/// The same change, as one that may be asked for again. The message refers to the other one's
/// elements.
[[nodiscard]] msg<wire::ChangeVariable> numbered(const msg<wire::ChangeVariable>& change,
                                                 const request_id& id);

/// The same update, as one that may be asked for again. The message refers to the other one's
/// elements.
[[nodiscard]] msg<wire::ApplyUpdate> numbered(const msg<wire::ApplyUpdate>& update,
                                              const request_id& id);

/// Sets the fields of a request's id.
void write_request_id(wire::RequestId::Builder target, const request_id& id);

/// The id of a request; nothing but 0 if it is not asked for again.
[[nodiscard]] request_id read_request_id(wire::RequestId::Reader from);

/// An owner gives out its value. The message refers to `value`'s elements.
[[nodiscard]] msg<wire::VariableSnapshot> make_variable_snapshot(uint64_t version,
                                                                 const tensor& value);

/// A cache asks an owner for what has changed since it knows the variable. @param known As in the
/// schema.
[[nodiscard]] msg<wire::PullVariable> make_pull_variable(uint64_t known);

/// An owner's answer, as in the schema. The message refers to `change`'s elements.
struct variable_changes {
  uint64_t version = 0;
  uint64_t revision = 0;
  optional_gradient change;
  bool by_rows = false;
};

[[nodiscard]] msg<wire::VariableChanges> make_variable_changes(const variable_changes& since);

/// A replica gives an accumulator a gradient. The message refers to its elements.
[[nodiscard]] msg<wire::PushGradient> make_push_gradient(const origin& from,
                                                         const optional_gradient& gradient);

/// An accumulator tells a replica what became of its gradient.
[[nodiscard]] msg<wire::PushReply> make_push_reply(verdict result, uint64_t accumulator_step,
                                                   uint64_t next_step = 0);

/// A replica asks the token queue for permission to go on. The last two are as in the schema.
[[nodiscard]] msg<wire::TakeToken> make_take_token(uint32_t replica, uint64_t local_step,
                                                   uint64_t not_before = 0, uint64_t request = 0);

/// The token queue lets a replica go on.
[[nodiscard]] msg<wire::Token> make_token(uint64_t step);

/// A replica is there.
[[nodiscard]] msg<wire::JoinJob> make_join_job(uint32_t replica);

/// A replica leaves. A reason beyond `limits::text_bytes_max` is cut there.
[[nodiscard]] msg<wire::Farewell> make_farewell(uint32_t replica, const error& reason = {});

/// The chief asks an accumulator to close a step.
/// @param hold Whether the owner is only to measure the mean gradient, and to wait.
/// @param measure Whether the owner is to measure the gradients, too.
[[nodiscard]] msg<wire::TakeGradient> make_take_gradient(uint32_t required, bool hold = false,
                                                         bool measure = false);

/// An accumulator tells the chief which gradients have been applied and which dropped.
/// @param amends Whether these are those that a former report of the step does not have.
[[nodiscard]] msg<wire::TakenGradient> make_taken_gradient(uint64_t step,
                                                           std::span<const arrival> accepted,
                                                           std::span<const arrival> stale,
                                                           bool amends = false);

/// The place of a gradient in its update, by replica, then iteration: the update's bits do not
/// depend on which gradient came first.
[[nodiscard]] std::pair<uint32_t, uint64_t> place_in_update(const msg<wire::PushGradient>& push);

/// An accumulator asks the owner to apply gradients. The message refers to the gradients where the
/// pushes hold them, keeps the pushes alive, and orders them by `place_in_update`.
/// @param divisor Divisor of the sum; 0 = the number of gradients.
/// @param measure Whether the owner is to measure the gradients, too.
/// @param taken Which gradients they are, for an owner that is replicated; else empty.
[[nodiscard]] msg<wire::ApplyUpdate>
make_apply_update(uint64_t step, uint32_t divisor, std::span<const msg<wire::PushGradient>> pushes,
                  bool hold = false, bool measure = false,
                  const msg<wire::TakenGradient>& taken = {});

/// An update that belongs to an optimizer, whichever is in use; else as above.
/// @param one_for_each_device Whether the pushes are one gradient, on each device that has a copy
/// of the variable.
[[nodiscard]] msg<wire::ApplyUpdate>
make_apply_update_of(const msg<wire::UseOptimizer>& optimizer, uint32_t divisor,
                     std::span<const msg<wire::PushGradient>> pushes, bool hold,
                     bool one_for_each_device = false);

/// The chief has an owner apply the update that it holds, its mean multiplied with `scale`.
[[nodiscard]] msg<wire::ReleaseUpdate> make_release_update(double scale);

/// An owner has applied an update, or measured one that it holds.
[[nodiscard]] msg<wire::UpdateApplied> make_update_applied(const applied_update& done);

/// The fields as a plain value.
[[nodiscard]] applied_update read_update_applied(wire::UpdateApplied::Reader from);

/// A trainer tells an owner what an update does.
/// @param ask Whether it only asks whether the owner would use the optimizer.
[[nodiscard]] msg<wire::UseOptimizer> make_use_optimizer(const optimizer_settings& optimizer,
                                                         bool ask = false);

/// Whether two messages are the same, setting by setting. Cost: a pass over their words.
[[nodiscard]] bool are_same(wire::UseOptimizer::Reader one, wire::UseOptimizer::Reader other);

/// The sender asks an owner for the moving average of that name.
[[nodiscard]] msg<wire::ReadAverage> make_read_average(const std::string& name);

/// An owner is ready for updates.
[[nodiscard]] msg<wire::OptimizerInUse> make_optimizer_in_use(uint64_t version,
                                                              uint32_t slot_count);

/// The sender wants the sum or mean of an accumulator's gradients.
[[nodiscard]] msg<wire::TakeAggregate> make_take_aggregate(uint32_t required);

/// The sender wants to know what the gradients of `step` come to.
[[nodiscard]] msg<wire::AwaitAggregate> make_await_aggregate(uint64_t step);

/// An accumulator tells what the gradients of a step come to. The message refers to its elements.
[[nodiscard]] msg<wire::Aggregate> make_aggregate(uint64_t step, uint32_t count,
                                                  const optional_gradient& gradient);

/// The sender has asked an accumulator, and waits no longer.
/// @param at_most Not 0: it is content with so many gradients for `step`.
[[nodiscard]] msg<wire::CancelTakes> make_cancel_takes(uint32_t at_most = 0, uint64_t step = 0);

/// The chief knows of gradients for `step` and later ones that will never come.
[[nodiscard]] msg<wire::CountMissing> make_count_missing(uint32_t gradients, uint64_t step);

/// The sender wants to know what an accumulator holds.
[[nodiscard]] msg<wire::ReadAccumulator> make_read_accumulator();

/// An accumulator tells what it holds.
[[nodiscard]] msg<wire::AccumulatorStatus>
make_accumulator_status(uint64_t step, uint32_t accumulated, uint32_t takes);

/// The chief tells an accumulator where a restarted job goes on.
[[nodiscard]] msg<wire::SetStep> make_set_step(uint64_t step);

/// The sender wants the job to end. A reason beyond `limits::text_bytes_max` is cut there.
[[nodiscard]] msg<wire::StopJob> make_stop_job(std::string_view reason);

/// The chief tells a replica that gradients for steps before `step` are not wanted.
[[nodiscard]] msg<wire::CancelStep> make_cancel_step(uint64_t step);

/// The chief adds `count` tokens to the queue.
[[nodiscard]] msg<wire::PutTokens> make_put_tokens(uint64_t step, uint32_t count);

/// The chief tells the token queue that there will be no more tokens.
[[nodiscard]] msg<wire::CloseTokens> make_close_tokens();

/// The chief asks the token queue which replicas wait.
[[nodiscard]] msg<wire::ReadQueueStatus> make_read_queue_status();

/// The token queue tells which replicas wait.
/// @param steps The step of each token, from the head of the queue on.
/// @param waiting Indices of the waiting replicas in the order of asking.
[[nodiscard]] msg<wire::QueueStatus> make_queue_status(std::span<const uint64_t> steps,
                                                       std::span<const uint32_t> waiting);

/// The chief asks an owner for all it holds.
[[nodiscard]] msg<wire::ReadState> make_read_state();

/// An owner tells all it holds. The message refers to the elements.
[[nodiscard]] msg<wire::VariableState> make_variable_state(const variable_payload& state);

/// A trainer gives an owner what it once held. The message refers to the elements.
[[nodiscard]] msg<wire::RestoreState> make_restore_state(const variable_payload& state);

/// The chief asks a replica where it is.
[[nodiscard]] msg<wire::ReadProgress> make_read_progress();

/// A replica tells where it is. The message refers to the elements of what it keeps.
[[nodiscard]] msg<wire::ReplicaProgress> make_replica_progress(const replica_progress& progress);

/// The code of a message as ours; both have the same values.
[[nodiscard]] constexpr errc read_errc(wire::Errc code) {
  return static_cast<errc>(code);
}

/// A text that another process may have written, as one line that may be printed.
[[nodiscard]] std::string read_line(capnp::Text::Reader from);

/// An error that another process may have told of. Its texts become lines that may be printed.
[[nodiscard]] error read_error(wire::Errc code, capnp::Text::Reader reason,
                               capnp::Text::Reader throw_site = "");

/// The error that `write_error` has written.
template <class Reader>
[[nodiscard]] error read_error(Reader from) {
  return read_error(from.getCode(), from.getReason(), from.getThrowSite());
}

/// The fields as a plain value.
[[nodiscard]] optimizer_settings read_optimizer(wire::UseOptimizer::Reader from);

/// The fields as a plain value.
[[nodiscard]] origin read_origin(wire::Origin::Reader from);

/// The fields as a plain value.
[[nodiscard]] arrival read_arrival(wire::Arrival::Reader from);

/// The fields as a plain value; arrays in place.
/// @param owner Keeps the message alive: `message.owner()`.
[[nodiscard]] variable_payload read_state(wire::VariableState::Reader from,
                                          const std::shared_ptr<const void>& owner);

/// The fields as a plain value; arrays in place. @param owner As above.
[[nodiscard]] replica_progress read_progress(wire::ReplicaProgress::Reader from,
                                             const std::shared_ptr<const void>& owner);

} // namespace troupe
