// SPDX-License-Identifier: Apache-2.0
// The list of all messages, and the place of each in the envelope.
#pragma once

#include "messages/envelope.capnp.h"

#include <capnp/any.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <type_traits>

namespace troupe {

/// Types, to be expanded.
template <class... Bodies>
struct body_list {};

/// Every message, in the order of the envelope: a position here is a discriminant there. A type
/// that is not listed is no message: it can neither be made nor decoded.
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
  wire::OfferMirror, wire::RepeatChanges, wire::OwnersMirrored, wire::CountMissing, wire::ActorMade,
  wire::ReadTask, wire::TaskReport>;

/// Where `T` stands in a list.
template <class T, class... Bodies>
[[nodiscard]] consteval size_t position_in(body_list<Bodies...>) {
  static_assert((std::is_same_v<T, Bodies> || ...), "the type is not a message");
  const bool is_here[] = {std::is_same_v<T, Bodies>...};
  return static_cast<size_t>(std::ranges::find(is_here, true) - std::begin(is_here));
}

/// The place of `T` in the envelope.
template <class T>
inline constexpr auto body_of = static_cast<wire::Envelope::Which>(position_in<T>(every_body{}));

/// The name of a body as the schema spells it ("pushGradient"); "unknown" if the schema has none.
[[nodiscard]] const char* body_name(wire::Envelope::Which which);

/// The body, whichever it is: all bodies share the envelope's only pointer.
[[nodiscard]] capnp::AnyStruct::Reader body_of_envelope(wire::Envelope::Reader envelope);

} // namespace troupe
