# SPDX-License-Identifier: Apache-2.0
# How the processes of a job combine arrays.
#
# Roles.  Every process of a group has a *communicator*, and a rank from 0 on.  All make the same calls
# in the same order, and count them: a call's number is what its messages are known by.
#
#   communicator -> communicator  CollectivePart    not answered; some elements, at some stage
#   communicator -> communicator  CollectiveFailed  not answered; to all others, once
#
# The algorithm, the number of processes and the array alone decide which part goes to which rank,
# and when: no process asks.  A part may come before its receiver makes the call; it is kept until
# then.  A receiver that means something else than the sender ends the call for all; so do a deadline
# and a loss.  A process that leaves says so in the same way, behind its last part.
# Whatever comes after a call that has failed fails with it.

@0xb1af5a38fda03202;

using Cxx = import "/capnp/c++.capnp";
using Tensor = import "tensor.capnp";
using Training = import "training.capnp";
$Cxx.namespace("troupe::wire");

enum CollectiveKind {
  # The result that a collective makes of the contributions of all processes.

  allReduce @0;
  # Their sum, for every process.

  allGather @1;
  # All of them, one behind the other along axis 0, for every process.

  reduceScatter @2;
  # Their sum, cut along axis 0: one slice for each process.

  broadcast @3;
  # That of one process, for every process.

  barrier @4;
  # Nothing: no process goes on before all have come.
}

enum CollectiveAlgorithm {
  # Which rank sends what to which.

  automatic @0;
  # Never in a message: it stands for one of the others.

  direct @1;
  # Every rank sends all its contributions to every other.

  chain @2;
  # From each rank to the next, which adds its own; the last one's sum goes the same way.

  ring @3;
  # As many sums go round as there are ranks, one beginning at each.

  halvingDoubling @4;
  # Half of the array is swapped with a rank far away, half of that with a nearer one, and so on.

  tree @5;
  # Up a binomial tree, and down again.

  allToAll @6;
  # Every rank adds up a slice of its own for all; of short arrays, the first ranks alone have any.
}

enum CollectiveStage {
  # The stage of a part's values.

  called @0;
  # There are none: the sender has made the call, and waits.

  own @1;
  # Contributions of the sender: all of them, or their sum.

  partial @2;
  # The sum of some ranks' contributions.

  result @3;
  # Nothing is to be added.
}

struct CollectiveMeaning {
  # The collective that a process asks for.  All ask for the same.

  kind @0 :CollectiveKind;
  # Which collective.

  algorithm @1 :CollectiveAlgorithm;
  # How.

  isUnordered @2 :Bool;
  # Whether the sum may be added up in any order; the default = in the order of ranks, and of the
  # contributions of each.

  dtype @3 :Tensor.DType;
  # The dtype of every contribution; 0 is f32, also where there are none.

  contributions @4 :UInt32;
  # How many the sender has, one for each of its replicas; 0 for a barrier, else 1 to 256.

  root @5 :UInt32;
  # The rank that a broadcast spreads the value of; else 0.

  name @6 :Text;
  # The purpose of the call; at most 4096 bytes.

  shape @7 :List(Int64);
  # The extents of every contribution; the first one may differ in an allGather.
}

struct CollectivePart {
  # Some elements of a collective.

  call @0 :UInt64;
  # Its number in the group; the first is 0.

  rank @1 :UInt32;
  # The sender's.

  meaning @2 :CollectiveMeaning;
  # The collective that the sender asks for.

  stage @3 :CollectiveStage;
  # The stage of the values.

  strand @4 :UInt32;
  # Which of the strands that the algorithm works on side by side.

  begin @5 :UInt64;
  # The position of the first element in the flattened array.  Unit: elements.

  values @6 :List(Tensor.Tensor);
  # The elements from `begin` on, of one contribution each or of a sum; of whole contributions in an
  # allGather.
}

struct CollectiveFailed {
  # A call has failed for the sender, and with it for all.

  call @0 :UInt64;
  # Its number; all that follow fail, too.

  rank @1 :UInt32;
  # The sender's.

  code @2 :Training.Errc;
  # Why; never `none`.

  reason @3 :Text;
  # One line for people; at most 4096 bytes.
}
