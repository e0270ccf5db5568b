# SPDX-License-Identifier: Apache-2.0
# Messages between the replicas and the jury of custom_actor_trainer.cpp, and the jurors of jury_cluster.cpp.

@0x87d3c76ca98c5fa5;

using Cxx = import "/capnp/c++.capnp";
using Tensor = import "/messages/tensor.capnp".Tensor;
$Cxx.namespace("trial");

struct Opinion {
  # A replica tells the jury what its gradient is.  Answered by Agreement, when all replicas have told theirs.

  replica @0 :UInt32;
  # The replica that tells it.

  gradient @1 :Tensor;
  # Shape and dtype of the variable.
}

struct Agreement {
  # The jury tells every replica what most of them hold to be the gradient.

  gradient @0 :Tensor;
  # Element by element the median.

  outlier @1 :UInt32;
  # The replica whose opinion was farthest from it.
}

struct Question {
  # A juror of another process is asked for its gradient.  Answered by Opinion.

  line @0 :Tensor;
  # Where the gradient is wanted.
}
