// SPDX-License-Identifier: Apache-2.0
// Plans, made of schemas.
#include "messages/checks/visit_plan.hpp"

#include "messages/tensor.capnp.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <unordered_set>

namespace troupe {
namespace {

/// Every pattern of bits is a number, but not every one is a pointer or an enumerator.
bool may_have_faults(capnp::Type type) {
  return is_pointer(type) || type.isEnum();
}

/// A plan, and the plans of all structs that its fields lead to.
std::unordered_set<const visit_plan*> reached_from(const visit_plan& plan) {
  std::unordered_set<const visit_plan*> reached{&plan};
  std::vector<const visit_plan*> todo{&plan};
  auto go_to = [&](const visited_field& field) {
    if (field.inner != nullptr && reached.insert(field.inner).second) todo.push_back(field.inner);
  };
  while (!todo.empty()) {
    const auto& from = *todo.back();
    todo.pop_back();
    for (const auto& field : from.fields)
      go_to(field);
    for (const auto& member : from.members)
      if (member) go_to(*member);
  }
  return reached;
}

/// A struct itself, whatever it holds.
bool has_rules_itself(const visit_plan& plan) {
  return plan.rule != nullptr || !plan.members.empty()
         || std::ranges::any_of(plan.fields, &visited_field::is_required);
}

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
    const auto& plan = make_fields(schema);
    auto is_tensor = [](const visit_plan* other) {
      return other->schema == capnp::Schema::from<wire::Tensor>();
    };
    for (auto* made : made_) {
      auto reached = reached_from(*made);
      made->has_tensors = std::ranges::any_of(reached, is_tensor);
      made->has_rules = std::ranges::any_of(
        reached, [](const visit_plan* other) { return has_rules_itself(*other); });
    }
    made_.clear();
    return plan;
  }

  const visit_plan& make_fields(capnp::StructSchema schema) {
    auto id = schema.getProto().getId();
    if (auto known = plans_.find(id); known != plans_.end()) return *known->second;
    auto& plan = *(plans_[id] = std::make_unique<visit_plan>());
    made_.push_back(&plan);
    plan.schema = schema;
    plan.rule = rule_of(id);
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
    if (!may_have_faults(type)) return std::nullopt;
    visited_field visited{.field = field,
                          .type = type.which(),
                          .is_group = field.getProto().isGroup(),
                          .is_required = is_required(field)};
    if (!visited.is_group) visited.offset = field.getProto().getSlot().getOffset();
    if (type.isList()) visited.list = type.asList();
    auto innermost = type;
    while (innermost.isList())
      innermost = innermost.asList().getElementType();
    if (innermost.isStruct()) visited.inner = &make_fields(innermost.asStruct());
    if (type.isEnum()) {
      visited.enumeration = type.asEnum();
      visited.enumerators = visited.enumeration.getEnumerants().size();
      visited.usual = field.getProto().getSlot().getDefaultValue().getEnum();
    }
    return visited;
  }

  std::shared_mutex mutex_;
  std::unordered_map<uint64_t, std::unique_ptr<visit_plan>> plans_;
  std::vector<visit_plan*> made_; ///< By the call that is under way.
};

} // namespace

bool is_pointer(capnp::Type type) {
  return type.isStruct() || type.isList() || type.isText() || type.isData();
}

bool is_required(capnp::StructSchema::Field field) {
  constexpr uint64_t required_id = 0xe6a1d7c2b9f04835; // Cap'n Proto makes no constant for it
  for (auto annotation : field.getProto().getAnnotations())
    if (annotation.getId() == required_id) return true;
  return false;
}

uint16_t bits_of(const capnp::AnyStruct::Reader& value, uint32_t offset) {
  auto data = value.getDataSection();
  uint16_t bits = 0;
  if ((offset + size_t{1}) * sizeof bits > data.size()) return bits;
  std::memcpy(&bits, data.begin() + offset * sizeof bits, sizeof bits);
  return bits;
}

const visit_plan& plan_for(capnp::StructSchema schema) {
  static visit_plans plans;
  return plans.of(schema);
}

} // namespace troupe
