# SPDX-License-Identifier: Apache-2.0
# Messages between the processes of one job about the job as a whole.
#
# Roles.  A job that runs as several processes has one where its chief stands, and there the *roll call*,
# which knows the members that are in.  Every other process has a *member*.  Beside the roll call may stand
# a *settings check*, from the moment when processes can reach that of the chief.
#
#   server -> settings check  EnterJob  answered at once by an empty JobBegins; before a process makes variables
#   chief  -> roll call  JobBegins  not answered; as soon as those that are there may begin
#   chief  -> roll call  JobEnded   not answered; when the job is over where the chief stands
#   member -> roll call  EnterJob   answered by JobBegins, when all members have entered, or enough
#   member -> roll call  AwaitEnd   answered by JobEnded, when the job is over
#   member -> roll call  LeaveJob   answered by JobEnded, when all that are left want to leave
#
# The settings check looks at the agreement alone, and answers with an error of `Errc` if that is not the chief's.
# A job that cannot begin answers EnterJob with such an error, too.  A member that is gone is waited for
# no more, and whether the job can do without it is the chief's to say.  When its process is started again,
# or late where a job may begin with fewer, it enters a job that goes on, and is answered at once.  The last JobEnded says how the job ended
# for every process: only then the first process may end.

@0xda9e82878a1cfd30;

using Cxx = import "/capnp/c++.capnp";
using Checkpoint = import "checkpoint.capnp";
using Training = import "training.capnp";
$Cxx.namespace("troupe::wire");

struct EnterJob {
  # A process is there, and has all that it needs to begin.  The settings check is asked before, when it has only its
  # settings.

  member @0 :UInt32;
  # Position of its node in the job's list.

  clockNanoseconds @1 :Training.Nanoseconds;
  # Time on its world's clock.

  seed @2 :UInt64;
  # The seed of its world; refused if it is not the chief's.

  replicas @3 :UInt32;
  # Replicas of the whole job, as the process was told; refused if it is not the chief's number.

  agreement @4 :Text;
  # Other settings that all processes must have been told alike, a line each ("hidden = [16]"); refused if one is not
  # the chief's.  At most 4096 bytes.
}

struct JobBegins {
  # All are there, or enough.

  firstStep @0 :Training.Step;
  # Updates that the variables include already.

  clockNanoseconds @1 :Training.Nanoseconds;
  # Time on the clock of the chief's world; all set theirs to it.

  replicas @2 :List(Checkpoint.ReplicaProgress);
  # If the job goes on from a checkpoint: where its replicas were.  Each process takes its own.

  life @3 :UInt32;
  # How often the receiver has been lost, or late: 0 for members that are there when the job begins.
}

struct AwaitEnd {
  # Asks how the job ends.

  member @0 :UInt32;
}

struct JobEnded {
  # The job is over.

  step @0 :Training.Step;
  # The global step that it reached.

  code @1 :Training.Errc;
  # Why it ended before its last step; `none`, the default = it did not, or was asked to.

  reason @2 :Text;
  # One line for people, if there is a code; at most 4096 bytes.

  isStopped @3 :Bool;
  # Whether it was asked to end.

  stopReason @4 :Text;
  # The asker, in words; at most 4096 bytes.
}

struct LeaveJob {
  # A process has let go of everything that others could need.

  member @0 :UInt32;
}
