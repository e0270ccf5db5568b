// SPDX-License-Identifier: Apache-2.0
// The agreement of two processes about messages of a schema of one's own.
#pragma once

#include "messages/errors/errc.hpp"

#include <capnp/schema.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace troupe {

namespace limits {

/// Most messages of other schemas that a process knows beside Troupe's.
inline constexpr size_t own_messages_max = 256;

/// Most bytes of such a message's name.
inline constexpr size_t own_name_bytes_max = 64;

} // namespace limits

/// The schema of a message that is not Troupe's.
struct own_schema {
  capnp::StructSchema type;
  std::string name;        ///< For people: "trial.Opinion".
  uint64_t version = 0;    ///< A hash; equal in two processes if both have one layout.
  bool has_arrays = false; ///< A message may hold tensors, lists or blobs, of whatever length.
};

/// Looks through a struct and all structs that its fields lead to. The version is made of names,
/// places, types and defaults of fields, and of the names of enumerators; the names of files and
/// the comments do not matter.
/// Errors: invalid_argument if the name is empty or has more than `limits::own_name_bytes_max`
/// bytes; unimplemented, naming the field, if one is an AnyPointer, an interface or generic: a
/// receiver could not check what is there.
[[nodiscard]] expected<own_schema> read_own_schema(capnp::StructSchema type, std::string name);

/// Finds a schema by the type id of its struct; null if it is not known.
using own_schema_lookup = std::function<const own_schema*(uint64_t id)>;

} // namespace troupe
