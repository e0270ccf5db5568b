// SPDX-License-Identifier: Apache-2.0
// A walk over the nodes of a schema, for its version and for types that no message may have.
#include "messages/own_schema.hpp"

#include "messages/checks/visit_plan.hpp"

#include <capnp/message.h>

#include <fmt/format.h>
#include <map>
#include <string_view>
#include <utility>

namespace troupe {
namespace {

using capnp::schema::Type;

/// 64-bit FNV-1a. Source: draft-eastlake-fnv, section 2.
uint64_t hash_of(std::string_view text) {
  uint64_t result = 0xcbf29ce484222325;
  for (unsigned char byte : text)
    result = (result ^ byte) * 0x100000001b3;
  return result;
}

std::string_view name_of(capnp::Schema schema) {
  return schema.getShortDisplayName().cStr();
}

/// Every node is described by a line of its own; the lines in the order of their ids make up the
/// version, so that it does not depend on where the walk begins.
class schema_walk {
public:
  void visit(capnp::StructSchema type) {
    auto node = type.getProto();
    auto [line, is_new] = lines_.try_emplace(node.getId());
    if (!is_new) return;
    auto shape = node.getStruct();
    auto text
      = fmt::format("struct {} {} {} {}:", shape.getDataWordCount(), shape.getPointerCount(),
                    shape.getDiscriminantCount(), shape.getDiscriminantOffset());
    if (node.getIsGeneric()) complain(type, "is generic");
    for (auto field : type.getFields())
      text += describe(type, field);
    line->second = std::move(text);
  }

  [[nodiscard]] const std::string& complaint() const { return complaint_; }

  [[nodiscard]] bool has_arrays() const { return has_arrays_; }

  [[nodiscard]] uint64_t version() const {
    std::string all;
    for (const auto& [id, line] : lines_)
      all += fmt::format("{:x} {}\n", id, line);
    return hash_of(all);
  }

private:
  std::string describe(capnp::StructSchema type, capnp::StructSchema::Field field) {
    auto proto = field.getProto();
    auto text = fmt::format("{} {} ", proto.getName().cStr(),
                            static_cast<int>(proto.getDiscriminantValue()));
    if (is_required(field) && (proto.isGroup() || !is_pointer(field.getType())))
      complain(type, fmt::format("requires the field '{}', which cannot be absent",
                                 proto.getName().cStr()));
    if (proto.isGroup()) {
      visit(field.getType().asStruct());
      return text + fmt::format("group {:x};", proto.getGroup().getTypeId());
    }
    auto slot = proto.getSlot();
    text += fmt::format("{} {}", slot.getOffset(), describe(field.getType(), type, field));
    if (slot.getHadExplicitDefault()) {
      auto words = capnp::canonicalize(slot.getDefaultValue());
      auto bytes = words.asBytes().asChars();
      text.append("=").append(bytes.begin(), bytes.size());
    }
    return text + ";";
  }

  std::string describe(capnp::Type type, capnp::StructSchema owner,
                       capnp::StructSchema::Field field) {
    auto which = static_cast<int>(type.which());
    switch (type.which()) {
    case Type::STRUCT:
      visit(type.asStruct());
      return fmt::format("{} {:x}", which, type.asStruct().getProto().getId());
    case Type::ENUM:
      visit(type.asEnum());
      return fmt::format("{} {:x}", which, type.asEnum().getProto().getId());
    case Type::LIST:
      has_arrays_ = true;
      return fmt::format("{} {}", which, describe(type.asList().getElementType(), owner, field));
    case Type::DATA:
      has_arrays_ = true;
      break;
    case Type::INTERFACE:
    case Type::ANY_POINTER:
      complain(owner, fmt::format("has the field '{}', an AnyPointer or an interface",
                                  field.getProto().getName().cStr()));
      break;
    default:
      break;
    }
    return std::to_string(which);
  }

  void visit(capnp::EnumSchema type) {
    auto& line = lines_[type.getProto().getId()];
    line = "enum";
    for (auto enumerant : type.getEnumerants())
      line += fmt::format(" {}", enumerant.getProto().getName().cStr());
  }

  void complain(capnp::StructSchema type, const std::string& problem) {
    if (complaint_.empty()) complaint_ = fmt::format("{} {}", name_of(type), problem);
  }

  std::map<uint64_t, std::string> lines_;
  std::string complaint_;
  bool has_arrays_ = false;
};

} // namespace

expected<own_schema> read_own_schema(capnp::StructSchema type, std::string name) {
  if (name.empty() || name.size() > limits::own_name_bytes_max)
    return fail(errc::invalid_argument,
                fmt::format("the message '{}' has a name of {} bytes; give it one of 1 to {}", name,
                            name.size(), limits::own_name_bytes_max));
  schema_walk walk;
  walk.visit(type);
  if (!walk.complaint().empty())
    return fail(errc::unimplemented,
                fmt::format("the message {} cannot travel: {}, which no receiver could check; use "
                            "structs, lists, texts and data",
                            name, walk.complaint()));
  return own_schema{type, std::move(name), walk.version(), walk.has_arrays()};
}

} // namespace troupe
