# SPDX-License-Identifier: Apache-2.0
# Messages between actors during synchronous training.
#
# Roles.  A *replica* computes gradients.  A *variable owner* holds one variable and changes it.  An
# *accumulator* collects the gradients of one variable.  The *token queue* is the barrier: a replica
# goes on when it gets a token.  The *chief* closes steps and hands out tokens.
#
# One step, in order:
#
#   replica      -> owner        ReadVariable      answered by VariableSnapshot, at once
#   cache        -> owner        PullVariable      answered by VariableChanges, at once; in place of ReadVariable,
#                                for all replicas of a process that the owner is not part of
#   replica      -> accumulator  PushGradient      answered by PushReply, at once
#   replica      -> token queue  TakeToken         answered by Token, as soon as there is one
#   chief        -> accumulator  TakeGradient      answered by the owner's UpdateApplied
#   accumulator  -> chief        TakenGradient     not answered; sent when the step has enough gradients
#   accumulator  -> owner        ApplyUpdate       answered by UpdateApplied, straight to the chief
#   chief        -> owner        ReleaseUpdate     answered by UpdateApplied, if the update was held
#   chief        -> token queue  PutTokens         not answered
#
# and beside it:
#
#   replica      -> chief        JoinJob           not answered; the replica's first message
#   any actor    -> owner        ChangeVariable    answered by VariableSnapshot, at once
#   trainer      -> owner        UseOptimizer      answered by OptimizerInUse, before the first step; a question only, if
#                                the sender's updates name their optimizer
#   any actor    -> owner        ReadAverage       answered by VariableSnapshot, at once
#   replica      -> accumulator  AwaitAggregate    answered by Aggregate, when the step is closed
#   any actor    -> accumulator  TakeAggregate     answered by Aggregate, when there is enough
#   any actor    -> accumulator  CancelTakes       not answered
#   any actor    -> accumulator  ReadAccumulator   answered by AccumulatorStatus, at once
#   chief        -> accumulator  SetStep           not answered
#   chief        -> accumulator  CountMissing      not answered
#   chief        -> replica      CancelStep        not answered
#   chief        -> token queue  ReadQueueStatus   answered by QueueStatus, at once
#   chief        -> token queue  CloseTokens       not answered; ends the job for every replica
#   replica      -> chief        Farewell          not answered; the replica's last message
#   any actor    -> chief        StopJob           not answered
#
# Delivery.  Messages from one actor to another arrive in the order they were sent, each at most once,
# and are lost only together with the link or an actor, which its monitors are told.  A request that
# cannot be served is answered by an error of `Errc` instead.  Where links lose or double messages, a replica
# asks again, and PushGradient, TakeToken, ReadVariable and ChangeVariable may come more often than once: the first counts.  Nothing is promised about the order of
# messages from different senders: every gradient names the step it was computed for, and the
# accumulator decides by that alone.

@0x8a020d464d578a76;

using Cxx = import "/capnp/c++.capnp";
using import "tensor.capnp".Gradient;
using import "tensor.capnp".Tensor;
using import "tensor.capnp".required;
$Cxx.namespace("troupe::wire");

using Step = UInt64;
# Synchronous training step.  0 is the state before the first update; each update adds one.

using Nanoseconds = UInt64;
# A length of time; 0 means that none passed, or that it was not measured.

enum Errc {
  # Why something could not be done.  The values and meanings are those of `troupe::errc`.

  none @0;
  invalidArgument @1;
  typeMismatch @2;
  wrongContext @3;
  failedPrecondition @4;
  notFound @5;
  outOfRange @6;
  cancelled @7;
  deadlineExceeded @8;
  unavailable @9;
  stalled @10;
  malformed @11;
  limitExceeded @12;
  resource @13;
  userCode @14;
  unimplemented @15;
}

# ---- what a replica says ----

struct Origin {
  # Where a gradient comes from and what it took.

  replica @0 :UInt32;
  # Index of the replica, from 0.

  examples @1 :UInt32;
  # Examples in the replica's batch; 0 = not reported.

  localStep @2 :Step;
  # The step that the gradient was computed for: the replica's token, 0 before its first.

  iteration @3 :UInt64;
  # How many gradients this replica had computed before this one.  A replica that comes late, or back after its
  # node was gone, counts on from 2^32 for each time: no gradient of it has a number of its former life.

  computeNanoseconds @4 :Nanoseconds;
  # Time that computing the gradient took, the barrier not included.

  waitedNanoseconds @5 :Nanoseconds;
  # How long the replica had waited for the token that began the computation.

  loss @6 :Float64 = nan;
  # Mean loss over the replica's batch; NaN, the default, = not reported.
}

struct GradientId {
  # Which of all gradients one is.

  replica @0 :UInt32;
  # As in `Origin`.

  iteration @1 :UInt64;
  # As in `Origin`.
}

struct ReadVariable {
  # Asks a variable's owner for its value.

  component @0 :Int32 = -1;
  # Which copy, from 0, of a variable that has one for each replica.  -1, the default = the variable
  # as a whole, which is its first copy, or what the copies come to if they are kept apart on purpose.

  deviceKind @1 :UInt8;
  # As in `Tensor`: the kind of device that the sender computes on.  A variable that lies on that very device is
  # answered where it lies, any other by its elements in the host's memory.

  deviceIndex @2 :UInt16;
  # As in `Tensor`.
}

enum Change {
  # How an operand changes an element.  The values and meanings are those of `troupe::change`.

  assign @0;
  add @1;
  subtract @2;
  multiply @3;
  divide @4;
  minimum @5;
  maximum @6;
}

struct RequestId {
  # Which of all changes one is that may be asked for again: it is made once, and answered again.

  client @0 :UInt64;
  # The number of the client that asks, as `OwnerFollowed` says.

  number @1 :UInt64;
  # Which of the client's changes it is; they count up from 1.

  oldest @2 :UInt64;
  # The first of them that it has no answer to: earlier ones it will not ask for again.
}

struct ChangeVariable {
  # Asks an owner to change its variable by hand.  Answered by the changed copy.

  component @0 :Int32 = -1;
  # Which copy is changed, from 0; -1, the default = all copies.

  change @1 :Change;

  operand @2 :Gradient;
  # Dense: as the variable.  Sparse: the rows that are changed, one after the other; a row that occurs twice
  # is changed twice.  None is refused.

  id @3 :RequestId;
  # Null = it is not asked for again.
}

struct ReadAverage {
  # Asks a variable's owner for the moving average that it keeps.  `notFound` if it keeps none of that name.

  name @0 :Text;
  # As in `UseOptimizer.average`; at most 4096 bytes.
}

struct VariableSnapshot {
  # The value of a variable, or of its average, at one moment.  It shares the owner's memory, which the owner does not write
  # to while a snapshot of it is alive.

  version @0 :UInt64;
  # How many updates the value includes; 0 = the initial value.

  value @1 :Tensor $required;
}

struct PullVariable {
  # Asks a variable's owner for whatever has changed, the variable as a whole being meant.

  known @0 :UInt64;
  # The `revision` of the value that the sender has; 0 = none.
}

struct VariableChanges {
  # The changes of a variable since the value that the sender of `PullVariable` has.

  version @0 :UInt64;
  # As in `VariableSnapshot`.

  revision @1 :UInt64;
  # How often the variable has changed in any way, updates or not; the first value is revision 1.

  change @2 :Gradient;
  # None: the value is what the sender of `PullVariable` knows.  Dense: the value.  Sparse: what it knows, but
  # for these rows, which have the values given; each occurs once.

  byRows @3 :Bool;
  # The variable changed by some of its rows the last time.  A cache that keeps its value will be told
  # no more than rows the next time.
}

struct PushGradient {
  # Gives one variable's accumulator a gradient.

  origin @0 :Origin;
  gradient @1 :Gradient;
}

enum Verdict {
  # How an accumulator judged a gradient.

  accepted @0;
  # It is part of the step that the accumulator collects for; a `localStep` ahead of the accumulator's
  # step is accepted as well.

  stale @1;
  # Its `localStep` is behind the accumulator's step, or its replica has given one to this step already
  # and only one counts: it was dropped, whatever it held.
}

struct PushReply {
  # Tells a replica what became of its gradient.  A gradient that does not fit the variable (shape,
  # dtype, row numbers) is answered by an error instead, and dropped; but staleness is judged first.

  verdict @0 :Verdict;

  accumulatorStep @1 :Step;
  # The step that the accumulator collected for when it judged.

  nextStep @2 :Step;
  # Where training is asynchronous: the first step that the replica may go on with.  Where only one of its
  # gradients counts in a step, and this one does: the next step.  0, the default = that is the token
  # queue's to say.
}

struct TakeToken {
  # Asks for permission to go on.  Answered when there is a token, in the order of asking.

  replica @0 :UInt32;
  # Index of the replica that asks.

  localStep @1 :Step;
  # The step that its last gradient was for.

  notBefore @2 :Step;
  # The largest `nextStep` that it was answered, or the step after one whose mean it reads.  Where training is asynchronous a token for an earlier
  # step does not do; under the policy `tensorflow` the replica waits until that step has begun, and then
  # takes the oldest token there is.  It is not asked for elsewhere.

  request @3 :UInt64;
  # Which of the replica's questions this is: they count up.  One that is asked again, because its answer may
  # have been lost, gets the same answer and no second token, if the queue was told to remember; 0, the
  # default = a question like any other.
}

struct Token {
  # Permission to compute the next gradient.

  step @0 :Step;
  # The replica's next `localStep`.
}

struct JoinJob {
  # A replica is there and begins to work.  The chief watches the sender from now on.

  replica @0 :UInt32;
  # Index of the replica.
}

struct Farewell {
  # A replica leaves, on purpose or because it failed.

  replica @0 :UInt32;

  code @1 :Errc;
  # Why; `none`, the default = its work is done.

  reason @2 :Text;
  # One line for people; at most 4096 bytes; empty = nothing to add.

  throwSite @3 :Text;
  # As in `Abort`.
}

# ---- what the chief, the accumulators and the owners say ----

struct TakeGradient {
  # Asks an accumulator to close the step as soon as it has enough gradients.

  required @0 :UInt32;
  # How many gradients are enough; 0 is refused.

  hold @1 :Bool;
  # As in `ApplyUpdate`.

  measure @2 :Bool;
  # As in `ApplyUpdate`.
}

struct Arrival {
  # One gradient as an accumulator saw it.

  origin @0 :Origin;

  arrivedNanoseconds @1 :Int64;
  # When it came in, on the world's clock: nanoseconds since the job began.

  accumulatorStep @2 :Step;
  # The step that it became part of, or, if it was dropped, that the accumulator collected for at that
  # moment.
}

struct TakenGradient {
  # Tells the chief that a step has enough gradients for one variable, and which they are.  The
  # update is on its way to the owner.

  step @0 :Step;
  # The accumulator's step that the gradients were for.

  accepted @1 :List(Arrival);
  # The gradients of this step, in order of arrival.

  stale @2 :List(Arrival);
  # The gradients dropped since the step before this one was closed, in order of arrival.

  amends @3 :Bool;
  # The accumulator stands in for one that was lost after it had reported the step: these are the gradients that the
  # former report does not have.
}

struct ApplyUpdate {
  # Asks the owner to change its variable by the sum of `gradients`, divided by `divisor`.

  step @0 :Step;
  # The accumulator's step that the gradients were for.

  divisor @1 :UInt32;
  # Divisor of the sum; 0, the default = the number of gradients.

  gradients @2 :List(Gradient);
  # Ordered by the replica's index, then by iteration, so that sums do not depend on the order of
  # arrival.  Inside a process they lie where the replicas left them.

  hold @3 :Bool;
  # Asks the owner to measure the mean gradient only, and to wait for ReleaseUpdate: a clip by the norm of
  # all variables has to know them all before the first is applied.

  measure @4 :Bool;
  # Asks for `UpdateApplied.squaredNorm` and `meanSquaredNorm`, held or not.

  taken @5 :TakenGradient;
  # Which gradients these are, for an owner that is replicated; else nothing.

  id @6 :RequestId;
  # As in `ChangeVariable`.

  oneForEachDevice @7 :Bool;
  # The gradients are one and the same, each on another device: a copy of the variable takes the one
  # beside it.

  optimizer @8 :UseOptimizer;
  # The optimizer that the update belongs to: if another one is in use, it is used from this update on.  So senders
  # that name theirs need not know of each other.  Nothing = the optimizer in use.
}

struct ReleaseUpdate {
  # Asks the owner to apply the update that it holds.

  scale @0 :Float64;
  # Factor of the mean gradient.
}

struct UpdateApplied {
  # Tells that the owner has changed its variable.

  version @0 :UInt64;
  # How many updates the value now includes; 1 after the first.

  step @1 :Step;
  # As in `ApplyUpdate`.

  appliedNanoseconds @2 :Int64;
  # When it was done, on the world's clock: nanoseconds since the job began.

  tookNanoseconds @3 :Nanoseconds;
  # Duration of the pass over memory.

  squaredNorm @4 :Float64 = nan;
  # If the update is held, and so not part of `version` yet, or was to be measured: the sum of the squares
  # of the mean gradient.

  meanSquaredNorm @5 :Float64 = nan;
  # If it was to be measured: the mean of such sums of the gradients, each by itself.

  squaredNorms @6 :List(Float64);
  # For variables that are updated together, in place of `squaredNorm`: the sum of each, in their order.
}

struct Setting {
  # One number that something is set to.

  name @0 :Text;
  # As `visit_settings` in `troupe/kernels/updates/rules/` spells it: "learning_rate", "beta1"; at most 4096 bytes.

  value @1 :Float64;
  # A flag is 0 or 1.
}

struct Choice {
  # Something that is chosen by its name.

  name @0 :Text;
  # At most 4096 bytes; empty, the default = nothing is chosen.

  settings @1 :List(Setting);
  # At least the settings that are not at their defaults.  A name that occurs several times is a list, in order.
}

struct UseOptimizer {
  # Tells an owner what an update does.  Slots that the optimizer needs begin at their initial values,
  # unless the variable has slots of the same optimizer already: those go on, with the new settings.  So
  # does an average of the same name.

  name @0 :Text;
  # Name of the optimizer, as in `troupe/kernels/updates/update_rules.hpp`: "sgd", "adamw"; at most 4096 bytes.

  settings @1 :List(Setting);
  # The optimizer's own, and those that every update has: "clip_value", "clip_norm", "sparse_exact".

  schedule @2 :Choice;
  # How the learning rate changes: "polynomial"; nothing = it stays as it is set.

  average @3 :Choice;
  # The moving average that is kept beside the variable: its name ends the shadow's; nothing = none.

  ask @4 :Bool;
  # Asks only whether the owner would use the optimizer: nothing changes, whatever the answer.  So a sender with
  # several variables knows that all owners agree before it changes one.
}

struct OptimizerInUse {
  # The owner is ready for updates; or would be, if it was asked only.

  version @0 :UInt64;
  # How many updates the variable includes so far.

  slotCount @1 :UInt32;
  # Arrays of the variable's size that the optimizer keeps beside it.
}

struct TakeAggregate {
  # Asks an accumulator for the sum or the mean of its gradients, as soon as it has enough.  Takes of
  # both kinds wait in one queue; the first one waits until it has enough, and those behind it wait too.

  required @0 :UInt32;
  # How many gradients are enough; 0 is refused.
}

struct AwaitAggregate {
  # Asks an accumulator what the gradients of a step come to, whichever actor takes them.  Sent before
  # the push, so that the step cannot be over before the question is there.  A step that is over
  # already is answered by the error `outOfRange`.

  step @0 :Step;
  # The step, which must not have been closed yet.
}

struct Aggregate {
  # The sum or mean of the gradients of one step.

  step @0 :Step;
  # The accumulator's step that the gradients were for.

  count @1 :UInt32;
  # How many gradients it is made of; at least as many as were required.

  gradient @2 :Gradient;
  # Their sum or mean.  The rows of a sparse one are in ascending order, each once, and each row's mean is
  # over the gradients that hold it.
}

struct CancelTakes {
  # The sender waits no longer: what it has asked for by TakeGradient, TakeAggregate and AwaitAggregate is
  # answered by the error `cancelled`.

  atMost @0 :UInt32;
  # Not 0: the sender waits on, but its takes for `step` are content with so many gradients.

  step @1 :Step;
  # The step that the takes are for; if it is over, nothing happens.
}

struct CountMissing {
  # Tells an accumulator of asynchronous training that gradients will never come, since their replicas were lost after
  # they had given other variables their parts.  They count as given and change nothing, so that no variable
  # stays behind the others for ever.

  gradients @0 :UInt32;
  # How many.

  step @1 :Step;
  # The step that the accumulator collects for; if it is over, nothing happens.
}

struct ReadAccumulator {
  # Asks what an accumulator holds.
}

struct AccumulatorStatus {
  # The state of an accumulator at this moment.

  step @0 :Step;
  # The step that it collects for.

  accumulated @1 :UInt32;
  # Gradients accepted since the last take, and those that count as given.

  takes @2 :UInt32;
  # Takes that wait.
}

struct SetStep {
  # Tells an accumulator where a job that was restarted goes on.  Gradients that it holds stay.

  step @0 :Step;
  # Gradients with a smaller `localStep` are stale from now on.
}

struct StopJob {
  # Asks the chief to end the job before its last step: a signal, a user, a hook.

  reason @0 :Text;
  # One line for people; at most 4096 bytes; empty = nothing to add.
}

struct CancelStep {
  # Tells a replica that gradients for past steps are no longer wanted: it stops computing and sending
  # them, and asks for a token.

  step @0 :Step;
  # Gradients with a smaller `localStep` are not wanted.
}

# ---- what the token queue is told and says ----

struct PutTokens {
  # Adds tokens at the end of the queue.

  step @0 :Step;
  # The `step` of each of them.

  count @1 :UInt32;
  # How many; 0 adds none.
}

struct CloseTokens {
  # There will be no more tokens.  A replica that waits, or asks later, is answered `cancelled`.
}

struct ReadQueueStatus {
  # Asks which replicas wait: how the chief finds out that a job cannot go on.
}

struct QueueStatus {
  # The state of the token queue at this moment.  If there are tokens, each replica that waits must not
  # go on before a step that has not begun.

  tokens @0 :UInt32;
  # Tokens that no replica has asked for yet.

  waiting @1 :List(UInt32);
  # Indices of the replicas that wait for a token, in the order of asking.

  nextStep @2 :Step;
  # The `step` of the token at the head; 0 if there is none.

  steps @3 :List(Step);
  # The `step` of each token, from the head on.
}
