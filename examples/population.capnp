# SPDX-License-Identifier: Apache-2.0
# What the trainers of population_search.cpp are told, and answer.

@0xb9a1c3f0d2e45768;

using Cxx = import "/capnp/c++.capnp";
using Tensor = import "/messages/tensor.capnp".Tensor;
$Cxx.namespace("population");

struct Trial {
  # A trainer is to make some steps from here.  Answered by Outcome.

  learningRate @0 :Float64;

  line @1 :Tensor;
  # Slope and height to begin with.
}

struct Outcome {
  loss @0 :Float64;
  # After these steps, on data that no trainer has trained on.

  line @1 :Tensor;
  # Where they have led to.
}
