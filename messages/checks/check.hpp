// SPDX-License-Identifier: Apache-2.0
// Conditions on a message that the schema cannot say in types.
#pragma once

#include "messages/errors/errc.hpp"

#include <capnp/any.h>

#include <cstdint>

namespace troupe {

struct visit_plan;

/// Judges a struct of one schema, beside its fields.
using struct_rule = expected<void> (*)(const capnp::AnyStruct::Reader&);

/// The rule of a schema, by its id: shapes and bytes agree, row numbers lie inside. Tensors, sparse
/// gradients and the meanings of collectives have one; null: this one has none.
[[nodiscard]] struct_rule rule_of(uint64_t schema);

/// Whether a peer's struct and all that it holds keep the rules of their schemas' comments: each
/// its own (`rule_of`), unions have a member that the schema knows, and fields that the schema
/// marks with `required` are there. Other fields that are absent are not looked at.
/// @pre Every field can be read without a fault: `walk` has been here.
/// Cost: reads no elements of tensors but row numbers; nothing where no rules can be.
/// Errors: malformed, limit_exceeded.
[[nodiscard]] expected<void> check_rules(const capnp::AnyStruct::Reader& value,
                                         const visit_plan& plan);

} // namespace troupe
