// SPDX-License-Identifier: Apache-2.0
// Which place in the envelope belongs to which type of message.
#pragma once

#include "messages/envelope.capnp.h"

#include <capnp/any.h>

namespace troupe {

/// The place of `T` in the envelope: its discriminant, and how to begin a `T` there.
template <class T>
struct body_place {
  wire::Envelope::Which which;
  typename T::Builder (wire::Envelope::Builder::*init)();
};

/// One line per message; a type without a line is no message: it can neither be made nor decoded.
template <class T>
inline constexpr body_place<T> body_of = T::is_not_a_message;

using envelope_builder = wire::Envelope::Builder;

template <>
inline constexpr body_place<wire::Unimplemented> body_of<wire::Unimplemented>{
  wire::Envelope::UNIMPLEMENTED, &envelope_builder::initUnimplemented};
template <>
inline constexpr body_place<wire::Abort> body_of<wire::Abort>{wire::Envelope::ABORT,
                                                              &envelope_builder::initAbort};
template <>
inline constexpr body_place<wire::ReadVariable> body_of<wire::ReadVariable>{
  wire::Envelope::READ_VARIABLE, &envelope_builder::initReadVariable};
template <>
inline constexpr body_place<wire::VariableSnapshot> body_of<wire::VariableSnapshot>{
  wire::Envelope::VARIABLE_SNAPSHOT, &envelope_builder::initVariableSnapshot};
template <>
inline constexpr body_place<wire::PushGradient> body_of<wire::PushGradient>{
  wire::Envelope::PUSH_GRADIENT, &envelope_builder::initPushGradient};
template <>
inline constexpr body_place<wire::PushReply> body_of<wire::PushReply>{
  wire::Envelope::PUSH_REPLY, &envelope_builder::initPushReply};
template <>
inline constexpr body_place<wire::TakeToken> body_of<wire::TakeToken>{
  wire::Envelope::TAKE_TOKEN, &envelope_builder::initTakeToken};
template <>
inline constexpr body_place<wire::Token> body_of<wire::Token>{wire::Envelope::TOKEN,
                                                              &envelope_builder::initToken};
template <>
inline constexpr body_place<wire::Farewell> body_of<wire::Farewell>{
  wire::Envelope::FAREWELL, &envelope_builder::initFarewell};
template <>
inline constexpr body_place<wire::TakeGradient> body_of<wire::TakeGradient>{
  wire::Envelope::TAKE_GRADIENT, &envelope_builder::initTakeGradient};
template <>
inline constexpr body_place<wire::TakenGradient> body_of<wire::TakenGradient>{
  wire::Envelope::TAKEN_GRADIENT, &envelope_builder::initTakenGradient};
template <>
inline constexpr body_place<wire::ApplyUpdate> body_of<wire::ApplyUpdate>{
  wire::Envelope::APPLY_UPDATE, &envelope_builder::initApplyUpdate};
template <>
inline constexpr body_place<wire::UpdateApplied> body_of<wire::UpdateApplied>{
  wire::Envelope::UPDATE_APPLIED, &envelope_builder::initUpdateApplied};
template <>
inline constexpr body_place<wire::SetStep> body_of<wire::SetStep>{wire::Envelope::SET_STEP,
                                                                  &envelope_builder::initSetStep};
template <>
inline constexpr body_place<wire::CancelStep> body_of<wire::CancelStep>{
  wire::Envelope::CANCEL_STEP, &envelope_builder::initCancelStep};
template <>
inline constexpr body_place<wire::PutTokens> body_of<wire::PutTokens>{
  wire::Envelope::PUT_TOKENS, &envelope_builder::initPutTokens};
template <>
inline constexpr body_place<wire::ReadQueueStatus> body_of<wire::ReadQueueStatus>{
  wire::Envelope::READ_QUEUE_STATUS, &envelope_builder::initReadQueueStatus};
template <>
inline constexpr body_place<wire::QueueStatus> body_of<wire::QueueStatus>{
  wire::Envelope::QUEUE_STATUS, &envelope_builder::initQueueStatus};
template <>
inline constexpr body_place<wire::JoinJob> body_of<wire::JoinJob>{wire::Envelope::JOIN_JOB,
                                                                  &envelope_builder::initJoinJob};
template <>
inline constexpr body_place<wire::CloseTokens> body_of<wire::CloseTokens>{
  wire::Envelope::CLOSE_TOKENS, &envelope_builder::initCloseTokens};
template <>
inline constexpr body_place<wire::StopJob> body_of<wire::StopJob>{wire::Envelope::STOP_JOB,
                                                                  &envelope_builder::initStopJob};

template <>
inline constexpr body_place<wire::UseOptimizer> body_of<wire::UseOptimizer>{
  wire::Envelope::USE_OPTIMIZER, &envelope_builder::initUseOptimizer};
template <>
inline constexpr body_place<wire::OptimizerInUse> body_of<wire::OptimizerInUse>{
  wire::Envelope::OPTIMIZER_IN_USE, &envelope_builder::initOptimizerInUse};
template <>
inline constexpr body_place<wire::TakeAggregate> body_of<wire::TakeAggregate>{
  wire::Envelope::TAKE_AGGREGATE, &envelope_builder::initTakeAggregate};
template <>
inline constexpr body_place<wire::AwaitAggregate> body_of<wire::AwaitAggregate>{
  wire::Envelope::AWAIT_AGGREGATE, &envelope_builder::initAwaitAggregate};
template <>
inline constexpr body_place<wire::Aggregate> body_of<wire::Aggregate>{
  wire::Envelope::AGGREGATE, &envelope_builder::initAggregate};
template <>
inline constexpr body_place<wire::CancelTakes> body_of<wire::CancelTakes>{
  wire::Envelope::CANCEL_TAKES, &envelope_builder::initCancelTakes};
template <>
inline constexpr body_place<wire::ReadAccumulator> body_of<wire::ReadAccumulator>{
  wire::Envelope::READ_ACCUMULATOR, &envelope_builder::initReadAccumulator};
template <>
inline constexpr body_place<wire::AccumulatorStatus> body_of<wire::AccumulatorStatus>{
  wire::Envelope::ACCUMULATOR_STATUS, &envelope_builder::initAccumulatorStatus};
template <>
inline constexpr body_place<wire::ReadState> body_of<wire::ReadState>{
  wire::Envelope::READ_STATE, &envelope_builder::initReadState};
template <>
inline constexpr body_place<wire::VariableState> body_of<wire::VariableState>{
  wire::Envelope::VARIABLE_STATE, &envelope_builder::initVariableState};
template <>
inline constexpr body_place<wire::RestoreState> body_of<wire::RestoreState>{
  wire::Envelope::RESTORE_STATE, &envelope_builder::initRestoreState};
template <>
inline constexpr body_place<wire::ReadProgress> body_of<wire::ReadProgress>{
  wire::Envelope::READ_PROGRESS, &envelope_builder::initReadProgress};
template <>
inline constexpr body_place<wire::ReplicaProgress> body_of<wire::ReplicaProgress>{
  wire::Envelope::REPLICA_PROGRESS, &envelope_builder::initReplicaProgress};

template <>
inline constexpr body_place<wire::ReadAverage> body_of<wire::ReadAverage>{
  wire::Envelope::READ_AVERAGE, &envelope_builder::initReadAverage};

template <>
inline constexpr body_place<wire::ReleaseUpdate> body_of<wire::ReleaseUpdate>{
  wire::Envelope::RELEASE_UPDATE, &envelope_builder::initReleaseUpdate};

template <>
inline constexpr body_place<wire::ChangeVariable> body_of<wire::ChangeVariable>{
  wire::Envelope::CHANGE_VARIABLE, &envelope_builder::initChangeVariable};

template <>
inline constexpr body_place<wire::Hello> body_of<wire::Hello>{wire::Envelope::HELLO,
                                                              &envelope_builder::initHello};
template <>
inline constexpr body_place<wire::FindActor> body_of<wire::FindActor>{
  wire::Envelope::FIND_ACTOR, &envelope_builder::initFindActor};

template <>
inline constexpr body_place<wire::EnterJob> body_of<wire::EnterJob>{
  wire::Envelope::ENTER_JOB, &envelope_builder::initEnterJob};
template <>
inline constexpr body_place<wire::JobBegins> body_of<wire::JobBegins>{
  wire::Envelope::JOB_BEGINS, &envelope_builder::initJobBegins};
template <>
inline constexpr body_place<wire::AwaitEnd> body_of<wire::AwaitEnd>{
  wire::Envelope::AWAIT_END, &envelope_builder::initAwaitEnd};
template <>
inline constexpr body_place<wire::JobEnded> body_of<wire::JobEnded>{
  wire::Envelope::JOB_ENDED, &envelope_builder::initJobEnded};
template <>
inline constexpr body_place<wire::LeaveJob> body_of<wire::LeaveJob>{
  wire::Envelope::LEAVE_JOB, &envelope_builder::initLeaveJob};

template <>
inline constexpr body_place<wire::CollectivePart> body_of<wire::CollectivePart>{
  wire::Envelope::COLLECTIVE_PART, &envelope_builder::initCollectivePart};
template <>
inline constexpr body_place<wire::CollectiveFailed> body_of<wire::CollectiveFailed>{
  wire::Envelope::COLLECTIVE_FAILED, &envelope_builder::initCollectiveFailed};

/// The name of a body as the schema spells it ("pushGradient"); "unknown" if the schema has none.
[[nodiscard]] const char* body_name(wire::Envelope::Which which);

/// The body, whichever it is: all bodies share the envelope's only pointer.
[[nodiscard]] capnp::AnyStruct::Reader body_of_envelope(wire::Envelope::Reader envelope);

template <>
inline constexpr body_place<wire::WorkerReady> body_of<wire::WorkerReady>{
  wire::Envelope::WORKER_READY, &envelope_builder::initWorkerReady};
template <>
inline constexpr body_place<wire::RunClosure> body_of<wire::RunClosure>{
  wire::Envelope::RUN_CLOSURE, &envelope_builder::initRunClosure};
template <>
inline constexpr body_place<wire::ClosureDone> body_of<wire::ClosureDone>{
  wire::Envelope::CLOSURE_DONE, &envelope_builder::initClosureDone};
template <>
inline constexpr body_place<wire::CancelClosure> body_of<wire::CancelClosure>{
  wire::Envelope::CANCEL_CLOSURE, &envelope_builder::initCancelClosure};
template <>
inline constexpr body_place<wire::AwaitServiceEnd> body_of<wire::AwaitServiceEnd>{
  wire::Envelope::AWAIT_SERVICE_END, &envelope_builder::initAwaitServiceEnd};
template <>
inline constexpr body_place<wire::ServiceEnded> body_of<wire::ServiceEnded>{
  wire::Envelope::SERVICE_ENDED, &envelope_builder::initServiceEnded};
template <>
inline constexpr body_place<wire::PullVariable> body_of<wire::PullVariable>{
  wire::Envelope::PULL_VARIABLE, &envelope_builder::initPullVariable};
template <>
inline constexpr body_place<wire::VariableChanges> body_of<wire::VariableChanges>{
  wire::Envelope::VARIABLE_CHANGES, &envelope_builder::initVariableChanges};

template <>
inline constexpr body_place<wire::MirrorState> body_of<wire::MirrorState>{
  wire::Envelope::MIRROR_STATE, &envelope_builder::initMirrorState};
template <>
inline constexpr body_place<wire::FollowOwner> body_of<wire::FollowOwner>{
  wire::Envelope::FOLLOW_OWNER, &envelope_builder::initFollowOwner};
template <>
inline constexpr body_place<wire::TakeOver> body_of<wire::TakeOver>{
  wire::Envelope::TAKE_OVER, &envelope_builder::initTakeOver};
template <>
inline constexpr body_place<wire::TookOver> body_of<wire::TookOver>{
  wire::Envelope::TOOK_OVER, &envelope_builder::initTookOver};
template <>
inline constexpr body_place<wire::OwnerFollowed> body_of<wire::OwnerFollowed>{
  wire::Envelope::OWNER_FOLLOWED, &envelope_builder::initOwnerFollowed};
template <>
inline constexpr body_place<wire::OwnersLost> body_of<wire::OwnersLost>{
  wire::Envelope::OWNERS_LOST, &envelope_builder::initOwnersLost};
template <>
inline constexpr body_place<wire::OfferMirror> body_of<wire::OfferMirror>{
  wire::Envelope::OFFER_MIRROR, &envelope_builder::initOfferMirror};
template <>
inline constexpr body_place<wire::RepeatChanges> body_of<wire::RepeatChanges>{
  wire::Envelope::REPEAT_CHANGES, &envelope_builder::initRepeatChanges};
template <>
inline constexpr body_place<wire::OwnersMirrored> body_of<wire::OwnersMirrored>{
  wire::Envelope::OWNERS_MIRRORED, &envelope_builder::initOwnersMirrored};
template <>
inline constexpr body_place<wire::CountMissing> body_of<wire::CountMissing>{
  wire::Envelope::COUNT_MISSING, &envelope_builder::initCountMissing};

} // namespace troupe
