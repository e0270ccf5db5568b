// SPDX-License-Identifier: Apache-2.0
// The functions that all streams share, and the stream of the host.
#include "actors/world/compute_device.hpp"

#include "kernels/math/cast.hpp"
#include "kernels/math/collective_sum.hpp"
#include "kernels/math/reduce.hpp"
#include "kernels/tensor/elements.hpp"
#include "kernels/updates/update_pass.hpp"

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

  [[nodiscard]] expected<tensor> sum(std::span<const tensor> values, double divisor) override {
    tensor result{values.front().type(), values.front().extents()};
    add_up(values, result, divisor);
    return result;
  }

  [[nodiscard]] expected<tensor> gather(std::span<const tensor> values, size_t axis) override {
    tensor result{values.front().type(), gathered_extents(values, axis)};
    lay_out(values, axis, result);
    return result;
  }

  [[nodiscard]] expected<tensor> combine(const sparse_sum& rows, dtype type) override {
    tensor result{type, combined_extents(rows)};
    combine_rows(rows, result);
    return result;
  }

  [[nodiscard]] expected<void> prepare(variable_state& variable, const update_plan& plan) override {
    troupe::prepare(on_, variable, plan);
    return {};
  }

  [[nodiscard]] expected<void> update(variable_state& variable, const update_plan& plan,
                                      const gradient_mean& mean) override {
    update_variable(on_, variable, plan, mean);
    return {};
  }

  [[nodiscard]] expected<std::vector<double>>
  squared_norms(std::span<const measured_mean> means) override {
    return troupe::squared_norms(on_, means);
  }

  [[nodiscard]] expected<void> wait() override { return {}; }

private:
  static constexpr cpu::context on_{};
};

// Elements of a result, wherever its memory lies.
template <class T>
std::span<T> elements_of(tensor& result) {
  return {static_cast<T*>(result.mutable_data()), result.element_count()};
}

template <class T>
void divide_sum(std::span<const elements> sources, tensor& result, double divisor) {
  cpu::reduce<T>({}, {.sources = sources, .divisor = divisor}, elements_of<T>(result));
}

} // namespace

void add_up(std::span<const tensor> values, tensor& sum, double divisor) {
  if (sum.element_count() == 0) return;
  std::vector<elements> sources(values.begin(), values.end());
  if (divisor == 1) return sum_in_order(sources, mutable_elements{sum});
  if (sum.type() == dtype::f32) return divide_sum<float>(sources, sum, divisor);
  if (sum.type() == dtype::f64) return divide_sum<double>(sources, sum, divisor);
  tensor wide{dtype::f32, sum.extents()};
  divide_sum<float>(sources, wide, divisor);
  cpu::cast({}, elements{wide}, mutable_elements{sum});
}

shape gathered_extents(std::span<const tensor> values, size_t axis) {
  auto dims = values.front().extents().dims();
  for (const auto& other : values.subspan(1))
    dims[axis] += other.extents()[axis];
  return shape{dims};
}

void lay_out(std::span<const tensor> values, size_t axis, tensor& result) {
  size_t blocks = 1;
  for (size_t i = 0; i < axis; ++i)
    blocks *= static_cast<size_t>(result.extents()[i]);
  auto* to = static_cast<std::byte*>(result.mutable_data());
  for (size_t block = 0; block < blocks; ++block)
    for (const auto& part : values) {
      auto bytes = part.bytes() / blocks;
      if (bytes == 0) continue;
      std::memcpy(to, static_cast<const std::byte*>(part.data()) + block * bytes, bytes);
      to += bytes;
    }
}

shape combined_extents(const sparse_sum& rows) {
  return {static_cast<int64_t>(rows.order.distinct()), static_cast<int64_t>(rows.width)};
}

void combine_rows(const sparse_sum& rows, tensor& result) {
  if (result.element_count() == 0) return;
  if (result.type() == dtype::f32) return cpu::combine<float>({}, rows, elements_of<float>(result));
  cpu::combine<double>({}, rows, elements_of<double>(result));
}

namespace {

bool is_same_memory(const tensor& a, const tensor& b) {
  return a.data() == b.data() && a.type() == b.type() && a.extents() == b.extents()
         && a.strides() == b.strides();
}

} // namespace

expected<void> compute_stream::copy_there(std::span<const tensor> values,
                                          std::span<const tensor> there) {
  for (size_t i = 0; i < values.size(); ++i)
    if (auto copied = copy_to_device(values[i], there[i]); !copied) return copied;
  return {};
}

// Memory that is held here cannot have been given to another value meanwhile, so its address tells
// a value.
expected<std::vector<tensor>> compute_stream::resident(std::span<const tensor> values,
                                                       bool has_own_places) {
  residents_.resize(values.size());
  std::vector<tensor> there, at_home, places;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& value = values[i];
    auto& kept = residents_[i];
    auto has_place = kept.there.data() != nullptr && kept.there.type() == value.type()
                     && kept.there.extents() == value.extents()
                     && (!kept.is_at_home || kept.there.device() == value.device());
    if (!has_place) {
      auto copied = to_device(value);
      if (!copied) return tl::unexpected<error>(copied.error());
      auto is_at_home = copied->data() == value.data();
      if (is_at_home && !has_own_places) {
        kept = {};
        there.push_back(value);
        continue;
      }
      if (is_at_home) copied = make(value.type(), value.extents());
      if (!copied) return tl::unexpected<error>(copied.error());
      kept = {is_at_home ? tensor{} : value, std::move(*copied), is_at_home};
    }
    if (kept.is_at_home) { // its owner must not find it shared
      at_home.push_back(value);
      places.push_back(kept.there);
    } else if (!is_same_memory(kept.host, value)) {
      if (auto copied = copy_to_device(value, kept.there); !copied)
        return tl::unexpected<error>(copied.error());
      kept.host = value;
    }
    there.push_back(kept.there);
  }
  if (auto copied = copy_there(at_home, places); !copied)
    return tl::unexpected<error>(copied.error());
  return there;
}

// Stateless but for `resident`, which finds all values at home: so each thread has its own.
compute_stream& host_stream() {
  thread_local host_stream_type stream;
  return stream;
}

} // namespace troupe
