# SPDX-License-Identifier: Apache-2.0
# Questions to the members of a group in groups.cpp, and their answers.

@0xe1f60ab7c2943d58;

using Cxx = import "/capnp/c++.capnp";
using Tensor = import "/messages/tensor.capnp".Tensor;
$Cxx.namespace("bench");

struct Echo {
  tensor @0 :Tensor;

  unanswered @1 :Bool;
  # The member keeps the question.  Else it is answered by the same message.
}
