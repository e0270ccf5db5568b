// SPDX-License-Identifier: Apache-2.0
// All actors, and the messages that each of them answers: read this page first.
//
// A synchronous step, as the messages travel (messages/training.capnp specifies them):
//
//   replica --ReadVariable--> variable_owner          the variables, as they are now
//   replica --PushGradient--> accumulator             one gradient for each variable
//   replica --TakeToken-----> token_queue             suspended here until the step is over
//   chief ----TakeGradient--> accumulator --ApplyUpdate--> variable_owner --UpdateApplied--> chief
//   chief ----PutTokens-----> token_queue --Token---> replica
#pragma once

#include "actors/interfaces/activity_messages.hpp"
#include "actors/interfaces/caf_compat.hpp"
#include "actors/interfaces/collective_call.hpp"
#include "actors/interfaces/device_work.hpp"
#include "actors/recording/records.hpp"
#include "messages/coordinator_message.hpp"
#include "messages/msg.hpp"

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <typeinfo>
#include <variant>
#include <vector>

namespace troupe {

class owned_variable;

/// Holds one variable and its optimizer slots, and alone changes them.
using variable_owner_actor = caf::typed_actor<
  // The variable as it is now; the memory is shared, and never changes while it is held.
  caf::replies_to<msg<wire::ReadVariable>>::with<msg<wire::VariableSnapshot>>,
  // The changes since the version that the sender knows, for a cache.
  caf::replies_to<msg<wire::PullVariable>>::with<msg<wire::VariableChanges>>,
  // Changes the variable by hand: assigns, adds or scatters; answered by the changed copy. Errors:
  // type_mismatch, invalid_argument, out_of_range, unimplemented.
  caf::replies_to<msg<wire::ChangeVariable>>::with<msg<wire::VariableSnapshot>>,
  // A number for a client that may repeat its changes, where no directory gives one.
  caf::replies_to<msg<wire::FollowOwner>>::with<msg<wire::OwnerFollowed>>,
  // The moving average as it is now; its memory is shared, too. Errors: not_found.
  caf::replies_to<msg<wire::ReadAverage>>::with<msg<wire::VariableSnapshot>>,
  // Sets the optimizer of updates that name none, until one names another, or says whether it
  // would. Errors: not_found, invalid_argument, type_mismatch, unimplemented, failed_precondition,
  // user_code.
  caf::replies_to<msg<wire::UseOptimizer>>::with<msg<wire::OptimizerInUse>>,
  // Applies or holds an update: one pass over gradients, variable and slots. Errors: as
  // UseOptimizer, of the optimizer that the update names.
  caf::replies_to<msg<wire::ApplyUpdate>>::with<msg<wire::UpdateApplied>>,
  // Applies the update that it holds. Errors: failed_precondition.
  caf::replies_to<msg<wire::ReleaseUpdate>>::with<msg<wire::UpdateApplied>>,
  // The variable with slots and average, in shared memory; for checkpoints.
  caf::replies_to<msg<wire::ReadState>>::with<msg<wire::VariableState>>,
  // Goes on from a saved state, between two updates. Errors: type_mismatch, invalid_argument.
  caf::replies_to<msg<wire::RestoreState>>::with<msg<wire::OptimizerInUse>>>;

struct use_mirror;
struct use_accumulator;
struct use_bundle;
struct come_back;
struct lend_variable;
struct lent_variable;

/// An owner as its replication knows it. Where owners are replicated there are two of each
/// variable: the owner, and a mirror in another process that repeats its changes.
using replicated_owner_actor = variable_owner_actor::extend<
  // The mirror, which the owner tells of each change from now on; told once.
  caf::reacts_to<use_mirror>,
  // The accumulator, which collects gradients for it.
  caf::reacts_to<use_accumulator>,
  // Its process was lost before: another one holds the variable, and it is to become the mirror.
  caf::reacts_to<come_back>,
  // Lends the variable and its slots to a bundle, and says where they lie.
  caf::replies_to<lend_variable>::with<lent_variable>,
  // The bundle that the variable is part of from now on, until that ends.
  caf::reacts_to<use_bundle>,
  // The sender is the mirror from now on: it is told all there is, and each change.
  caf::reacts_to<msg<wire::RepeatChanges>>,
  // The owner's whole state, for its mirror. Errors: cancelled, of a mirror that has taken over;
  // type_mismatch, invalid_argument.
  caf::replies_to<msg<wire::MirrorState>>::with<msg<wire::UpdateApplied>>,
  // The owner is gone: its mirror holds the variable. Errors: failed_precondition, if the mirror
  // was never told its owner's state.
  caf::replies_to<msg<wire::TakeOver>>::with<msg<wire::TookOver>>>;

/// The mirror that an owner is to tell of each change.
struct use_mirror {
  replicated_owner_actor mirror;
};

/// Collects the gradients of one variable by reference until a step has enough of them.
using accumulator_actor = caf::typed_actor<
  // Keeps or drops one replica's gradient, and says which. Errors: invalid_argument, type_mismatch.
  caf::replies_to<msg<wire::PushGradient>>::with<msg<wire::PushReply>>,
  // Closes the step when enough have come: tells the asker which gradients it took (TakenGradient),
  // and has the owner apply the update and answer. Errors: invalid_argument, and the owner's.
  caf::replies_to<msg<wire::TakeGradient>>::with<msg<wire::UpdateApplied>>,
  // Closes the step when enough have come, and answers with the gradients' sum or mean. Errors:
  // invalid_argument, cancelled.
  caf::replies_to<msg<wire::TakeAggregate>>::with<msg<wire::Aggregate>>,
  // A step's sum or mean, when the step is closed. Errors: out_of_range, cancelled.
  caf::replies_to<msg<wire::AwaitAggregate>>::with<msg<wire::Aggregate>>,
  // The sender waits for none of these any more, or for fewer gradients.
  caf::reacts_to<msg<wire::CancelTakes>>,
  // Gradients that will never come count as given.
  caf::reacts_to<msg<wire::CountMissing>>,
  // The number of gradients that it holds, and its step.
  caf::replies_to<msg<wire::ReadAccumulator>>::with<msg<wire::AccumulatorStatus>>,
  // The step to judge gradients by from now on.
  caf::reacts_to<msg<wire::SetStep>>>;

/// The accumulator that an owner or mirror tells which step comes next, when it takes over.
struct use_accumulator {
  accumulator_actor accumulator;
};

/// One replica's gradients for all variables of a bundle, in that order.
struct push_bundle {
  std::vector<msg<wire::PushGradient>> gradients;
};

/// An accumulator of several variables collects their gradients together.
using bundle_accumulator_actor = accumulator_actor::extend<
  // As PushGradient, for all variables at once. Errors: invalid_argument for another number of
  // them.
  caf::replies_to<push_bundle>::with<msg<wire::PushReply>>>;

/// A request for the variables of a bundle, for work on their device.
struct read_bundle {};

/// The variables, where they lie; none, if some have copies that differ: their owners have each.
struct bundle_values {
  std::vector<tensor> values;
};

/// The gradients of one step, for all variables of a bundle.
struct apply_bundle {
  uint64_t step = 0;
  uint32_t divisor = 0;                ///< As in ApplyUpdate.
  std::vector<push_bundle> gradients;  ///< In the order of replicas, and added so.
  bool hold = false;                   ///< As in ApplyUpdate.
  msg<wire::UseOptimizer> optimizer{}; ///< As in ApplyUpdate; empty: the one in use.
};

/// A variable of a bundle was changed by hand.
struct bundle_changed {};

/// The variables that lie on one stream of a device, for the steps of a job: however many there
/// are, a step reads them by one message, and changes them by one.
using bundle_actor = caf::typed_actor<
  // The variables as they are now. Errors: as the device's actor.
  caf::replies_to<read_bundle>::with<bundle_values>,
  // One pass for each variable; answered when they are queued, or held and measured. Errors: as
  // ApplyUpdate.
  caf::replies_to<apply_bundle>::with<msg<wire::UpdateApplied>>,
  // Applies the update that it holds. Errors: failed_precondition.
  caf::replies_to<msg<wire::ReleaseUpdate>>::with<msg<wire::UpdateApplied>>,
  // An owner has changed a variable.
  caf::reacts_to<bundle_changed>>;

/// An owner or a bundle, which applies the update that it holds.
using update_holder_actor
  = caf::typed_actor<caf::replies_to<msg<wire::ReleaseUpdate>>::with<msg<wire::UpdateApplied>>>;

/// A variable's holder has been found, or looked for in vain: then both are null.
struct holder_found {
  uint64_t term = 0;          ///< As in `failover_client_state`, when it was looked for.
  variable_owner_actor owner; ///< One of the two is null.
  accumulator_actor accumulator;
};

/// Stands for the owner and the accumulator of one variable, in whichever process they are: answers
/// as they do, and outlasts their loss. Each replica has one for each variable, and so has the
/// chief.
using failover_client_actor = variable_owner_actor::extend_with<accumulator_actor>::extend<
  // The accumulator has closed the step; for the chief.
  caf::reacts_to<msg<wire::TakenGradient>>,
  // The mirror holds the variable; answered when it has what may have been lost.
  caf::replies_to<msg<wire::TookOver>>::with<msg<wire::OwnerFollowed>>,
  // The node's answer about the holder; sent by the actor to itself.
  caf::reacts_to<holder_found>,
  // Time to look whether the variable's holder is there; sent by the actor to itself.
  caf::reacts_to<watch_tick>,
  // The directory has not named a new holder for long; sent by the actor to itself.
  caf::reacts_to<give_up>>;

/// The owner and the mirror of one variable, as the directory knows them.
struct watch_owner {
  std::string variable;
  replicated_owner_actor owner;
  replicated_owner_actor mirror;
  std::array<uint32_t, 2> processes{0, 1}; ///< Where they stand, by position.
};

/// Hears of the owners of a job that are lost, or back, though no variable is lost with them.
using owners_watcher_actor = caf::typed_actor<
  // Owners or mirrors are gone.
  caf::reacts_to<msg<wire::OwnersLost>>,
  // Lost owners or mirrors are there again.
  caf::reacts_to<msg<wire::OwnersMirrored>>>;

/// The job that is about to begin, as the directory needs to know it.
struct watch_job {
  owners_watcher_actor watcher;
};

/// Knows the holder of each variable, and has the mirror take over where the owner is gone.
using directory_actor = caf::typed_actor<
  // One more variable, the next in order.
  caf::reacts_to<watch_owner>,
  // The actor that is to be told of losses.
  caf::reacts_to<watch_job>,
  // The sender wants to know a variable's holder, now and whenever that changes: answered when the
  // holder is certain, after the sender is told, if it is the mirror.
  caf::replies_to<msg<wire::FollowOwner>>::with<msg<wire::OwnerFollowed>>,
  // The sender, which has come back, wants to be a variable's mirror: answered when it may, or once
  // it is one. Or the sender, which holds it, cannot reach its mirror: answered when that is gone.
  // Errors: not_found, if there is no such variable; cancelled, if the sender does not hold it;
  // failed_precondition, if the newcomer holds the variable already, or is its mirror.
  caf::replies_to<msg<wire::OfferMirror>>::with<msg<wire::OwnerFollowed>>,
  // Time to tell of losses; sent by the actor to itself.
  caf::reacts_to<watch_tick>>;

/// The counterpart of an owner or mirror that has come back.
struct come_back {
  replicated_owner_actor other; ///< Its variable's mirror, if it was the owner; else the owner.
  bool is_mirrors = false;      ///< Its place is the mirror's, not the owner's.
  bool is_known = true;         ///< Else this may be its first life: the directory knows.
};

/// The barrier: a replica leaves a step with a token for the next.
using token_queue_actor = caf::typed_actor<
  // A token, as soon as there is one. Errors: cancelled, when the job is over.
  caf::replies_to<msg<wire::TakeToken>>::with<msg<wire::Token>>,
  // New tokens.
  caf::reacts_to<msg<wire::PutTokens>>,
  // A replica has left: no replica waits for its clock.
  caf::reacts_to<msg<wire::Farewell>>,
  // The job is over: all replicas that wait, or ask from now on, are told so.
  caf::reacts_to<msg<wire::CloseTokens>>,
  // The replicas that wait, and for what.
  caf::replies_to<msg<wire::ReadQueueStatus>>::with<msg<wire::QueueStatus>>>;

/// Computes gradients: a user's coroutine, and the messages that it does not see.
using replica_actor = caf::typed_actor<
  // The coroutine's first step; sent by the actor to itself.
  caf::reacts_to<begin_activity>,
  // The gradient in work is not needed, if it is for an older step.
  caf::reacts_to<msg<wire::CancelStep>>,
  // Its progress; for checkpoints.
  caf::replies_to<msg<wire::ReadProgress>>::with<msg<wire::ReplicaProgress>>,
  // Computing is over; sent by the actor to itself.
  caf::reacts_to<work_done>,
  // A delay is over; sent by the actor to itself.
  caf::reacts_to<delay_over>,
  // The coroutine's wait at a rendezvous is over.
  caf::reacts_to<wake>>;

/// Tells the calls of a program apart: two with different sites do not belong together.
struct merge_site {
  const std::type_info* function = nullptr; ///< Type of the merge function.
  const void* address = nullptr;            ///< A plain function's address; else null.
  std::string structure{};                  ///< The arguments' structure, beyond their types.
};

/// A replica is in a merge_call, and waits for a `wake`.
struct merge_arrival {
  uint32_t replica = 0;
  merge_site site;
  std::shared_ptr<void> arguments;
  replica_actor handle;
};

/// The arguments of every replica, by index; replica 0 is woken with them.
using gathered_arguments = std::vector<std::shared_ptr<void>>;

/// Replica 0's merge function has returned or thrown.
struct merge_result {
  std::shared_ptr<void> value;
  std::exception_ptr thrown;
};

/// A replica's function has returned or thrown.
struct departure {
  uint32_t replica = 0;
  std::shared_ptr<void> result;
  std::exception_ptr thrown;
};

/// Where the replicas of a run meet; in one process, so it takes plain values.
using rendezvous_actor = caf::typed_actor<
  // A replica is in a merge_call; it is woken when all are.
  caf::reacts_to<merge_arrival>,
  // Replica 0's merge function has returned or thrown: the others are woken.
  caf::reacts_to<merge_result>,
  // A replica is at its end.
  caf::reacts_to<departure>,
  // The run has taken too long: replicas that wait are told which are missing.
  caf::reacts_to<give_up>>;

/// Closes steps, hands out tokens, knows which replicas are alive, ends the job.
using chief_actor = caf::typed_actor<
  // A replica is there; the sender is watched from now on.
  caf::reacts_to<msg<wire::JoinJob>>,
  // A replica leaves, or will never come.
  caf::reacts_to<msg<wire::Farewell>>,
  // An accumulator has closed the step.
  caf::reacts_to<msg<wire::TakenGradient>>,
  // The job is to end now.
  caf::reacts_to<msg<wire::StopJob>>,
  // Owners or mirrors are gone, and nothing is lost.
  caf::reacts_to<msg<wire::OwnersLost>>,
  // Lost owners or mirrors are there again.
  caf::reacts_to<msg<wire::OwnersMirrored>>,
  // Time to look which replicas are missing; sent by the actor to itself.
  caf::reacts_to<watch_tick>,
  // Everything due at the moment of a step's end is done; sent by the actor to itself.
  caf::reacts_to<moment_over>>;

/// Knows which processes of a job are there: none begins before all are, none leaves before all
/// may.
using roll_call_actor = caf::typed_actor<
  // A process is there; answered when all are. The sender is watched from now on. Errors: why the
  // job does not begin.
  caf::replies_to<msg<wire::EnterJob>>::with<msg<wire::JobBegins>>,
  // The sender waits for the end of the job; answered with how it ended.
  caf::replies_to<msg<wire::AwaitEnd>>::with<msg<wire::JobEnded>>,
  // A process is done with the job; answered, when all that are left are done, with how it ended
  // for all.
  caf::replies_to<msg<wire::LeaveJob>>::with<msg<wire::JobEnded>>,
  // The chief's process begins: all may.
  caf::reacts_to<msg<wire::JobBegins>>,
  // The job is over in the chief's process: all are told.
  caf::reacts_to<msg<wire::JobEnded>>,
  // Time to look which processes are missing; sent by the actor to itself.
  caf::reacts_to<watch_tick>>;

/// Compares the settings of processes with those of the chief's, before they make anything.
using settings_check_actor = caf::typed_actor<
  // A process is there, with its settings; answered at once. Errors: failed_precondition, with the
  // settings that differ.
  caf::replies_to<msg<wire::EnterJob>>::with<msg<wire::JobBegins>>>;

/// Tells of the process where it stands.
using task_reporter_actor = caf::typed_actor<
  // A report of what the actors of the process are doing.
  caf::replies_to<msg<wire::ReadTask>>::with<msg<wire::TaskReport>>>;

/// Stands for a process at the roll call, and tells of it.
using member_actor = task_reporter_actor::extend<
  // The process is done with the job.
  caf::reacts_to<msg<wire::LeaveJob>>>;

/// A process of the job has entered it.
struct observe_task {
  uint32_t number = 0; ///< The process's number in the observer's view.
  task_reporter_actor reporter;
};

/// A request to collect the last messages of all processes.
struct collect_flight_records {
  std::string reason; ///< One line for people.
};

/// Looks at the other processes of a job, and shows what their actors do where the chief stands.
using task_observer_actor = caf::typed_actor<
  // A process to look at from now on.
  caf::reacts_to<observe_task>,
  // The last messages of all processes are to be collected.
  caf::reacts_to<collect_flight_records>,
  // Time to look; sent by the actor to itself.
  caf::reacts_to<watch_tick>>;

/// Combines arrays with its peers, one in each process of a group.
using communicator_actor = caf::typed_actor<
  // A part in a collective. Errors: invalid_argument, if participants differ: which, and how;
  // limit_exceeded; deadline_exceeded, naming the missing peers; unavailable, naming the peer that
  // is gone; malformed. A call after one that has failed fails for the same reason.
  caf::replies_to<collective_call>::with<collective_result>,
  // The peers that it is to talk to; said once, if it was not spawned with them.
  caf::reacts_to<meet_peers>,
  // A peer's part of a collective.
  caf::reacts_to<msg<wire::CollectivePart>>,
  // A call has failed at a peer.
  caf::reacts_to<msg<wire::CollectiveFailed>>,
  // Something that needs this process's part in the calls has failed: all calls fail from now on,
  // here and at all peers.
  caf::reacts_to<group_broken>,
  // Answered when all calls fail from now on, with the reason.
  caf::replies_to<await_breakdown>::with<group_broken>,
  // Time to look which peers are missing; sent by the actor to itself.
  caf::reacts_to<watch_tick>>;

/// Owns a device that computes, and has it do the work of other actors.
using gpu_actor = caf::typed_actor<
  // Work for one of its streams, in the order of the messages; answered when the device has done
  // it, or is told of it (`is_answered_when_queued`). Errors: invalid_argument, if there is no such
  // stream; resource, if the device refuses; unavailable, if it is lost, and deadline_exceeded: all
  // that waits is answered with these, and they are the reason of its end.
  caf::replies_to<device_work>::with<device_work_done>,
  // The device has been told all of some work; sent by the thread that launched it.
  caf::reacts_to<work_launched>,
  // The device has done some work; sent by the device.
  caf::reacts_to<work_completed>,
  // Time to look whether the device is still there; sent by the actor to itself.
  caf::reacts_to<watch_tick>>;

/// A request for the variable that an owner holds on a device, for a bundle.
struct lend_variable {
  device where;
};

/// The variable that was lent. Only work for its stream may read and change it, one piece at a
/// time.
struct lent_variable {
  std::shared_ptr<owned_variable> variable;
  gpu_actor device; ///< Null: the variable lies in the host's memory.
  uint32_t stream = 0;
};

/// The bundle that an owner tells of changes by hand.
struct use_bundle {
  bundle_actor bundle;
};

/// The leaves of an argument: the same for all workers, or those of each, by index.
using closure_argument
  = std::variant<std::vector<closure_value>, std::vector<std::vector<closure_value>>>;

/// A user has a function called. The user is told that it is queued only if `admitted` is set.
struct schedule_closure {
  std::string function;
  std::vector<closure_argument> arguments;
  /// Called once: what the function returned, or why it did not.
  std::function<void(expected<std::vector<closure_value>>)> settle;
  /// Called once, when there is room in the queue. Errors: that of another closure; then this one
  /// is cancelled. Returns false if the user has given up: then it is not called at all.
  std::function<bool(expected<void>)> admitted;
};

/// A user waits for the closures, or asks whether all are done.
struct await_closures {
  bool until_all_are_done = false; ///< Else it is answered at once, unless a closure has failed.
  /// Called once: whether all are done. Errors: that of the first that failed, once, when the
  /// others have ended. Returns false if the user has given up: then it is not told.
  std::function<bool(expected<bool>)> tell;
};

/// Closures use a variable that its owner holds alone: without it the job cannot go on.
struct rely_on {
  variable_owner_actor owner;
};

/// There will be no more closures: queued ones are cancelled, others waited for.
struct end_service {
  std::function<void()> tell; ///< Called when none runs any more.
};

/// Holds the queue of closures, gives them to workers, and keeps the first error.
using coordinator_actor = caf::typed_actor<
  // A worker is there; the sender is watched from now on.
  caf::reacts_to<msg<wire::WorkerReady>>,
  // The sender waits for the end; answered then.
  caf::replies_to<msg<wire::AwaitServiceEnd>>::with<msg<wire::ServiceEnded>>,
  // Owners or mirrors are gone, and nothing is lost.
  caf::reacts_to<msg<wire::OwnersLost>>,
  // Lost owners or mirrors are there again.
  caf::reacts_to<msg<wire::OwnersMirrored>>,
  // An owner, without which the job cannot go on.
  caf::reacts_to<rely_on>,
  // A new closure.
  caf::reacts_to<schedule_closure>,
  // A user waits until all closures are done, or asks whether they are.
  caf::reacts_to<await_closures>,
  // The end: cancels queued closures, waits for those that run, and quits.
  caf::reacts_to<end_service>,
  // The end has taken too long: quits now.
  caf::reacts_to<give_up>>;

/// A closure has ended, or the host is ready for the first; sent by the actor that hosts closures.
struct closure_ended {
  msg<wire::ClosureDone> answer; ///< Empty: none has begun.
};

/// Runs closures, one at a time.
using closure_worker_actor = caf::typed_actor<
  // Calls a function; answered when it has returned or failed. Errors: failed_precondition, if
  // another one runs.
  caf::replies_to<msg<wire::RunClosure>>::with<msg<wire::ClosureDone>>,
  // The result of a call is not needed.
  caf::reacts_to<msg<wire::CancelClosure>>,
  // The call has ended; sent by the actor that hosts it.
  caf::reacts_to<closure_ended>>;

/// Records the events of a job; local to its node, so it takes plain values.
using recorder_actor = caf::typed_actor<
  // One step.
  caf::reacts_to<step_record>,
  // The whole state of the job between two steps.
  caf::reacts_to<job_snapshot>,
  // The job is over; nothing comes after this.
  caf::reacts_to<job_report>>;

} // namespace troupe

TROUPE_LOCAL_MESSAGE(troupe::use_mirror)
TROUPE_LOCAL_MESSAGE(troupe::use_accumulator)
TROUPE_LOCAL_MESSAGE(troupe::push_bundle)
TROUPE_LOCAL_MESSAGE(troupe::read_bundle)
TROUPE_LOCAL_MESSAGE(troupe::bundle_values)
TROUPE_LOCAL_MESSAGE(troupe::apply_bundle)
TROUPE_LOCAL_MESSAGE(troupe::bundle_changed)
TROUPE_LOCAL_MESSAGE(troupe::lend_variable)
TROUPE_LOCAL_MESSAGE(troupe::lent_variable)
TROUPE_LOCAL_MESSAGE(troupe::use_bundle)
TROUPE_LOCAL_MESSAGE(troupe::come_back)
TROUPE_LOCAL_MESSAGE(troupe::holder_found)
TROUPE_LOCAL_MESSAGE(troupe::watch_owner)
TROUPE_LOCAL_MESSAGE(troupe::watch_job)
TROUPE_LOCAL_MESSAGE(troupe::observe_task)
TROUPE_LOCAL_MESSAGE(troupe::collect_flight_records)
TROUPE_LOCAL_MESSAGE(troupe::merge_arrival)
TROUPE_LOCAL_MESSAGE(troupe::merge_result)
TROUPE_LOCAL_MESSAGE(troupe::departure)
TROUPE_LOCAL_MESSAGE(troupe::rely_on)
TROUPE_LOCAL_MESSAGE(troupe::schedule_closure)
TROUPE_LOCAL_MESSAGE(troupe::await_closures)
TROUPE_LOCAL_MESSAGE(troupe::end_service)
TROUPE_LOCAL_MESSAGE(troupe::closure_ended)
