// SPDX-License-Identifier: Apache-2.0
// The walk over a message, through its schema.
#include "messages/walk.hpp"

#include "messages/limits.hpp"

#include <capnp/any.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace troupe {
namespace {

using capnp::AnyPointer;
using capnp::AnyStruct;
using capnp::DynamicList;
using capnp::DynamicStruct;

/// Every pattern of bits is a number, but not every one is a pointer or an enumerator.
bool may_have_faults(capnp::schema::Type::Which type) {
  using capnp::schema::Type;
  return type == Type::STRUCT || type == Type::LIST || type == Type::ENUM || type == Type::TEXT
         || type == Type::DATA;
}

struct visit_plan;

/// A field that may have faults, and where it lies in its struct.
struct visited_field {
  capnp::schema::Type::Which type;
  bool is_group = false; ///< A struct with its fields in this one.
  uint32_t offset = 0;   ///< Among the pointers; an enumerator's in the data, in units of 16 bits.
  uint16_t usual = 0;    ///< An enumerator is stored as what differs from this.
  const visit_plan* inner = nullptr; ///< Plan of a struct, or of those in a list of any depth.
  capnp::ListSchema list;            ///< Schema of a list.
  capnp::EnumSchema enumeration;     ///< Schema of an enumerator.
  uint32_t enumerators = 0;          ///< How many enumerators it has.
};

/// The fields to visit in a struct of one schema. Asking the schema for them takes longer than
/// visiting a short message.
struct visit_plan {
  std::vector<visited_field> fields;                 ///< Fields that every such struct has.
  uint32_t union_offset = 0;                         ///< Discriminant's place; unit: 16 bits.
  std::vector<std::optional<visited_field>> members; ///< Members of the union, by discriminant.
};

/// The plans of all schemas in this program that have been met, each made once.
class visit_plans {
public:
  const visit_plan& of(capnp::StructSchema schema) {
    auto id = schema.getProto().getId();
    {
      std::shared_lock reading{mutex_};
      if (auto found = plans_.find(id); found != plans_.end()) return *found->second;
    }
    std::lock_guard writing{mutex_};
    return make(schema);
  }

private:
  /// @pre `mutex_` is held, until the plans of all inner structs are made, too.
  const visit_plan& make(capnp::StructSchema schema) {
    auto [at, is_new] = plans_.emplace(schema.getProto().getId(), nullptr);
    if (!is_new) return *at->second;
    auto& plan = *(at->second = std::make_unique<visit_plan>());
    for (auto field : schema.getNonUnionFields())
      if (auto visited = make(field)) plan.fields.push_back(*visited);
    plan.union_offset = schema.getProto().getStruct().getDiscriminantOffset();
    plan.members.resize(schema.getUnionFields().size());
    for (auto field : schema.getUnionFields())
      plan.members[field.getProto().getDiscriminantValue()] = make(field);
    return plan;
  }

  std::optional<visited_field> make(capnp::StructSchema::Field field) {
    auto type = field.getType();
    if (!may_have_faults(type.which())) return std::nullopt;
    visited_field visited{.type = type.which(), .is_group = field.getProto().isGroup()};
    if (!visited.is_group) visited.offset = field.getProto().getSlot().getOffset();
    if (type.isList()) visited.list = type.asList();
    auto innermost = type;
    while (innermost.isList())
      innermost = innermost.asList().getElementType();
    if (innermost.isStruct()) visited.inner = &make(innermost.asStruct());
    if (type.isEnum()) {
      visited.enumeration = type.asEnum();
      visited.enumerators = visited.enumeration.getEnumerants().size();
      visited.usual = field.getProto().getSlot().getDefaultValue().getEnum();
    }
    return visited;
  }

  std::shared_mutex mutex_;
  std::unordered_map<uint64_t, std::unique_ptr<visit_plan>> plans_;
};

const visit_plan& plan_for(capnp::StructSchema schema) {
  static visit_plans plans;
  return plans.of(schema);
}

/// 16 bits of a struct's data; 0 where its sender has known no such field.
uint16_t bits_of(const AnyStruct::Reader& value, uint32_t offset) {
  auto data = value.getDataSection();
  uint16_t bits = 0;
  if ((offset + size_t{1}) * sizeof bits > data.size()) return bits;
  std::memcpy(&bits, data.begin() + offset * sizeof bits, sizeof bits);
  return bits;
}

/// One walk; after the first failure nothing is visited any more.
class walker {
public:
  explicit walker(const fault_listener& listener) : listener_(listener) {}

  void visit(const AnyStruct::Reader& value, const visit_plan& plan) {
    for (const auto& field : plan.fields)
      visit(value, field);
    if (plan.members.empty()) return;
    auto active = bits_of(value, plan.union_offset);
    if (active < plan.members.size() && plan.members[active]) visit(value, *plan.members[active]);
  }

  [[nodiscard]] expected<void> result() && {
    static_cast<void>(failed()); // the last visit may have been to a fault
    return std::move(result_);
  }

private:
  void visit(const AnyStruct::Reader& parent, const visited_field& field) {
    if (failed()) return;
    if (field.is_group) return visit(parent, *field.inner);
    if (field.type == capnp::schema::Type::ENUM)
      return check_enumerator(field.enumeration, field.enumerators,
                              bits_of(parent, field.offset) ^ field.usual);
    auto pointers = parent.getPointerSection();
    if (field.offset >= pointers.size()) return;
    auto pointer = pointers[field.offset];
    if (!pointer.isNull()) visit(pointer, field); // a field that is absent has no faults
  }

  void visit(const AnyPointer::Reader& pointer, const visited_field& field) {
    switch (field.type) {
    case capnp::schema::Type::STRUCT:
      return visit(pointer.getAs<AnyStruct>(), *field.inner);
    case capnp::schema::Type::LIST:
      return visit(pointer.getAs<DynamicList>(field.list), field.inner);
    case capnp::schema::Type::TEXT:
      return check_text(pointer.getAs<capnp::Text>());
    default:
      return check_blob(pointer.getAs<capnp::Data>());
    }
  }

  /// @param plan The plan of the structs, if the list holds any.
  void visit(const DynamicList::Reader& list, const visit_plan* plan) {
    check_size("list", list.size(), limits::list_elements_max);
    auto schema = list.getSchema();
    switch (schema.whichElementType()) {
    case capnp::schema::Type::STRUCT:
      return visit_each<AnyStruct>(list, [&](const auto& element) { visit(element, *plan); });
    case capnp::schema::Type::LIST:
      for (capnp::uint i = 0; i < list.size() && !failed(); ++i)
        visit(list[i].as<DynamicList>(), plan);
      return;
    case capnp::schema::Type::ENUM: {
      auto enumeration = schema.getEnumElementType();
      auto count = enumeration.getEnumerants().size();
      return visit_each<uint16_t>(
        list, [&](uint16_t element) { check_enumerator(enumeration, count, element); });
    }
    case capnp::schema::Type::TEXT:
      return visit_each<capnp::Text>(list, [&](const auto& element) { check_text(element); });
    case capnp::schema::Type::DATA:
      return visit_each<capnp::Data>(list, [&](const auto& element) { check_blob(element); });
    default:
      return;
    }
  }

  /// The elements as what they are: a `DynamicValue` of each takes longer than the visit.
  template <class Element, class Visit>
  void visit_each(const DynamicList::Reader& list, const Visit& visit) {
    auto elements = list.as<capnp::AnyList>().as<capnp::List<Element>>();
    for (capnp::uint i = 0; i < elements.size() && !failed(); ++i)
      visit(elements[i]);
  }

  void check_enumerator(capnp::EnumSchema schema, uint32_t count, uint32_t value) {
    if (value < count) return;
    auto name = schema.getShortDisplayName();
    fail_with(errc::malformed,
              "no " + std::string(name.cStr()) + " has the value " + std::to_string(value));
  }

  void check_text(capnp::Text::Reader text) {
    check_size("text", text.size(), limits::text_bytes_max);
  }

  void check_blob(capnp::Data::Reader blob) {
    check_size("blob", blob.size(), limits::part_bytes_max);
  }

  void check_size(const char* kind, size_t size, size_t size_max) {
    if (size > size_max)
      fail_with(errc::limit_exceeded, std::string(kind) + " of " + std::to_string(size)
                                        + " elements, at most " + std::to_string(size_max)
                                        + " are accepted");
  }

  bool failed() {
    if (result_ && listener_.heard_any()) fail_with(errc::malformed, listener_.first());
    return !result_;
  }

  void fail_with(errc code, std::string message) {
    if (result_) result_ = fail(code, std::move(message));
  }

  const fault_listener& listener_;
  expected<void> result_;
};

} // namespace

void fault_listener::onRecoverableException(kj::Exception&& fault) {
  hear(fault);
}

void fault_listener::hear(const kj::Exception& fault) {
  if (heard_) return;
  heard_ = true;
  first_ = fault.getDescription().cStr();
}

expected<void> walk(DynamicStruct::Reader root, const fault_listener& listener) {
  walker visitor(listener);
  visitor.visit(root, plan_for(root.getSchema()));
  return std::move(visitor).result();
}

} // namespace troupe
