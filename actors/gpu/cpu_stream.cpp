// SPDX-License-Identifier: Apache-2.0
// The stream of a part of the CPU: its work, and the queue that keeps it in order.
#include "actors/gpu/cpu_stream.hpp"

#include "kernels/updates/update_pass.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <fmt/format.h>
#include <future>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace troupe {

namespace {

// The processor's kernels look only at what is said to lie in the host's memory, which this is.
tensor as_of_host(const tensor& value) {
  return tensor::wrap_read_only(value.data(), value.type(), value.extents(), value.owner());
}

std::vector<gradient> as_of_host(std::span<const gradient> gradients) {
  std::vector<gradient> all{gradients.begin(), gradients.end()};
  for (auto& gradient : all)
    if (auto* dense = std::get_if<tensor>(&gradient))
      *dense = as_of_host(*dense);
    else if (auto* rows = std::get_if<indexed_slices>(&gradient))
      rows->values = as_of_host(rows->values);
  return all;
}

// An array that is said to lie elsewhere: the host's memory is what this device has.
tensor seen_at(troupe::device where, tensor array, std::shared_ptr<const void> owner) {
  return tensor::wrap_on(where, array.mutable_data(), array.type(), array.extents(),
                         std::move(owner));
}

// Copies a row-major value into memory of its size.
void copy_elements(const tensor& from, tensor& to) {
  if (from.bytes() > 0) std::memcpy(to.mutable_data(), from.data(), from.bytes());
}

} // namespace

expected<std::shared_ptr<std::byte>> cpu_device_memory::allocate(size_t bytes) {
  if (pool.bytes_in_use() + bytes > bytes_max)
    return fail(errc::resource, fmt::format("{} has no room for {} bytes: {} of {} are in use",
                                            device, bytes, pool.bytes_in_use(), bytes_max));
  return pool.allocate(bytes);
}

/// Thread: any.
class cpu_mark {
public:
  /// The stream has come to the mark.
  void pass() {
    std::vector<std::function<void()>> actions;
    {
      std::lock_guard guard{mutex_};
      has_passed_ = true;
      actions.swap(waiting_);
    }
    for (const auto& action : actions)
      action();
  }

  /// Has `action` called when the stream has come there; now, if it has already.
  void when_passed(std::function<void()> action) {
    {
      std::lock_guard guard{mutex_};
      if (!has_passed_) return waiting_.push_back(std::move(action));
    }
    action();
  }

  [[nodiscard]] bool has_passed() {
    std::lock_guard guard{mutex_};
    return has_passed_;
  }

private:
  std::mutex mutex_;
  bool has_passed_ = false;
  std::vector<std::function<void()>> waiting_;
};

/// Work that a stream was asked for and has not done. One thread at a time does it, without the
/// lock.
class cpu_stream::queue : public std::enable_shared_from_this<queue> {
public:
  using holding_work = std::function<void(std::function<void()> let_go)>;

  void add(holding_work work) {
    {
      std::lock_guard guard{mutex_};
      waiting_.push_back(std::move(work));
    }
    go_on();
  }

private:
  void go_on() {
    std::unique_lock lock{mutex_};
    if (is_busy_) return; // the thread that is at it does this, too
    is_busy_ = true;
    while (!is_held_ && !waiting_.empty()) {
      auto work = std::move(waiting_.front());
      waiting_.pop_front();
      is_held_ = true;
      lock.unlock();
      work([self = shared_from_this()] { self->let_go(); });
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
  std::deque<holding_work> waiting_;
  bool is_busy_ = false;
  bool is_held_ = false;
};

cpu_stream::cpu_stream(troupe::device where, std::shared_ptr<cpu_device_memory> memory)
  : where_(where), memory_(std::move(memory)), queue_(std::make_shared<queue>()) {}

void cpu_stream::ask(std::function<void()> work) {
  queue_->add([work = std::move(work)](const std::function<void()>& let_go) {
    work();
    let_go();
  });
}

void cpu_stream::hold(std::function<void(std::function<void()> let_go)> work) {
  queue_->add(std::move(work));
}

void cpu_stream::publish() {
  auto mark = std::make_shared<cpu_mark>();
  {
    std::lock_guard guard{memory_->marks_mutex};
    memory_->marks.push_back(mark);
  }
  ask([mark] { mark->pass(); });
}

void cpu_stream::catch_up() {
  std::vector<std::shared_ptr<cpu_mark>> ahead;
  {
    std::lock_guard guard{memory_->marks_mutex};
    std::erase_if(memory_->marks, [](const auto& mark) { return mark->has_passed(); });
    ahead = memory_->marks;
  }
  for (const auto& mark : ahead)
    hold([mark](std::function<void()> let_go) { mark->when_passed(std::move(let_go)); });
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
  if (value.device().kind == device_kind::cpu) memory_->bytes_from_host += value.bytes();
  ask([from = value.contiguous(), to = std::move(there)]() mutable { copy_elements(from, to); });
  return {};
}

expected<tensor> cpu_stream::to_host(const tensor& value) {
  if (plays_gpu() && value.device() != where_) return value;
  tensor here{value.type(), value.extents()};
  return copy_to_host(value, here).map([&] { return here; });
}

expected<void> cpu_stream::copy_to_host(const tensor& value, tensor there) {
  memory_->bytes_to_host += value.bytes();
  ask([value, there = std::move(there)]() mutable { copy_elements(value.contiguous(), there); });
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

// Copies the lists in the host's memory: the caller's may be gone when the work is done.
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

expected<void> cpu_stream::prepare(variable_state& variable, const update_plan& plan) {
  if (auto idle = wait(); !idle) return idle;
  auto prepared = variable;
  for (auto* array : arrays_of(prepared))
    *array = seen_at({}, *array, array->owner());
  troupe::prepare(cpu::context{}, prepared, plan);
  for (auto* array : arrays_of(prepared)) {
    if (lies_here(*array)) {
      *array = seen_at(where_, *array, array->owner());
      continue;
    }
    auto there = make(array->type(), array->extents()); // it was made in the host's memory
    if (!there) return tl::unexpected<error>(there.error());
    if (auto copied = copy_to_device(*array, *there); !copied) return copied;
    *array = std::move(*there);
  }
  variable = std::move(prepared);
  return {};
}

// Each array has a holder of its own when it comes to the update, so that the kernels write where
// it lies. An exception of a program's rule is thrown here, unless something holds the stream.
expected<void> cpu_stream::update(variable_state& variable, const update_plan& plan,
                                  const gradient_mean& mean) {
  for (auto* array : arrays_of(variable))
    if (auto unshared = unshare(*array); !unshared) return unshared;
  auto work = std::make_shared<std::packaged_task<void()>>(
    [state = variable, plan, divisor = mean.divisor, scale = mean.scale,
     gradients = as_of_host(mean.gradients)]() mutable {
      for (auto* array : arrays_of(state))
        *array = seen_at({}, *array, std::make_shared<tensor>(*array));
      update_variable(cpu::context{}, state, plan, {gradients, divisor, scale});
    });
  auto done = work->get_future();
  ask([work] { (*work)(); });
  if (done.wait_for(std::chrono::seconds{0}) == std::future_status::ready) done.get();
  ++variable.version;
  return {};
}

expected<std::vector<double>> cpu_stream::squared_norms(std::span<const measured_mean> means) {
  if (auto idle = wait(); !idle) return tl::unexpected<error>(idle.error());
  std::vector<double> norms;
  for (const auto& [variable, mean] : means) {
    auto gradients = as_of_host(mean.gradients);
    variable_state state;
    state.value = as_of_host(variable.value);
    const measured_mean here{state, {gradients, mean.divisor, mean.scale}};
    norms.push_back(troupe::squared_norms(cpu::context{}, {&here, 1}).front());
  }
  return norms;
}

expected<void> cpu_stream::wait() {
  auto done = std::make_shared<std::promise<void>>();
  auto over = done->get_future();
  ask([done] { done->set_value(); });
  over.wait();
  return {};
}

expected<void> cpu_stream::unshare(tensor& values) {
  if (values.is_unique()) return {};
  auto own = make(values.type(), values.extents());
  if (!own) return tl::unexpected<error>(own.error());
  ask([from = values, to = *own]() mutable { copy_elements(from, to); });
  values = std::move(*own);
  return {};
}

bool cpu_stream::lies_here(const tensor& value) {
  std::erase_if(blocks_, [](const auto& block) { return block.expired(); });
  return std::ranges::any_of(blocks_,
                             [&](const auto& block) { return block.lock() == value.owner(); });
}

} // namespace troupe
