// SPDX-License-Identifier: Apache-2.0
// Making tensors, and views of them.
#include "kernels/tensor.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace troupe {

namespace {

/// What a copy reads: extents, strides and element size of the source.
struct strided_layout {
  const shape& extents;
  const std::vector<int64_t>& strides;
  size_t element_bytes;
};

/// Copies the elements below `source` in dimensions [dim, rank) to `target`, row-major; returns the
/// end of what it wrote.
std::byte* gather(std::byte* target, const std::byte* source, const strided_layout& from,
                  size_t dim) {
  if (dim == from.extents.rank()) {
    std::memcpy(target, source, from.element_bytes);
    return target + from.element_bytes;
  }
  auto step = from.strides[dim] * static_cast<int64_t>(from.element_bytes);
  for (int64_t i = 0; i < from.extents[dim]; ++i)
    target = gather(target, source + i * step, from, dim + 1);
  return target;
}

} // namespace

std::vector<int64_t> row_major_strides(const shape& extents) {
  std::vector<int64_t> strides(extents.rank());
  int64_t stride = 1;
  for (size_t dim = extents.rank(); dim-- > 0;) {
    TROUPE_ASSERT(extents[dim] >= 0, to_string(extents));
    strides[dim] = stride;
    stride *= std::max<int64_t>(extents[dim], 1);
  }
  return strides;
}

tensor::tensor(void* data, dtype type, shape extents, std::vector<int64_t> strides,
               std::shared_ptr<const void> owner)
  : data_(data), type_(type), extents_(std::move(extents)), strides_(std::move(strides)),
    owner_(std::move(owner)) {}

tensor::tensor(dtype type, shape extents)
  : type_(type), extents_(std::move(extents)), strides_(row_major_strides(extents_)) {
  auto block = cpu_pool().allocate(bytes());
  data_ = block.get();
  owner_ = std::move(block);
}

tensor tensor::wrap(void* data, dtype type, shape extents, std::shared_ptr<const void> owner) {
  auto strides = row_major_strides(extents);
  return wrap_strided(data, type, std::move(extents), std::move(strides), std::move(owner));
}

tensor tensor::wrap_read_only(const void* data, dtype type, shape extents,
                              std::shared_ptr<const void> owner) {
  auto result = wrap(const_cast<void*>(data), type, std::move(extents), std::move(owner));
  result.read_only_ = true;
  return result;
}

tensor tensor::wrap_strided(void* data, dtype type, shape extents, std::vector<int64_t> strides,
                            std::shared_ptr<const void> owner) {
  TROUPE_ASSERT(extents.rank() == strides.size(), extents.rank(), strides.size());
  TROUPE_ASSERT(reinterpret_cast<uintptr_t>(data) % element_bytes(type) == 0, data);
  return {data, type, std::move(extents), std::move(strides), std::move(owner)};
}

tensor tensor::wrap_on(troupe::device where, void* data, dtype type, shape extents,
                       std::shared_ptr<const void> owner) {
  auto result = wrap(data, type, std::move(extents), std::move(owner));
  result.device_ = where;
  return result;
}

tensor tensor::as_read_only() const {
  auto result = *this;
  result.read_only_ = true;
  return result;
}

bool tensor::is_contiguous() const {
  if (element_count() == 0) return true;
  int64_t stride = 1;
  for (size_t dim = rank(); dim-- > 0;) {
    if (extents_[dim] != 1 && strides_[dim] != stride) return false;
    stride *= extents_[dim];
  }
  return true;
}

bool tensor::is_unique() const {
  bool unique = owner_.use_count() == 1;
  // The last other owner may just have let go on another thread: see all that it did before.
  std::atomic_thread_fence(std::memory_order_acquire);
  return unique;
}

tensor tensor::reshape(shape extents) const {
  TROUPE_ASSERT(is_contiguous(), to_string(extents_));
  TROUPE_ASSERT(extents.element_count() == extents_.element_count(), to_string(extents),
                to_string(extents_));
  auto result = *this;
  result.strides_ = row_major_strides(extents);
  result.extents_ = std::move(extents);
  return result;
}

tensor tensor::slice(int64_t begin, int64_t end) const {
  TROUPE_ASSERT(rank() > 0);
  TROUPE_ASSERT(begin >= 0, begin);
  TROUPE_ASSERT(begin <= end, begin, end);
  TROUPE_ASSERT(end <= extents_[0], end, to_string(extents_));
  auto dims = extents_.dims();
  dims[0] = end - begin;
  auto result = *this;
  auto offset = begin * strides_[0] * static_cast<int64_t>(element_bytes(type_));
  result.data_ = static_cast<std::byte*>(data_) + offset;
  result.extents_ = shape{std::move(dims)};
  return result;
}

tensor tensor::transpose() const {
  TROUPE_ASSERT(rank() == 2, to_string(extents_));
  auto result = *this;
  result.extents_ = shape{extents_[1], extents_[0]};
  std::swap(result.strides_[0], result.strides_[1]);
  return result;
}

tensor tensor::contiguous() const {
  return is_contiguous() ? *this : clone();
}

tensor tensor::clone() const {
  TROUPE_ASSERT(device_.kind == device_kind::cpu, to_string(device_));
  auto result = tensor{type_, extents_};
  if (element_count() == 0) return result;
  auto* target = static_cast<std::byte*>(result.mutable_data());
  if (is_contiguous()) {
    std::memcpy(target, data_, bytes());
  } else {
    gather(target, static_cast<const std::byte*>(data_), {extents_, strides_, element_bytes(type_)},
           0);
  }
  return result;
}

tensor zeros(shape extents, dtype type) {
  auto result = tensor{type, std::move(extents)};
  std::memset(result.mutable_data(), 0, result.bytes());
  return result;
}

tensor make_tensor(shape extents, std::span<const float> values) {
  auto result = tensor{dtype::f32, std::move(extents)};
  TROUPE_ASSERT(result.element_count() == values.size(), to_string(result.extents()),
                values.size());
  std::ranges::copy(values, result.mutable_values<float>().begin());
  return result;
}

tensor make_tensor(shape extents, std::initializer_list<float> values) {
  return make_tensor(std::move(extents), std::span<const float>{values.begin(), values.size()});
}

} // namespace troupe
