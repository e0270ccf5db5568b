# SPDX-License-Identifier: Apache-2.0
# Messages between two nodes, before those of their actors and beside them.
#
# Roles.  Two nodes that have something to say to each other share one connection.  The one with
# the higher position in the job's list of nodes *dials*, the other *listens*.
#
#   dialer    -> listener   Hello       answered by Hello or Abort; the first frame of a connection,
#                                       unless messages of other schemas are known: their list comes before
#   either    -> peer       FindActor   answered by a frame without a body, when an actor has that name
#   either    -> peer       Abort       not answered; the sender's last frame
#   maker     -> any        ActorMade   answers a message of the job's own schema, with which an actor begins
#
# Heartbeats, credit and the parts of long messages are frames without a message; frame_header.hpp has
# them.

@0x8b6375c30afe440a;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::wire");

struct Hello {
  # The node that speaks.  Refused if the job or the number of nodes is another than the receiver's,
  # if the node is there already, or has no business with the receiver.

  job @0 :Text;
  # The name that all nodes of one job were given; at most 4096 bytes.

  nodes @1 :UInt32;
  # Nodes in the job's list.

  node @2 :UInt32;
  # The sender's position in it.

  incarnation @3 :UInt32;
  # The sender's incarnation; greater after each restart.

  heartbeat @4 :UInt64;
  # Nanoseconds after which the sender says something even if it has nothing to say.

  window @5 :UInt64;
  # Bytes of messages that the sender takes before its actors have let go of some.
}

struct FindActor {
  # Asks for the actor that goes by a name at the receiver's node.

  name @0 :Text;
  # "owner weights", "token queue"; at most 4096 bytes.
}

struct ActorMade {
  # An actor was made, and goes by a name at the sender's node until it ends.

  name @0 :Text;
  # "trainer, made 3"; at most 4096 bytes.
}
