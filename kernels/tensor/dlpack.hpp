// SPDX-License-Identifier: Apache-2.0
// Tensors to and from other libraries in the same process, without a copy.
#pragma once

#include "kernels/tensor/tensor.hpp"
#include "messages/errors/errc.hpp"

#include <dlpack/dlpack.h>
#include <memory>

namespace troupe {

/// Gives a borrowed tensor back to the library that lent it.
struct dlpack_return {
  void operator()(DLManagedTensor* lent) const {
    if (lent->deleter != nullptr) lent->deleter(lent);
  }
};

/// A lent tensor. A C interface takes `release()` of it, and owns it from then on.
using dlpack_handle = std::unique_ptr<DLManagedTensor, dlpack_return>;

/// Lends a tensor, views and strides included; its elements live until the borrower gives it back.
/// A tensor on a GPU is lent where it lies. DLPack 0.6 has no streams: wait for the stream that
/// writes it before the borrower reads it, and for the borrower's before it is given back.
/// Errors: failed_precondition if it is read-only, because DLPack 0.6 has no way to say so: lend a
/// clone(), or wrap the elements again if you know the borrower.
[[nodiscard]] expected<dlpack_handle> to_dlpack(const tensor& value);

/// Borrows a tensor; it is given back when the last handle to its elements goes, or at once if it
/// is refused. A tensor with overlapping elements (a stride of 0) comes in read-only. A tensor on a
/// GPU stays there, and streams are the caller's to wait for, as above.
/// Errors: type_mismatch for element types other than ours; unimplemented for memory of other
/// devices, and for a tensor on a GPU that does not lie row by row; invalid_argument for shapes and
/// pointers that make no sense.
[[nodiscard]] expected<tensor> from_dlpack(dlpack_handle lent);

} // namespace troupe
