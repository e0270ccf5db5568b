// SPDX-License-Identifier: Apache-2.0
// Our tensors as DLPack's, and back.
#include "kernels/tensor/dlpack.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

DLDataType to_dl(dtype type) {
  auto code = type == dtype::bf16 ? kDLBfloat : is_floating(type) ? kDLFloat : kDLInt;
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(element_bytes(type) * 8), 1};
}

DLDevice to_dl(device where) {
  return where.kind == device_kind::cpu ? DLDevice{kDLCPU, 0} : DLDevice{kDLCUDA, where.index};
}

std::optional<device> from_dl(const DLDevice& where) {
  if (where.device_type == kDLCPU || where.device_type == kDLCUDAHost) return device{};
  if (where.device_type == kDLCUDA && where.device_id >= 0)
    return device{device_kind::cuda, where.device_id};
  return std::nullopt;
}

std::optional<dtype> from_dl(const DLDataType& type) {
  for (size_t i = 0; i < dtype_count; ++i) {
    auto candidate = to_dl(static_cast<dtype>(i));
    if (type.code == candidate.code && type.bits == candidate.bits && type.lanes == 1)
      return static_cast<dtype>(i);
  }
  return std::nullopt;
}

/// A tensor of ours that is lent, with the memory that its `DLManagedTensor` points to.
struct loan {
  tensor value;
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;
  DLManagedTensor managed;
};

void end_loan(DLManagedTensor* managed) {
  delete static_cast<loan*>(managed->manager_ctx);
}

/// True if a product of the extents, or a distance within them, does not fit int64.
bool overflows(const DLTensor& from, dtype type) {
  int64_t bytes = static_cast<int64_t>(element_bytes(type));
  for (int dim = 0; dim < from.ndim; ++dim)
    if (from.shape[dim] > 0 && __builtin_mul_overflow(bytes, from.shape[dim], &bytes)) return true;
  return false;
}

/// The fault of a tensor that comes from outside, or an empty line.
std::string complaint_about(const DLTensor& from, dtype type) {
  if (from.ndim < 0) return "its rank is negative";
  if (from.ndim > 0 && from.shape == nullptr) return "it has a rank but no shape";
  for (int dim = 0; dim < from.ndim; ++dim)
    if (from.shape[dim] < 0) return "extent " + std::to_string(dim) + " is negative";
  if (overflows(from, type)) return "its size does not fit 64 bits";
  auto is_empty = std::find(from.shape, from.shape + from.ndim, 0) != from.shape + from.ndim;
  if (!is_empty && from.data == nullptr) return "it has elements but no data";
  auto address = reinterpret_cast<uintptr_t>(from.data) + from.byte_offset;
  if (address % element_bytes(type) != 0) return "its data is not aligned to its element type";
  return {};
}

bool has_overlap(const shape& extents, const std::vector<int64_t>& strides) {
  for (size_t dim = 0; dim < extents.rank(); ++dim)
    if (extents[dim] > 1 && strides[dim] == 0) return true;
  return false;
}

} // namespace

expected<dlpack_handle> to_dlpack(const tensor& value) {
  if (value.read_only())
    return fail(errc::failed_precondition,
                "a read-only tensor cannot be lent by DLPack 0.6: lend a clone() of it");
  auto owned = std::make_unique<loan>(loan{value, value.extents().dims(), value.strides(), {}});
  auto& view = owned->managed.dl_tensor;
  view.data = owned->value.mutable_data();
  view.device = to_dl(value.device());
  view.ndim = static_cast<int>(owned->dims.size());
  view.dtype = to_dl(value.type());
  view.shape = owned->dims.data();
  view.strides = owned->strides.data();
  view.byte_offset = 0;
  owned->managed.manager_ctx = owned.get();
  owned->managed.deleter = end_loan;
  return dlpack_handle{&owned.release()->managed};
}

expected<tensor> from_dlpack(dlpack_handle lent) {
  if (lent == nullptr) return fail(errc::invalid_argument, "DLPack tensor: there is none");
  const auto& from = lent->dl_tensor;
  auto where = from_dl(from.device);
  if (!where)
    return fail(errc::unimplemented, "DLPack tensor: device "
                                       + std::to_string(from.device.device_id) + " of type "
                                       + std::to_string(from.device.device_type)
                                       + " is neither the CPU nor a GPU of CUDA: copy it to one");
  auto type = from_dl(from.dtype);
  if (!type) {
    return fail(errc::type_mismatch,
                "DLPack tensor: element type (code " + std::to_string(from.dtype.code) + ", "
                  + std::to_string(from.dtype.bits) + " bits, " + std::to_string(from.dtype.lanes)
                  + " lanes) is none of f32, f64, f16, bf16, i32, i64");
  }
  auto complaint = complaint_about(from, *type);
  if (!complaint.empty()) return fail(errc::invalid_argument, "DLPack tensor: " + complaint);
  shape extents{std::vector<int64_t>(from.shape, from.shape + from.ndim)};
  void* data = static_cast<std::byte*>(from.data) + from.byte_offset;
  auto strides = from.strides == nullptr
                   ? row_major_strides(extents)
                   : std::vector<int64_t>(from.strides, from.strides + from.ndim);
  std::shared_ptr<DLManagedTensor> owner = std::move(lent);
  auto overlapping = has_overlap(extents, strides);
  auto result = tensor::wrap_strided(data, *type, std::move(extents), std::move(strides), owner);
  if (where->kind != device_kind::cpu) {
    if (result.is_contiguous())
      return tensor::wrap_on(*where, data, *type, result.extents(), std::move(owner));
    return fail(errc::unimplemented, "DLPack tensor: it does not lie row by row on "
                                       + to_string(*where) + ": make it contiguous there");
  }
  return overlapping ? result.as_read_only() : result;
}

} // namespace troupe
