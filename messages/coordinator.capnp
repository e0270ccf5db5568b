# SPDX-License-Identifier: Apache-2.0
# Messages in a job where one process gives out work, a function call at a time.
#
# Roles.  The *coordinator* stands where the chief does, and holds a queue of *closures*: calls of
# functions that all processes know by name.  A *closure worker* runs one at a time.  A *bystander*
# waits for the end, in a process that has no part in the work but holds variables.
#
#   worker      -> coordinator  WorkerReady     not answered; once in a life of the worker
#   coordinator -> worker       RunClosure      answered by ClosureDone, when the function has returned or failed
#   coordinator -> worker       CancelClosure   not answered; may come too late, or before its RunClosure
#   bystander   -> coordinator  AwaitServiceEnd answered by ServiceEnded, when there will be no more closures
#
# A function that fails is no error of the request: ClosureDone says so.  An error answers RunClosure only if the
# worker is gone or cannot begin; the closure then goes to another worker, although the first may have run it in part:
# each runs *at least once*.  A worker that comes back says WorkerReady again, and has forgotten everything.

@0xc9b1952b1ed15170;

using Cxx = import "/capnp/c++.capnp";
using Tensors = import "tensor.capnp";
using Training = import "training.capnp";
$Cxx.namespace("troupe::wire");

using ClosureNumber = UInt64;
# Counts the calls of one coordinator, from 1.

struct WorkerReady {
  # A worker is there, and idle.

  worker @0 :UInt32;
  # Counts from 0, over all processes.
}

struct WorkerResource {
  # Something that each worker has one of its own of, such as an iterator.

  resource @0 :UInt32;
  # Which one: the number of such things that the program, in every process alike, had made before.

  instance @1 :UInt32;
  # Which instance of it; the coordinator counts them.

  pass @2 :UInt32;
  # The pass over its data that an iterator begins with; 0 for the first one of its dataset, and for all that are none.
}

struct ClosureValue {
  # One leaf of an argument or a result.  Both sides know the tuples and vectors around it; a vector, map or
  # optional begins with its number of elements, as an integer.

  union {
    tensor @0 :Tensors.Tensor $Tensors.required;
    number @1 :Float64;
    integer @2 :Int64;
    text @3 :Text;
    # At most 4096 bytes.

    resource @4 :WorkerResource;
    # Stands for what the worker has of it.
  }
}

struct RunClosure {
  # A worker is to call a function.

  closure @0 :ClosureNumber;

  function @1 :Text;
  # Its name; at most 4096 bytes.

  arguments @2 :List(ClosureValue);
  # Its arguments' leaves, in order.

  instances @3 :List(UInt32);
  # The instances of a worker's resources that this closure or a later one may ask for; the worker
  # forgets all others, but for those with the number 0.
}

struct ClosureDone {
  # The function has returned.

  closure @0 :ClosureNumber;

  code @1 :Training.Errc;
  # Why it failed; `none`, the default = it did not.

  reason @2 :Text;
  # One line for people, if it did; at most 4096 bytes.

  results @3 :List(ClosureValue);
  # Leaves of what it returned.

  throwSite @4 :Text;
  # As in `Abort`, if it failed.
}

struct CancelClosure {
  # The result is not needed: the function may stop at the next point where it can.

  closure @0 :ClosureNumber;
}

struct AwaitServiceEnd {
  # Asks when there will be no more closures.

  process @0 :UInt32;
  # Which process of the cluster the bystander stands in; in each of its lives the same.
}

struct ServiceEnded {
  # There will be no more closures.
}
