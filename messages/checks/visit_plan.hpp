// SPDX-License-Identifier: Apache-2.0
// Where the pointers and enumerators of a message lie, by its schema.
#pragma once

#include "messages/checks/check.hpp"

#include <capnp/any.h>
#include <capnp/schema.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe {

struct visit_plan;

/// A field that may have faults, and where it lies in its struct.
struct visited_field {
  capnp::StructSchema::Field field;
  capnp::schema::Type::Which type;
  bool is_group = false;    ///< A struct with its fields in this one.
  bool is_required = false; ///< It must not be absent.
  uint32_t offset = 0;      ///< Among the pointers; an enumerator's in the data, unit: 16 bits.
  uint16_t usual = 0;       ///< An enumerator is stored as what differs from this.
  const visit_plan* inner = nullptr; ///< Plan of a struct, or of those in a list of any depth.
  capnp::ListSchema list;            ///< Schema of a list.
  capnp::EnumSchema enumeration;     ///< Schema of an enumerator.
  uint32_t enumerators = 0;          ///< How many enumerators it has.
};

/// The fields to visit in a struct of one schema. Asking the schema for them takes longer than
/// visiting a short message.
struct visit_plan {
  capnp::StructSchema schema;
  std::vector<visited_field> fields;                 ///< Fields that every such struct has.
  uint32_t union_offset = 0;                         ///< Discriminant's place; unit: 16 bits.
  std::vector<std::optional<visited_field>> members; ///< Members of the union, by discriminant.
  struct_rule rule = nullptr;                        ///< As `rule_of`.
  bool has_rules = false;   ///< A struct has rules to keep, itself or in what it holds.
  bool has_tensors = false; ///< A struct may hold tensors, at any depth.
};

/// The plan of a schema, which is made once. Thread: any.
[[nodiscard]] const visit_plan& plan_for(capnp::StructSchema schema);

/// Whether fields of this type are pointers, or groups of fields.
[[nodiscard]] bool is_pointer(capnp::Type type);

/// Whether the schema marks the field with `required` of tensor.capnp.
[[nodiscard]] bool is_required(capnp::StructSchema::Field field);

/// 16 bits of a struct's data; 0 where its sender has known no such field.
[[nodiscard]] uint16_t bits_of(const capnp::AnyStruct::Reader& value, uint32_t offset);

} // namespace troupe
