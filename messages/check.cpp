// SPDX-License-Identifier: Apache-2.0
// The rules of tensor.capnp, as code.
#include "messages/check.hpp"

#include "messages/limits.hpp"
#include "messages/payload.hpp"

#include <limits>

namespace troupe {
namespace {

using extents_reader = capnp::List<int64_t>::Reader;
using std::to_string;

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
  auto element_bytes = payload_element_bytes(static_cast<uint8_t>(tensor.getDtype()));
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
  return check_tensor(slices.getIndices())
    .and_then([&] { return check_tensor(slices.getValues()); })
    .and_then([&] { return check_slice_shapes(slices); })
    .and_then(
      [&] { return tensor_bytes(slices.getDenseShape(), payload_element_bytes(value_type)); })
    .and_then(
      [&](size_t) { return check_row_numbers(slices.getIndices(), slices.getDenseShape()[0]); });
}

expected<void> check_gradient(wire::Gradient::Reader gradient) {
  switch (gradient.which()) {
  case wire::Gradient::NONE:
    return {};
  case wire::Gradient::DENSE:
    return check_tensor(gradient.getDense());
  case wire::Gradient::SPARSE:
    return check_slices(gradient.getSparse());
  }
  return fail(errc::malformed, "gradient of the unknown kind " + to_string(gradient.which()));
}

expected<void> check_array(wire::NamedTensor::Reader array) {
  return check_tensor(array.getValue());
}

expected<void> check_progress(wire::ReplicaProgress::Reader progress) {
  return check_each(progress.getKept(), check_array);
}

expected<void> check_value(wire::ClosureValue::Reader value) {
  auto kind = static_cast<uint16_t>(value.which());
  if (kind > wire::ClosureValue::RESOURCE)
    return fail(errc::malformed, "closure value of the unknown kind " + to_string(kind));
  return value.isTensor() ? check_tensor(value.getTensor()) : expected<void>{};
}

expected<void> check_state(wire::VariableState::Reader state) {
  return check_tensor(state.getValue())
    .and_then([&] { return check_each(state.getSlots(), check_array); })
    .and_then([&] {
      auto has_average = state.getAverage().getName().size() > 0;
      return has_average ? check_array(state.getAverage()) : expected<void>{};
    });
}

expected<void> check_made(wire::MadeChange::Reader change) {
  return change.hasSnapshot() ? check_tensor(change.getSnapshot().getValue()) : expected<void>{};
}

// The meaning describes tensors of the sender's, which it did not send all of.
expected<void> check_part(wire::CollectivePart::Reader part) {
  auto meaning = part.getMeaning();
  auto element_bytes = payload_element_bytes(static_cast<uint8_t>(meaning.getDtype()));
  if (auto sized = tensor_bytes(meaning.getShape(), element_bytes); !sized)
    return tl::unexpected<error>(sized.error());
  return check_each(part.getValues(), check_tensor);
}

expected<void> check_own_value(const capnp::DynamicValue::Reader& value);

// Strings, numbers and their lists have no rules but those of the walk.
bool has_structs(capnp::Type type) {
  while (type.isList())
    type = type.asList().getElementType();
  return type.isStruct();
}

expected<void> check_own_field(const capnp::DynamicStruct::Reader& parent,
                               capnp::StructSchema::Field field) {
  if (!has_structs(field.getType()) || !parent.has(field)) return {};
  return check_own_value(parent.get(field));
}

expected<void> check_own_struct(const capnp::DynamicStruct::Reader& value) {
  auto schema = value.getSchema();
  if (schema == capnp::Schema::from<wire::Tensor>()) return check_tensor(value.as<wire::Tensor>());
  if (schema == capnp::Schema::from<wire::IndexedSlices>())
    return check_slices(value.as<wire::IndexedSlices>());
  if (schema == capnp::Schema::from<wire::Gradient>())
    return check_gradient(value.as<wire::Gradient>());
  auto check_field = [&](auto field) { return check_own_field(value, field); };
  if (auto checked = check_each(schema.getNonUnionFields(), check_field); !checked) return checked;
  if (schema.getUnionFields().size() == 0) return {};
  KJ_IF_MAYBE (member, value.which()) return check_own_field(value, *member);
  return fail(errc::malformed,
              std::string{schema.getShortDisplayName().cStr()} + " with an unknown member");
}

expected<void> check_own_value(const capnp::DynamicValue::Reader& value) {
  if (value.getType() == capnp::DynamicValue::STRUCT)
    return check_own_struct(value.as<capnp::DynamicStruct>());
  return check_each(value.as<capnp::DynamicList>(), check_own_value);
}

} // namespace

expected<void> check_own_body(capnp::DynamicStruct::Reader body) {
  return check_own_struct(body);
}

expected<void> check_body(wire::Envelope::Reader envelope) {
  switch (envelope.which()) {
  case wire::Envelope::VARIABLE_SNAPSHOT:
    return check_tensor(envelope.getVariableSnapshot().getValue());
  case wire::Envelope::CHANGE_VARIABLE:
    return check_gradient(envelope.getChangeVariable().getOperand());
  case wire::Envelope::VARIABLE_CHANGES:
    return check_gradient(envelope.getVariableChanges().getChange());
  case wire::Envelope::PUSH_GRADIENT:
    return check_gradient(envelope.getPushGradient().getGradient());
  case wire::Envelope::APPLY_UPDATE:
    return check_each(envelope.getApplyUpdate().getGradients(), check_gradient);
  case wire::Envelope::AGGREGATE:
    return check_gradient(envelope.getAggregate().getGradient());
  case wire::Envelope::VARIABLE_STATE:
    return check_state(envelope.getVariableState());
  case wire::Envelope::RESTORE_STATE:
    return check_state(envelope.getRestoreState().getState());
  case wire::Envelope::MIRROR_STATE:
    return check_state(envelope.getMirrorState().getState()).and_then([&] {
      return check_each(envelope.getMirrorState().getMade(), check_made);
    });
  case wire::Envelope::REPLICA_PROGRESS:
    return check_progress(envelope.getReplicaProgress());
  case wire::Envelope::JOB_BEGINS:
    return check_each(envelope.getJobBegins().getReplicas(), check_progress);
  case wire::Envelope::COLLECTIVE_PART:
    return check_part(envelope.getCollectivePart());
  case wire::Envelope::RUN_CLOSURE:
    return check_each(envelope.getRunClosure().getArguments(), check_value);
  case wire::Envelope::CLOSURE_DONE:
    return check_each(envelope.getClosureDone().getResults(), check_value);
  default:
    return {}; // Numbers and texts, about which the walk has said all.
  }
}

} // namespace troupe
