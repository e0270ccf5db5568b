# SPDX-License-Identifier: Apache-2.0
# Messages of a trainer's author, for tests: what their schemas may hold, and what they may not.

@0xb9f1c2d3e4a59687;

using Cxx = import "/capnp/c++.capnp";
using Tensors = import "/messages/tensor.capnp";
$Cxx.namespace("trial");

enum Mood {
  glad @0;
  cross @1;
}

struct Remark {
  text @0 :Text;
  rows @1 :Tensors.IndexedSlices;
  next @2 :Remark;
}

struct Motion {
  amount @0 :Tensors.Tensor $Tensors.required;
}

struct Opinion {
  replica @0 :UInt32;
  mood @1 :Mood;
  gradient @2 :Tensors.Tensor;
  remarks @3 :List(Remark);
  verdict :union {
    none @4 :Void;
    change @5 :Tensors.Gradient;
    codes @6 :List(UInt16);
    motion @10 :Motion;
    lists :group {
      moods @7 :List(Mood);
      words @8 :List(Text);
      pages @9 :List(List(Remark));
    }
  }
}

struct Poll {
  votes @0 :UInt32 $Tensors.required;
}

struct Count {
  value @0 :UInt64;
}

struct Envoy {
  name @0 :Text;
  inside @1 :Luggage;

  struct Luggage {
    anything @0 :AnyPointer;
  }
}

struct Box(Content) {
  content @0 :Content;
}

struct Wrapped {
  box @0 :Box(Text);
}
