// SPDX-License-Identifier: Apache-2.0
// All messages there are, for code that needs a table of them.
#pragma once

#include "messages/body.hpp"

namespace troupe {

/// Types, to be expanded.
template <class... Bodies>
struct body_list {};

/// One line per message, in the order of the envelope.
using every_body = body_list<
  wire::Unimplemented, wire::Abort, wire::ReadVariable, wire::VariableSnapshot, wire::PushGradient,
  wire::PushReply, wire::TakeToken, wire::Token, wire::Farewell, wire::TakeGradient,
  wire::TakenGradient, wire::ApplyUpdate, wire::UpdateApplied, wire::SetStep, wire::CancelStep,
  wire::PutTokens, wire::ReadQueueStatus, wire::QueueStatus, wire::JoinJob, wire::CloseTokens,
  wire::StopJob, wire::UseOptimizer, wire::OptimizerInUse, wire::TakeAggregate,
  wire::AwaitAggregate, wire::Aggregate, wire::CancelTakes, wire::ReadAccumulator,
  wire::AccumulatorStatus, wire::ReadState, wire::VariableState, wire::RestoreState,
  wire::ReadProgress, wire::ReplicaProgress, wire::ReadAverage, wire::ReleaseUpdate,
  wire::ChangeVariable, wire::Hello, wire::FindActor, wire::EnterJob, wire::JobBegins,
  wire::AwaitEnd, wire::JobEnded, wire::LeaveJob, wire::CollectivePart, wire::CollectiveFailed,
  wire::WorkerReady, wire::RunClosure, wire::ClosureDone, wire::CancelClosure,
  wire::AwaitServiceEnd, wire::ServiceEnded, wire::MirrorState, wire::FollowOwner, wire::TakeOver,
  wire::TookOver, wire::OwnerFollowed, wire::OwnersLost, wire::PullVariable, wire::VariableChanges,
  wire::OfferMirror, wire::RepeatChanges, wire::OwnersMirrored, wire::CountMissing>;

} // namespace troupe
