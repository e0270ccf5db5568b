// SPDX-License-Identifier: Apache-2.0
// The rules of tensor.capnp, as code, and where in a message they hold.
#include "messages/checks/check.hpp"

#include "kernels/tensor/tensor.hpp"
#include "messages/checks/limits.hpp"
#include "messages/checks/visit_plan.hpp"
#include "messages/collective.capnp.h"
#include "messages/tensor.capnp.h"

#include <capnp/dynamic.h>

namespace troupe {
namespace {

using extents_reader = capnp::List<int64_t>::Reader;
using std::to_string;

/// Bytes of one element of a dtype as a message names it; 0: no dtype has that value.
size_t element_bytes_of(uint8_t type) {
  return type < dtype_count ? element_bytes(static_cast<dtype>(type)) : 0;
}

template <class List, class Check>
expected<void> check_each(List list, const Check& check) {
  for (auto element : list)
    if (auto checked = check(element); !checked) return checked;
  return {};
}

/// Bytes of a tensor. Zero extents are left out of the product that must not overflow, because
/// strides are products of some extents only. Errors: malformed, limit_exceeded.
expected<size_t> tensor_bytes(extents_reader extents, size_t element_bytes) {
  if (extents.size() > limits::rank_max)
    return fail(errc::limit_exceeded, "tensor of rank " + to_string(extents.size()) + ", at most "
                                        + to_string(limits::rank_max) + " is accepted");
  auto product = static_cast<int64_t>(element_bytes);
  auto empty = false;
  for (auto extent : extents) {
    if (extent < 0) return fail(errc::malformed, "tensor with the extent " + to_string(extent));
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, extent, &product)) {
      return fail(errc::malformed, "tensor whose size overflows 63 bits");
    }
  }
  return empty ? 0 : static_cast<size_t>(product);
}

expected<void> check_parts(capnp::List<capnp::Data>::Reader parts, size_t bytes) {
  if (parts.size() > limits::parts_max)
    return fail(errc::limit_exceeded, "tensor of " + to_string(parts.size()) + " parts, at most "
                                        + to_string(limits::parts_max) + " are accepted");
  size_t sum = 0;
  for (capnp::uint i = 0; i < parts.size(); ++i) {
    auto size = parts[i].size();
    auto is_last = i + 1 == parts.size();
    if (is_last ? size == 0 : size != limits::part_bytes_max)
      return fail(errc::malformed, "part " + to_string(i) + " of a tensor has " + to_string(size)
                                     + " bytes: only the last may be short");
    sum += size;
  }
  if (sum != bytes)
    return fail(errc::malformed, "tensor with " + to_string(sum)
                                   + " bytes of elements, its shape needs " + to_string(bytes));
  return {};
}

expected<void> check_tensor(wire::Tensor::Reader tensor) {
  if (tensor.getDeviceKind() != 0)
    return fail(errc::malformed, "tensor that lies on a device of another process");
  auto element_bytes = element_bytes_of(static_cast<uint8_t>(tensor.getDtype()));
  return tensor_bytes(tensor.getShape(), element_bytes).and_then([&](size_t bytes) {
    return check_parts(tensor.getParts(), bytes);
  });
}

/// Every row number is at least 0 and below `rows_max`.
expected<void> check_row_numbers(wire::Tensor::Reader indices, int64_t rows_max) {
  for (auto part : indices.getParts()) {
    // Parts begin at whole words, as everything in a segment does.
    auto* begin = reinterpret_cast<const int64_t*>(part.begin());
    for (auto* index = begin; index != begin + part.size() / sizeof(int64_t); ++index)
      if (*index < 0 || *index >= rows_max)
        return fail(errc::malformed,
                    "sparse gradient for row " + to_string(*index) + " of " + to_string(rows_max));
  }
  return {};
}

expected<void> check_slice_shapes(wire::IndexedSlices::Reader slices) {
  auto indices = slices.getIndices().getShape();
  auto values = slices.getValues().getShape();
  auto dense = slices.getDenseShape();
  if (slices.getIndices().getDtype() != wire::DType::I64 || indices.size() != 1)
    return fail(errc::malformed, "sparse gradient whose row numbers are not a list of i64");
  if (values.size() == 0 || values[0] != indices[0])
    return fail(errc::malformed, "sparse gradient with " + to_string(indices[0])
                                   + " row numbers for another number of rows");
  auto agree = dense.size() == values.size();
  for (capnp::uint i = 1; agree && i < dense.size(); ++i)
    agree = dense[i] == values[i];
  if (!agree) return fail(errc::malformed, "sparse gradient whose rows do not fit its dense shape");
  return {};
}

expected<void> check_slices(wire::IndexedSlices::Reader slices) {
  auto value_type = static_cast<uint8_t>(slices.getValues().getDtype());
  return check_slice_shapes(slices)
    .and_then([&] { return tensor_bytes(slices.getDenseShape(), element_bytes_of(value_type)); })
    .and_then(
      [&](size_t) { return check_row_numbers(slices.getIndices(), slices.getDenseShape()[0]); });
}

// The meaning describes a tensor of the sender's, which it did not send all of.
expected<void> check_meaning(wire::CollectiveMeaning::Reader meaning) {
  auto element_bytes = element_bytes_of(static_cast<uint8_t>(meaning.getDtype()));
  return tensor_bytes(meaning.getShape(), element_bytes).map([](size_t) {});
}

std::string name_of(const visit_plan& plan) {
  return plan.schema.getShortDisplayName().cStr();
}

expected<void> check_list(const capnp::DynamicList::Reader& list, const visit_plan& plan) {
  if (list.getSchema().whichElementType() == capnp::schema::Type::STRUCT)
    return check_each(list.as<capnp::AnyList>().as<capnp::List<capnp::AnyStruct>>(),
                      [&](const auto& element) { return check_rules(element, plan); });
  return check_each(list, [&](const auto& inner) {
    return check_list(inner.template as<capnp::DynamicList>(), plan);
  });
}

expected<void> check_field(const capnp::AnyStruct::Reader& parent, const visit_plan& plan,
                           const visited_field& field) {
  auto is_visited = field.inner != nullptr && field.inner->has_rules;
  if (!is_visited && !field.is_required) return {};
  if (field.is_group) return check_rules(parent, *field.inner);
  auto pointers = parent.getPointerSection();
  auto is_absent = field.offset >= pointers.size() || pointers[field.offset].isNull();
  if (is_absent && field.is_required)
    return fail(errc::malformed,
                name_of(plan) + " without its " + field.field.getProto().getName().cStr());
  if (is_absent || !is_visited) return {};
  auto pointer = pointers[field.offset];
  if (field.type == capnp::schema::Type::STRUCT)
    return check_rules(pointer.getAs<capnp::AnyStruct>(), *field.inner);
  return check_list(pointer.getAs<capnp::DynamicList>(field.list), *field.inner);
}

} // namespace

struct_rule rule_of(uint64_t schema) {
  using reader = const capnp::AnyStruct::Reader&;
  switch (schema) {
  case capnp::typeId<wire::Tensor>():
    return [](reader value) { return check_tensor(value.as<wire::Tensor>()); };
  case capnp::typeId<wire::IndexedSlices>():
    return [](reader value) { return check_slices(value.as<wire::IndexedSlices>()); };
  case capnp::typeId<wire::CollectiveMeaning>():
    return [](reader value) { return check_meaning(value.as<wire::CollectiveMeaning>()); };
  default:
    return nullptr;
  }
}

expected<void> check_rules(const capnp::AnyStruct::Reader& value, const visit_plan& plan) {
  if (!plan.has_rules) return {};
  for (const auto& field : plan.fields)
    if (auto checked = check_field(value, plan, field); !checked) return checked;
  if (!plan.members.empty()) {
    auto active = bits_of(value, plan.union_offset);
    if (active >= plan.members.size())
      return fail(errc::malformed, name_of(plan) + " with an unknown member");
    if (const auto& member = plan.members[active])
      if (auto checked = check_field(value, plan, *member); !checked) return checked;
  }
  return plan.rule != nullptr ? plan.rule(value) : expected<void>{};
}

} // namespace troupe
