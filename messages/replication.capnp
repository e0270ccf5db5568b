# SPDX-License-Identifier: Apache-2.0
# Messages about owners that are replicated, so that the loss of one loses nothing.
#
# Roles.  A *mirror* is a second owner of a variable, in another process.  A *failover client* speaks for a
# replica, for the chief, or for the closures of a process, to the *holder* of a variable: its owner
# or its mirror.  The *directory* knows which.
#
#   owner        -> mirror       MirrorState, after UseOptimizer and an update that is held, if there are any; then the changes
#                                that are made to it, or MirrorState in place of an ApplyUpdate; answered as the owner
#                                answers them, which answers only then
#   client       -> directory    FollowOwner       a failover client's first message; answered by OwnerFollowed when the
#                                                holder is certain, after TookOver, if it is the mirror
#   directory    -> mirror       TakeOver          answered by TookOver, at once
#   directory    -> client       TookOver          answered by OwnerFollowed, when what was on its way is told again
#   directory    -> chief        OwnersLost, OwnersMirrored        not answered; where there is none, to the coordinator
#
# An owner that held a variable and was lost may come back, in a new life, and hold it once more: as
# the mirror of the present holder.
#
#   newcomer     -> directory    OfferMirror       answered by OwnerFollowed when it is certain that another holds the variable,
#                                                alone; refused if it is no newcomer, as it may find out by this
#   newcomer     -> its owner    RepeatChanges     not answered, but followed by what an owner tells its mirror
#   newcomer     -> directory    OfferMirror       once more, when it has MirrorState
#
# An owner with a mirror that does not answer any more answers no request before it is certain that
# the mirror will not take over.
#
#   owner        -> directory    OfferMirror       a place to be filled; answered by OwnerFollowed when the mirror is gone
#
# A failover client that loses an owner may have lost its answer with it, and asks the mirror again.  Each change of a variable, by
# ChangeVariable or by ApplyUpdate, has a RequestId then: owner and mirror remember which they have made, and make none twice.

@0xfd35cd8bffd6c5d1;

using Cxx = import "/capnp/c++.capnp";
using Checkpoint = import "checkpoint.capnp";
using Training = import "training.capnp";
using import "tensor.capnp".required;
$Cxx.namespace("troupe::wire");

struct ClosedStep {
  # The last step that an owner was given an update for.

  taken @0 :Training.TakenGradient;
  # As in `ApplyUpdate`; null = there was none yet.

  applied @1 :Training.UpdateApplied;
  # The answer to ApplyUpdate.

  released @2 :Training.UpdateApplied;
  # The answer to ReleaseUpdate; null = the update was not held, or is held still.

  latest @3 :List(Training.GradientId);
  # The last gradient of each replica that the variable has, by replica.  Where training is asynchronous, and an accumulator
  # may hold gradients over several steps, it has the replica's earlier ones, too.
}

struct MadeChange {
  # A change that may be asked for again, and what it was answered: one of the two.

  id @0 :Training.RequestId;

  snapshot @1 :Training.VariableSnapshot;
  # Null, too, if it was more than a few bytes: then it is answered by the variable as it is.

  applied @2 :Training.UpdateApplied;
}

struct MirrorState {
  # Tells a mirror what its owner holds, at first, and in place of an update that would be more bytes.  Answered by
  # UpdateApplied; refused if it is not from the mirror's own owner.  From then on the mirror may take over.

  state @0 :Checkpoint.VariableState $required;

  closed @1 :ClosedStep;
  # The last step that the owner was given an update for; null = there was no update yet.

  made @2 :List(MadeChange);
  # Changes that may be asked for again; the client that has asked last comes last.
}

struct FollowOwner {
  # A failover client wants to know the holder of a variable, and whenever that changes.  It is the owner
  # unless a TookOver says else.  Where links may lose messages, a replica asks its owner, for a number.

  variable @0 :UInt32;
  # The variable's position among those of the strategy.

  closesSteps @1 :Bool;
  # It asks for gradients, and is told after those that give them.
}

struct TakeOver {
  # The owner is gone: its mirror holds the variable from now on, and takes no changes of the former any more.  Refused with
  # failedPrecondition by one that was never told what its owner holds.

  term @0 :UInt64;
  # How often the variable has moved, with this time: from the owner's place to the mirror's if odd, else back.
}

struct TookOver {
  # A mirror holds the variable.

  closed @0 :ClosedStep;
  # The last step that the variable was updated for; null = there was no update yet.

  code @1 :Training.Errc;
  # Not `none`: there is no mirror either, and the variable has no holder.

  reason @2 :Text;
  # One line for people; at most 4096 bytes.

  term @3 :UInt64;
  # As in `TakeOver`, if there is a mirror.
}

struct OwnerFollowed {
  # A failover client speaks to the mirror, which has been given again whatever may have been lost.  To a
  # failover client: it knows the holder of the variable.  To a newcomer: it may ask the present holder.

  client @0 :UInt64;
  # To a failover client that has just come: its number among all there were, from 1.  It asks for changes by that.  To a replica
  # that asks an owner, likewise.

  mirror @1 :UInt32;
  # To a newcomer: which of the variable's mirrors it is, counted from 0.
}

struct OwnersLost {
  # Owners or mirrors are gone, and the job goes on without them.

  reason @0 :Text;
  # One line for people: which, why, and what is held but once now; at most 4096 bytes.
}

struct OfferMirror {
  # A newcomer wants to hold a variable beside its holder; or the holder has lost its mirror.

  variable @0 :UInt32;
  # As in `FollowOwner`.

  isMirrors @1 :Bool;
  # Its place is that of the mirror, else that of the owner.

  isFilled @2 :Bool;
  # It knows what its owner holds: the variable is held twice again.

  isMissed @3 :Bool;
  # The holder of the variable cannot reach its mirror: the place is offered, by no newcomer yet.

  mirror @4 :UInt32;
  # If so: which one, as `OwnerFollowed` counts them.  Another may have come meanwhile.
}

struct RepeatChanges {
  # The sender is the mirror from now on: it is to be told all that its owner holds, and each change.

  mirror @0 :UInt32;
  # Which one it is, as it was told.
}

struct OwnersMirrored {
  # Variables that were held once are held twice again.

  reason @0 :Text;
  # One line for people: which; at most 4096 bytes.
}
