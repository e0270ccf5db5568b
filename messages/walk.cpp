// SPDX-License-Identifier: Apache-2.0
// The walk over a message, through its schema.
#include "messages/walk.hpp"

#include "messages/limits.hpp"

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace troupe {
namespace {

using capnp::DynamicEnum;
using capnp::DynamicList;
using capnp::DynamicStruct;
using capnp::DynamicValue;

/// Every pattern of bits is a number, but not every one is a pointer or an enumerator.
bool may_have_faults(capnp::schema::Type::Which type) {
  using capnp::schema::Type;
  return type == Type::STRUCT || type == Type::LIST || type == Type::ENUM || type == Type::TEXT
         || type == Type::DATA;
}

/// What there is to visit in a struct of one schema. To ask the schema for it takes longer than to
/// visit a short message.
struct visit_plan {
  explicit visit_plan(capnp::StructSchema of) : members(of.getFields().size()) {
    for (auto field : of.getNonUnionFields())
      if (may_have_faults(field.getType().which())) fields.push_back(field);
    for (auto field : of.getUnionFields())
      members[field.getIndex()] = may_have_faults(field.getType().which());
  }

  std::vector<capnp::StructSchema::Field> fields; ///< That every such struct has.
  std::vector<bool> members;                      ///< Of the union, by index, if active.
};

/// Made at the first visit, and kept: there are as many as there are schemas in this program.
const visit_plan& plan_for(capnp::StructSchema schema) {
  static std::shared_mutex mutex;
  static std::unordered_map<uint64_t, std::unique_ptr<const visit_plan>> plans;
  auto id = schema.getProto().getId();
  {
    std::shared_lock reading{mutex};
    if (auto found = plans.find(id); found != plans.end()) return *found->second;
  }
  auto plan = std::make_unique<const visit_plan>(schema);
  std::lock_guard writing{mutex};
  return *plans.emplace(id, std::move(plan)).first->second;
}

/// One walk; after the first failure nothing is visited any more.
class walker {
public:
  explicit walker(const fault_listener& listener) : listener_(listener) {}

  void visit(DynamicStruct::Reader value) {
    const auto& plan = plan_for(value.getSchema());
    for (auto field : plan.fields)
      visit(value, field);
    KJ_IF_MAYBE (field, value.which())
      if (plan.members[field->getIndex()]) visit(value, *field);
  }

  [[nodiscard]] expected<void> result() && { return std::move(result_); }

private:
  /// Most fields are numbers, which need no visit; a field that is absent has no faults either.
  void visit(const DynamicStruct::Reader& parent, capnp::StructSchema::Field field) {
    if (failed() || !parent.has(field)) return;
    visit(parent.get(field));
  }

  void visit(const DynamicValue::Reader& value) {
    if (failed()) return;
    switch (value.getType()) {
    case DynamicValue::STRUCT:
      return visit(value.as<DynamicStruct>());
    case DynamicValue::LIST:
      return visit(value.as<DynamicList>());
    case DynamicValue::ENUM:
      return visit(value.as<DynamicEnum>());
    case DynamicValue::TEXT:
      return check_size("text", value.as<capnp::Text>().size(), limits::text_bytes_max);
    case DynamicValue::DATA:
      return check_size("blob", value.as<capnp::Data>().size(), limits::part_bytes_max);
    default:
      return;
    }
  }

  void visit(const DynamicList::Reader& list) {
    check_size("list", list.size(), limits::list_elements_max);
    if (!may_have_faults(list.getSchema().whichElementType())) return;
    for (capnp::uint i = 0; i < list.size() && !failed(); ++i)
      visit(list[i]);
  }

  void visit(DynamicEnum value) {
    if (value.getEnumerant() != nullptr) return;
    auto name = value.getSchema().getShortDisplayName();
    fail_with(errc::malformed, "no " + std::string(name.cStr()) + " has the value "
                                 + std::to_string(value.getRaw()));
  }

  void check_size(const char* what, size_t size, size_t size_max) {
    if (size > size_max)
      fail_with(errc::limit_exceeded, std::string(what) + " of " + std::to_string(size)
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
  visitor.visit(root);
  return std::move(visitor).result();
}

} // namespace troupe
