# SPDX-License-Identifier: Apache-2.0
# The root of every message.
#
# Every frame is one Envelope in Cap'n Proto's standard stream framing: `capnp decode` with this file
# and the type Envelope prints any frame.  The message's receiver and the request that it answers are
# the link's business and do not appear here, so that one message can be given to many receivers, in
# the same process and in others, without being copied or changed.

@0xcd4572457e617e3b;

using Cxx = import "/capnp/c++.capnp";
using Checkpoint = import "checkpoint.capnp";
using Cluster = import "cluster.capnp";
using Collective = import "collective.capnp";
using Coordinator = import "coordinator.capnp";
using Link = import "link.capnp";
using Observing = import "observing.capnp";
using Replication = import "replication.capnp";
using Training = import "training.capnp";
$Cxx.namespace("troupe::wire");

const protocolVersion :UInt16 = 1;
# Raised when a peer that follows the older schema would misread a message.  Fields and bodies that are
# merely added do not raise it.

struct Unset {
  # The body of an envelope that was given none.  No actor takes it.
}

struct Abort {
  # The sender closes the link right after this message.

  code @0 :Training.Errc;
  # Why; `none`, the default = it leaves on purpose.

  reason @1 :Text;
  # One line for people; at most 4096 bytes.

  throwSite @2 :Text;
  # The process, the actor and the functions that threw, if it came of an exception: "worker:2, actor 'reader',
  # read_record < reader"; at most 4096 bytes; empty = not known.
}

struct Envelope {
  protocol @0 :UInt16;
  # `protocolVersion` of the sender; 0 is refused, as is any other version than the receiver's.

  union {
    unset @1 :Unset;
    abort @2 :Abort;
    readVariable @3 :Training.ReadVariable;
    variableSnapshot @4 :Training.VariableSnapshot;
    pushGradient @5 :Training.PushGradient;
    pushReply @6 :Training.PushReply;
    takeToken @7 :Training.TakeToken;
    token @8 :Training.Token;
    farewell @9 :Training.Farewell;
    takeGradient @10 :Training.TakeGradient;
    takenGradient @11 :Training.TakenGradient;
    applyUpdate @12 :Training.ApplyUpdate;
    updateApplied @13 :Training.UpdateApplied;
    setStep @14 :Training.SetStep;
    cancelStep @15 :Training.CancelStep;
    putTokens @16 :Training.PutTokens;
    readQueueStatus @17 :Training.ReadQueueStatus;
    queueStatus @18 :Training.QueueStatus;
    joinJob @19 :Training.JoinJob;
    closeTokens @20 :Training.CloseTokens;
    stopJob @21 :Training.StopJob;
    useOptimizer @22 :Training.UseOptimizer;
    optimizerInUse @23 :Training.OptimizerInUse;
    takeAggregate @24 :Training.TakeAggregate;
    awaitAggregate @25 :Training.AwaitAggregate;
    aggregate @26 :Training.Aggregate;
    cancelTakes @27 :Training.CancelTakes;
    readAccumulator @28 :Training.ReadAccumulator;
    accumulatorStatus @29 :Training.AccumulatorStatus;
    readState @30 :Checkpoint.ReadState;
    variableState @31 :Checkpoint.VariableState;
    restoreState @32 :Checkpoint.RestoreState;
    readProgress @33 :Checkpoint.ReadProgress;
    replicaProgress @34 :Checkpoint.ReplicaProgress;
    readAverage @35 :Training.ReadAverage;
    releaseUpdate @36 :Training.ReleaseUpdate;
    changeVariable @37 :Training.ChangeVariable;
    hello @38 :Link.Hello;
    findActor @39 :Link.FindActor;
    enterJob @40 :Cluster.EnterJob;
    jobBegins @41 :Cluster.JobBegins;
    awaitEnd @42 :Cluster.AwaitEnd;
    jobEnded @43 :Cluster.JobEnded;
    leaveJob @44 :Cluster.LeaveJob;
    collectivePart @45 :Collective.CollectivePart;
    collectiveFailed @46 :Collective.CollectiveFailed;
    workerReady @47 :Coordinator.WorkerReady;
    runClosure @48 :Coordinator.RunClosure;
    closureDone @49 :Coordinator.ClosureDone;
    cancelClosure @50 :Coordinator.CancelClosure;
    awaitServiceEnd @51 :Coordinator.AwaitServiceEnd;
    serviceEnded @52 :Coordinator.ServiceEnded;
    mirrorState @53 :Replication.MirrorState;
    followOwner @54 :Replication.FollowOwner;
    takeOver @55 :Replication.TakeOver;
    tookOver @56 :Replication.TookOver;
    ownerFollowed @57 :Replication.OwnerFollowed;
    ownersLost @58 :Replication.OwnersLost;
    pullVariable @59 :Training.PullVariable;
    variableChanges @60 :Training.VariableChanges;
    offerMirror @61 :Replication.OfferMirror;
    repeatChanges @62 :Replication.RepeatChanges;
    ownersMirrored @63 :Replication.OwnersMirrored;
    countMissing @64 :Training.CountMissing;
    actorMade @65 :Link.ActorMade;
    readTask @66 :Observing.ReadTask;
    taskReport @67 :Observing.TaskReport;
  }
}
