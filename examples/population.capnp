# SPDX-License-Identifier: Apache-2.0
# Messages to the trainers of population_search.cpp, and their answers.

@0xb9a1c3f0d2e45768;

using Cxx = import "/capnp/c++.capnp";
using Tensor = import "/messages/tensor.capnp".Tensor;
$Cxx.namespace("population");

struct Attempt {
  # A trainer is to make some steps from here.  Answered by another one: where they have led to.

  learningRate @0 :Float64;

  line @1 :Tensor;
  # Slope and height.

  loss @2 :Float64;
  # The line's loss, on data that no trainer has trained on.
}
