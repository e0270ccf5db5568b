# SPDX-License-Identifier: Apache-2.0
# How messages of other schemas than Troupe's travel.
#
# A trainer may define structs of its own.  Such a message has this root instead of the envelope, and its frame header
# says so (`content_code::own`).  Before two nodes greet each other, each tells which of these messages it knows; they speak
# to each other only if both know the same ones in the same version.
#
#   dialer   -> listener   KnownMessages   before its Hello, unless it knows none
#   listener -> dialer     KnownMessages   before its Hello, unless it knows none
#   any      -> any        OwnMessage      from actor to actor, as a message of ours

@0xc49517cb79e00dc8;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::wire");

struct OwnMessage {
  # The root of a message.

  schema @0 :UInt64;
  # The type id of the body's struct, as its schema declares it or `capnp` makes it.

  body @1 :AnyPointer;
  # That struct.  Its tensors, slices and gradients keep the rules of tensor.capnp; one that is absent is none.
}

struct KnownMessages {
  # The messages that a node knows beside Troupe's.

  messages @0 :List(KnownMessage);
  # By ascending type ids, at most 256.
}

struct KnownMessage {
  # One of them.

  schema @0 :UInt64;
  # The type id of its struct.

  version @1 :UInt64;
  # A hash over all that the layout of the struct and of the structs inside depends on.

  name @2 :Text;
  # For people: "trial.Opinion"; at most 64 bytes.
}
