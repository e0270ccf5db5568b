// SPDX-License-Identifier: Apache-2.0
// Making tensors, and views of them.
#include "kernels/tensor/tensor.hpp"

#include "messages/errors/failure.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace troupe {

namespace {

/// Where the source of a copy has its elements.
struct strided_layout {
  const shape& extents;
  const std::vector<int64_t>& strides;
  size_t element_bytes;
};

/// Copies the elements below `source` in dimensions [dim, rank) to `target`, row-major; returns the
/// end of what it wrote.
std::byte* gather(std::byte* target, const std::byte* source, const strided_layout& layout,
                  size_t dim) {
  if (dim == layout.extents.rank()) {
    std::memcpy(target, source, layout.element_bytes);
    return target + layout.element_bytes;
  }
  auto step = layout.strides[dim] * static_cast<int64_t>(layout.element_bytes);
  for (int64_t i = 0; i < layout.extents[dim]; ++i)
    target = gather(target, source + i * step, layout, dim + 1);
  return target;
}

[[noreturn]] void throw_tensor_failure(errc code, std::string message) {
  throw failure{{code, std::move(message)}};
}

/// Caught like any other want of memory.
class no_memory_for_tensor final : public std::bad_alloc {
public:
  explicit no_memory_for_tensor(std::string text)
    : text_(std::make_shared<const std::string>(std::move(text))) {}

  [[nodiscard]] const char* what() const noexcept override { return text_->c_str(); }

private:
  std::shared_ptr<const std::string> text_; // an exception is copied without fail
};

std::string described(dtype type, const shape& extents) {
  return "a tensor of " + std::string{to_string(type)} + ' ' + to_string(extents);
}

/// The C++ type that has `type` as its `dtype_of`.
std::string_view element_name(dtype type) {
  constexpr std::string_view names[dtype_count]
    = {"float", "double", "float16", "bfloat16", "int32_t", "int64_t"};
  return names[static_cast<size_t>(type)];
}

} // namespace

std::vector<int64_t> row_major_strides(const shape& extents) {
  std::vector<int64_t> strides(extents.rank());
  int64_t stride = 1;
  for (size_t dim = extents.rank(); dim-- > 0;) {
    if (extents[dim] < 0)
      throw_tensor_failure(errc::invalid_argument,
                           "the shape " + to_string(extents) + " has a negative extent");
    strides[dim] = stride;
    if (__builtin_mul_overflow(stride, std::max<int64_t>(extents[dim], 1), &stride))
      throw_tensor_failure(errc::limit_exceeded, "the shape " + to_string(extents)
                                                   + " has more elements than an int64 counts");
  }
  return strides;
}

tensor::tensor(void* data, dtype type, shape extents, std::vector<int64_t> strides,
               std::shared_ptr<const void> owner)
  : data_(data), type_(type), extents_(std::move(extents)), strides_(std::move(strides)),
    owner_(std::move(owner)) {}

tensor::tensor(dtype type, shape extents)
  : type_(type), extents_(std::move(extents)), strides_(row_major_strides(extents_)) {
  auto bytes_max = static_cast<size_t>(std::numeric_limits<int64_t>::max());
  if (element_count() > bytes_max / element_bytes(type_))
    throw_tensor_failure(errc::limit_exceeded,
                         described(type_, extents_) + " has more bytes than an int64 counts");
  try {
    auto block = cpu_pool().allocate(bytes());
    data_ = block.get();
    owner_ = std::move(block);
  } catch (const std::bad_alloc&) {
    throw no_memory_for_tensor{"there is no memory for " + described(type_, extents_) + ", "
                               + std::to_string(bytes()) + " bytes; make smaller ones"};
  }
}

// Never destroyed: tensors in other static objects may outlive any order of destruction.

const shape& tensor::no_extents() {
  static const auto& extents = *new shape{0};
  return extents;
}

const std::vector<int64_t>& tensor::no_strides() {
  static const auto& strides = *new std::vector<int64_t>{1};
  return strides;
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
  if (owner_.use_count() != 1) return false;
  // The last other owner may just have let go on another thread: a later change of the count makes
  // all that it did before visible here. (So does a fence, but ThreadSanitizer ignores fences.)
  auto counted = owner_;
  static_cast<void>(counted);
  return true;
}

void tensor::throw_no_access(dtype requested, troupe::device where) const {
  auto self = described(type_, extents());
  if (requested != type_)
    throw_tensor_failure(errc::type_mismatch,
                         self + " has no elements of " + std::string{to_string(requested)}
                           + ": ask for <" + std::string{element_name(type_)} + ">, not for <"
                           + std::string{element_name(requested)}
                           + ">, or make it with dtype::" + std::string{to_string(requested)});
  if (where != device_)
    throw_tensor_failure(errc::failed_precondition, self + " lies on " + to_string(device_)
                                                      + ", not on " + to_string(where)
                                                      + ": copy it there before");
  throw_tensor_failure(errc::failed_precondition,
                       self + " does not lie row by row: take its contiguous() before");
}

void tensor::throw_read_only() const {
  throw_tensor_failure(errc::failed_precondition,
                       described(type_, extents()) + " is read-only: write to a clone() of it");
}

tensor tensor::reshape(shape extents) const {
  auto strides = row_major_strides(extents);
  if (!is_contiguous())
    throw_tensor_failure(errc::failed_precondition,
                         described(type_, this->extents())
                           + " does not lie row by row: reshape its contiguous()");
  if (extents.element_count() != this->extents().element_count())
    throw_tensor_failure(errc::invalid_argument, described(type_, this->extents())
                                                   + " cannot have the shape " + to_string(extents)
                                                   + ", which has another number of elements");
  auto result = *this;
  result.strides_ = std::move(strides);
  result.extents_ = std::move(extents);
  return result;
}

tensor tensor::slice(int64_t begin, int64_t end) const {
  if (rank() == 0 || begin < 0 || begin > end || end > extents()[0])
    throw_tensor_failure(errc::out_of_range, described(type_, extents()) + " has no rows ["
                                               + std::to_string(begin) + ", " + std::to_string(end)
                                               + ")");
  if (is_nothing()) return *this;
  auto dims = extents_.dims();
  dims[0] = end - begin;
  auto result = *this;
  auto offset = begin * strides_[0] * static_cast<int64_t>(element_bytes(type_));
  result.data_ = static_cast<std::byte*>(data_) + offset;
  result.extents_ = shape{std::move(dims)};
  return result;
}

tensor tensor::transpose() const {
  if (rank() != 2)
    throw_tensor_failure(errc::invalid_argument,
                         described(type_, extents()) + " cannot be transposed: it is no matrix");
  auto result = *this;
  result.extents_ = shape{extents_[1], extents_[0]};
  std::swap(result.strides_[0], result.strides_[1]);
  return result;
}

tensor tensor::contiguous() const {
  return is_contiguous() ? *this : clone();
}

void tensor::check_on_host() const {
  if (device_.kind == device_kind::cpu) return;
  throw_tensor_failure(errc::failed_precondition, described(type_, extents()) + " lies on "
                                                    + to_string(device_)
                                                    + ": copy it to the CPU before");
}

tensor tensor::clone() const {
  check_on_host();
  auto result = tensor{type_, extents()};
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
  if (result.element_count() != values.size())
    throw_tensor_failure(errc::invalid_argument, described(dtype::f32, result.extents()) + " takes "
                                                   + std::to_string(result.element_count())
                                                   + " values, not "
                                                   + std::to_string(values.size()));
  std::ranges::copy(values, result.mutable_values<float>().begin());
  return result;
}

tensor make_tensor(shape extents, std::initializer_list<float> values) {
  return make_tensor(std::move(extents), std::span<const float>{values.begin(), values.size()});
}

} // namespace troupe
