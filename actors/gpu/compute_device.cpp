// SPDX-License-Identifier: Apache-2.0
// What all streams have in common, and the one of the host.
#include "actors/gpu/compute_device.hpp"

#include "actors/collective/collective_sum.hpp"
#include "kernels/elements.hpp"

#include <cstring>
#include <utility>

namespace troupe {

namespace {

class host_stream_type final : public compute_stream {
public:
  [[nodiscard]] troupe::device where() const override { return {}; }

  [[nodiscard]] expected<tensor> to_device(const tensor& value) override { return value; }

  [[nodiscard]] expected<tensor> to_host(const tensor& value) override { return value; }

  [[nodiscard]] expected<void> copy_to_device(const tensor& value, tensor there) override {
    return copy_to_host(value, std::move(there));
  }

  [[nodiscard]] expected<void> copy_to_host(const tensor& value, tensor there) override {
    auto from = value.contiguous();
    if (from.bytes() > 0) std::memcpy(there.mutable_data(), from.data(), from.bytes());
    return {};
  }

  [[nodiscard]] expected<tensor> make(dtype type, const shape& extents) override {
    return tensor{type, extents};
  }

  [[nodiscard]] expected<tensor> sum(std::span<const tensor> values) override {
    tensor result{values.front().type(), values.front().extents()};
    add_up(values, result);
    return result;
  }
};

} // namespace

void add_up(std::span<const tensor> values, tensor& sum) {
  std::vector<elements> sources;
  for (const auto& value : values)
    sources.emplace_back(value);
  sum_in_order(sources, mutable_elements{sum});
}

namespace {

bool is_same_memory(const tensor& a, const tensor& b) {
  return a.data() == b.data() && a.type() == b.type() && a.extents() == b.extents()
         && a.strides() == b.strides();
}

} // namespace

// Memory that is held here cannot have been given to somebody else meanwhile, so its address tells
// a value.
expected<std::vector<tensor>> compute_stream::resident(std::span<const tensor> values) {
  residents_.resize(values.size());
  std::vector<tensor> there;
  for (size_t i = 0; i < values.size(); ++i) {
    auto& kept = residents_[i];
    if (kept.there.data() != nullptr && kept.there.type() == values[i].type()
        && kept.there.extents() == values[i].extents()) {
      if (!is_same_memory(kept.host, values[i])) {
        if (auto copied = copy_to_device(values[i], kept.there); !copied)
          return tl::unexpected<error>(copied.error());
        kept.host = values[i];
      }
    } else {
      auto copied = to_device(values[i]);
      if (!copied) return tl::unexpected<error>(copied.error());
      if (copied->data() == values[i].data()) { // at home: its owner must not find it shared
        kept = {};
        there.push_back(values[i]);
        continue;
      }
      kept = {values[i], std::move(*copied)};
    }
    there.push_back(kept.there);
  }
  return there;
}

// Stateless but for `resident`, which finds all values at home: so each thread has its own.
compute_stream& host_stream() {
  thread_local host_stream_type stream;
  return stream;
}

} // namespace troupe
