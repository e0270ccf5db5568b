// SPDX-License-Identifier: Apache-2.0
// Copies, sums, and the queue that keeps them in order.
#include "actors/gpu/cpu_stream.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <fmt/format.h>
#include <mutex>
#include <utility>

namespace troupe {

expected<std::shared_ptr<std::byte>> cpu_device_memory::allocate(size_t bytes) {
  if (pool.bytes_in_use() + bytes > bytes_max)
    return fail(errc::resource, fmt::format("{} has no room for {} bytes: {} of {} are in use",
                                            device, bytes, pool.bytes_in_use(), bytes_max));
  return pool.allocate(bytes);
}

/// What was asked of a stream and is not done. One thread at a time does it, without the lock.
class cpu_stream::queue : public std::enable_shared_from_this<queue> {
public:
  using holding = std::function<void(std::function<void()>)>;

  void add(holding what) {
    {
      std::lock_guard guard{mutex_};
      waiting_.push_back(std::move(what));
    }
    go_on();
  }

private:
  void go_on() {
    std::unique_lock lock{mutex_};
    if (is_busy_) return; // the thread that is at it does this, too
    is_busy_ = true;
    while (!is_held_ && !waiting_.empty()) {
      auto what = std::move(waiting_.front());
      waiting_.pop_front();
      is_held_ = true;
      lock.unlock();
      what([self = shared_from_this()] { self->let_go(); });
      lock.lock();
    }
    is_busy_ = false;
  }

  void let_go() {
    {
      std::lock_guard guard{mutex_};
      is_held_ = false;
    }
    go_on();
  }

  std::mutex mutex_;
  std::deque<holding> waiting_;
  bool is_busy_ = false;
  bool is_held_ = false;
};

cpu_stream::cpu_stream(troupe::device where, std::shared_ptr<cpu_device_memory> memory)
  : where_(where), memory_(std::move(memory)), queue_(std::make_shared<queue>()) {}

void cpu_stream::ask(std::function<void()> what) {
  queue_->add([what = std::move(what)](const std::function<void()>& let_go) {
    what();
    let_go();
  });
}

void cpu_stream::hold(std::function<void(std::function<void()> let_go)> what) {
  queue_->add(std::move(what));
}

expected<tensor> cpu_stream::make(dtype type, const shape& extents) {
  auto bytes = static_cast<size_t>(extents.element_count()) * element_bytes(type);
  return memory_->allocate(bytes).map([&](const std::shared_ptr<std::byte>& block) {
    blocks_.push_back(block);
    return plays_gpu() ? tensor::wrap_on(where_, block.get(), type, extents, block)
                       : tensor::wrap(block.get(), type, extents, block);
  });
}

expected<tensor> cpu_stream::to_device(const tensor& value) {
  if (plays_gpu() ? value.device() == where_ : lies_here(value)) return value;
  auto there = make(value.type(), value.extents());
  if (!there) return there;
  return copy_to_device(value, *there).map([&] { return *there; });
}

expected<void> cpu_stream::copy_to_device(const tensor& value, tensor there) {
  ++memory_->uploads;
  ask([from = value.contiguous(), to = std::move(there)]() mutable {
    if (from.bytes() > 0) std::memcpy(to.mutable_data(), from.data(), from.bytes());
  });
  return {};
}

expected<tensor> cpu_stream::to_host(const tensor& value) {
  if (plays_gpu() && value.device() != where_) return value;
  tensor here{value.type(), value.extents()};
  return copy_to_host(value, here).map([&] { return here; });
}

expected<void> cpu_stream::copy_to_host(const tensor& value, tensor there) {
  ask([value, there = std::move(there)]() mutable {
    auto from = value.contiguous();
    if (from.bytes() > 0) std::memcpy(there.mutable_data(), from.data(), from.bytes());
  });
  return {};
}

expected<tensor> cpu_stream::sum(std::span<const tensor> values, double divisor) {
  auto result = make(values.front().type(), values.front().extents());
  if (!result) return result;
  ask([values = std::vector(values.begin(), values.end()), to = *result, divisor]() mutable {
    add_up(values, to, divisor);
  });
  return result;
}

expected<tensor> cpu_stream::gather(std::span<const tensor> values, size_t axis) {
  auto result = make(values.front().type(), gathered_extents(values, axis));
  if (!result) return result;
  ask([values = std::vector(values.begin(), values.end()), to = *result, axis]() mutable {
    lay_out(values, axis, to);
  });
  return result;
}

// What lies in the host's memory is copied: the caller's may be gone when it comes to that.
expected<tensor> cpu_stream::combine(const sparse_sum& rows, dtype type) {
  auto result = make(type, combined_extents(rows));
  if (!result) return result;
  ask([copied = rows, to = *result, sources = std::vector(rows.sources.begin(), rows.sources.end()),
       entries = std::vector(rows.order.entries.begin(), rows.order.entries.end()),
       starts = std::vector(rows.order.starts.begin(), rows.order.starts.end())]() mutable {
    copied.sources = sources;
    copied.order = {entries, starts};
    combine_rows(copied, to);
  });
  return result;
}

bool cpu_stream::lies_here(const tensor& value) {
  std::erase_if(blocks_, [](const auto& block) { return block.expired(); });
  return std::ranges::any_of(blocks_,
                             [&](const auto& block) { return block.lock() == value.owner(); });
}

} // namespace troupe
