# SPDX-License-Identifier: Apache-2.0
# Questions of a job's first process to the others, to show the whole job at one place.
#
# Roles.  The *task observer* stands in the first process, beside the chief if there is one.  Each other process has a
# *task reporter*; where there is a chief, that is its member (cluster.capnp).
#
#   task observer -> task reporter  ReadTask  answered by TaskReport, at once
#
# The observer never asks a reporter that has not answered yet, so a link carries at most one report of each kind,
# and a link that is full delays reports instead of collecting them.

@0xad6360242f25e74a;

using Cxx = import "/capnp/c++.capnp";
using Training = import "training.capnp";
$Cxx.namespace("troupe::wire");

struct ReadTask {
  # Asks what the actors of a process do.

  messages @0 :UInt32;
  # How many of each actor's last messages are wanted; at most 64.
}

struct TaskReport {
  # The actors of a process at one moment.

  clockNanoseconds @0 :Training.Nanoseconds;
  # The moment, on the clock of the sender's world; all other times are on it, too.

  residentBytes @1 :UInt64;
  # Memory of the process; 0 = not known.

  cpuSeconds @2 :Float64;
  # Processor time of the process.

  actors @3 :List(ActorReport);
  # Actors that have not ended come first; at most 256 count.

  leftOut @4 :UInt32;
  # Actors beyond them.
}

struct ActorReport {
  name @0 :Text;
  # "replica 3"; at most 64 bytes count.

  actor @1 :UInt64;
  # Its id in its process; 0 stands for none.

  doing @2 :UInt8;
  # 0 = it waits, 1 = it handles a message, 2 = it computes, 3 = it has ended.

  sinceNanoseconds @3 :Training.Nanoseconds;
  # When it began to.

  mailboxDepth @4 :UInt64;
  # Messages that wait in the mailbox.

  received @5 :UInt64;
  # Messages that came, those in the mailbox included.

  handled @6 :UInt64;
  # Messages that it is done with.

  errors @7 :UInt64;
  # Requests that were answered with an error.

  timed @8 :UInt64;
  # Messages that were timed.

  timedNanoseconds @9 :Training.Nanoseconds;
  # The time that they took together.

  messages @10 :List(SeenMessage);
  # The last ones, oldest first; at most as many as were asked for.
}

struct SeenMessage {
  # A message that an actor began to handle.

  whenNanoseconds @0 :Training.Nanoseconds;

  kind @1 :Text;
  # "PushGradient"; empty = not known.

  sender @2 :UInt64;
  # The id of its sender in the same process; 0 = none.

  step @3 :Training.Step = 0xffffffffffffffff;
  # The step that it is about; the default = none.
}
