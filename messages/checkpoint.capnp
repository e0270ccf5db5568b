# SPDX-License-Identifier: Apache-2.0
# The state of a job between two steps: between the last UpdateApplied of a step and its PutTokens.
#
# When a step is closed and applied and its tokens are not out yet, every gradient in flight is stale and
# every accumulator is empty.  So a job at such a moment consists of what its owners, its token queue and
# its replicas answer here, and of the chief's own estimates for dynamic backups.
#
#   chief        -> owner        ReadState         answered by VariableState, at once
#   chief        -> replica      ReadProgress      answered by ReplicaProgress, at once
#   trainer      -> owner        RestoreState      answered by OptimizerInUse, between two updates

@0xbf5768e4b903b438;

using Cxx = import "/capnp/c++.capnp";
using Training = import "training.capnp";
using import "tensor.capnp".Tensor;
using import "tensor.capnp".required;
$Cxx.namespace("troupe::wire");

struct NamedTensor {
  # An array by name.

  name @0 :Text;
  # At most 4096 bytes.

  value @1 :Tensor $required;
}

struct ReadState {
  # Asks a variable's owner for all it holds.
}

struct VariableState {
  # All that an owner holds.  As with a snapshot, the arrays are shared: the next update writes elsewhere.

  version @0 :UInt64;
  # How many updates the value includes.

  value @1 :Tensor $required;

  optimizer @2 :Text;
  # The optimizer of these slots; empty = there are none.

  slotsSince @3 :UInt64;
  # The version at which the slots had their initial values.

  slots @4 :List(NamedTensor);
  # The arrays of the optimizer, such as "momentum".

  average @5 :NamedTensor;
  # The moving average; null = there is none.
}

struct RestoreState {
  # Gives an owner what it once held.  The optimizer of the next update, which UseOptimizer chooses before
  # or after this, goes on with the slots and the average if they are its own, else with new ones.

  state @0 :VariableState $required;
}

struct ReadProgress {
  # Asks a replica where it is.
}

enum Phase {
  # The activity of a replica.

  waiting @0;
  # It waits for a token, or is about to ask for one.

  computing @1;
  # It computes a gradient.
}

struct ReplicaProgress {
  # Where a replica is.

  replica @0 :UInt32;

  phase @1 :Phase;

  localStep @2 :Training.Step;
  # Its token.

  iteration @3 :UInt64;
  # Steps that it has finished, dropped ones included.

  computations @4 :UInt64;
  # Computations that it has begun, which number its computing times.

  remainingNanoseconds @5 :Training.Nanoseconds;
  # If its computing time is drawn and not measured, what is left of it; else 0.

  kept @6 :List(NamedTensor);
  # Tensors that the trainer asked to be kept for this replica, such as a position in its data.

  computeNanoseconds @7 :Training.Nanoseconds;
  # If its computing time is drawn and not measured, all of it; else 0.
}
