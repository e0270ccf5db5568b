// SPDX-License-Identifier: Apache-2.0
// The walk over a message, through its schema.
#include "messages/checks/walk.hpp"

#include "messages/checks/limits.hpp"
#include "messages/checks/visit_plan.hpp"

namespace troupe {
namespace {

using capnp::AnyPointer;
using capnp::AnyStruct;
using capnp::DynamicList;
using capnp::DynamicStruct;

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
