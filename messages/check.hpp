// SPDX-License-Identifier: Apache-2.0
// Conditions on a message that the schema cannot say in types.
#pragma once

#include "messages/envelope.capnp.h"
#include "messages/errc.hpp"

#include <capnp/dynamic.h>

namespace troupe {

/// Whether the body of a peer's message keeps the rules of its schema's comments: shapes and bytes
/// of tensors agree, row numbers lie inside, unions hold a member that this build knows.
/// @pre Every field can be read without a fault: `walk` has been here.
/// Cost: reads no elements of tensors but row numbers.
/// Errors: malformed, limit_exceeded; unimplemented if this build does not know the body.
[[nodiscard]] expected<void> check_body(wire::Envelope::Reader envelope);

/// As `check_body`, for the struct of another schema: arrays of ours in it, at any depth, keep
/// their rules, and unions have a member that the schema knows. Absent fields are not checked.
/// Errors: malformed, limit_exceeded.
[[nodiscard]] expected<void> check_own_body(capnp::DynamicStruct::Reader body);

} // namespace troupe
