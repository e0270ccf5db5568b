# SPDX-License-Identifier: Apache-2.0
# How arrays of numbers travel.  These structs are parts of other messages and are never sent alone.
#
# The sender of a tensor refers to the memory that holds it: nothing but tensors of a few bytes is
# copied into the message, and nothing may write to that memory until the last copy of the message
# is gone.  The receiver reads the tensor in place, in the buffer that the socket filled.  It checks
# every rule of this page before it acts on a message; a message that breaks one is refused as a
# whole.

@0x9aa18d67ab8cc511;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::wire");

annotation required @0xe6a1d7c2b9f04835 (field) :Void;
# A message in which this field is absent is refused.  Schemas of one's own may use it, too.

const maxPartBytes :UInt32 = 268435456;
# Most bytes of one part of a tensor (256 MiB).  A Cap'n Proto blob ends one byte below 512 MiB.

enum DType {
  # Element type.  The values are those of `troupe::dtype`.

  f32 @0;
  f64 @1;
  f16 @2;
  # IEEE 754 binary16.
  bf16 @3;
  # The upper half of an IEEE 754 binary32.
  i32 @4;
  i64 @5;
}

struct Tensor {
  # A dense array.  All defaults: a scalar f32 without its element, which is refused.

  dtype @0 :DType;
  # Element type; 0 is f32.

  shape @1 :List(Int64);
  # Extents, outermost first, each 0 or more, at most 32 of them; empty for a scalar, which has one
  # element.  The product of those that are not 0, times the bytes of an element, is below 2^63.

  parts @2 :List(Data);
  # The elements, row-major, little-endian, cut into consecutive pieces: every part but the last holds
  # exactly `maxPartBytes`, the last one 1 to `maxPartBytes`.  At most 64, together exactly the tensor;
  # none if it has no elements.  A sender lays the parts into segments that follow each other, so
  # that a receiver finds them side by side in its buffer.

  deviceKind @3 :UInt8;
  # Which kind of memory the parts are; the values are those of `troupe::device_kind`.  0, the default = the
  # host's.  Any other: a device's, which only actors of the sender's process can reach: such a message has
  # no frame, and a frame that says so is refused.

  deviceIndex @4 :UInt16;
  # Which device of that kind, from 0.
}

struct IndexedSlices {
  # Some rows of a larger, mostly zero array: row i of `values` belongs to row `indices[i]`.  Indices
  # may repeat; repeated rows add up.

  indices @0 :Tensor $required;
  # Row numbers: i64, shape [rows], each from 0 to below `denseShape[0]`.

  values @1 :Tensor $required;
  # Shape [rows, ...], the dots being `denseShape` without its first extent.

  denseShape @2 :List(Int64);
  # Extents of the whole array, at least one; the same rules as for `Tensor.shape`.
}

struct Gradient {
  # The gradient that a replica computed for one variable.

  union {
    none @0 :Void;
    # The default: the loss does not depend on the variable.

    dense @1 :Tensor $required;
    # An array of the variable's shape and dtype.

    sparse @2 :IndexedSlices $required;
    # The rows that the loss depends on; all others are zero.
  }
}
