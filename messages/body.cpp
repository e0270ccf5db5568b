// SPDX-License-Identifier: Apache-2.0
// The names of the bodies, taken from the schema.
#include "messages/body.hpp"

#include <capnp/schema.h>

namespace troupe {

const char* body_name(wire::Envelope::Which which) {
  auto members = capnp::Schema::from<wire::Envelope>().getUnionFields();
  auto index = static_cast<size_t>(which);
  return index < members.size() ? members[index].getProto().getName().cStr() : "unknown";
}

capnp::AnyStruct::Reader body_of_envelope(wire::Envelope::Reader envelope) {
  auto pointers = capnp::AnyStruct::Reader(envelope).getPointerSection();
  if (pointers.size() == 0) return {};
  return pointers[0].getAs<capnp::AnyStruct>();
}

} // namespace troupe
