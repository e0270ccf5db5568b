// SPDX-License-Identifier: Apache-2.0
// Contexts, and copies of tensors between host and device.
#include "kernels/cuda/context.hpp"

#include "kernels/cuda/blas.cuh"
#include "kernels/cuda/check.cuh"
#include "kernels/cuda/memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <iterator>
#include <limits>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace troupe::cuda {

namespace {

/// Nothing that a step uses is given back between steps.
constexpr size_t everything = std::numeric_limits<size_t>::max();

/// cuBLAS wants 32 MiB on Hopper. With a workspace of ours its results do not depend on what else
/// the process computes, and it can be captured in a graph.
constexpr size_t blas_workspace_bytes = size_t{32} << 20;

/// Pinned memory that the device copies from, and the event after its copy.
struct staged_copy {
  event read;
  std::shared_ptr<std::byte> block;
};

/// Memory that queued work uses, and the event after that work; without one, the stream's end.
struct memory_in_use {
  std::optional<event> done;
  buffer_pool memory;
};

} // namespace

struct context::state {
  explicit state(cuda::stream queue)
    : stream(std::move(queue)), memory(everything, device_memory(stream.device_index())),
      host_memory(everything, pinned_memory(stream.device_index())) {}

  state(const state&) = delete;
  state& operator=(const state&) = delete;

  ~state() {
    if (blas != nullptr && detail::use(stream.device_index()))
      static_cast<void>(cuda::blas()->destroy(blas));
  }

  /// Whether nothing uses the memory: queued work does, and a lost device may at any time.
  [[nodiscard]] bool is_at_rest() const {
    if (!first_failure && first_failure.error().code == errc::unavailable) return false;
    return stream.is_idle().value_or(false);
  }

  /// Pinned memory with an event of its own; nothing, if one of them cannot be had. Each copy frees
  /// what the oldest one took, so that a step like the last takes no more.
  [[nodiscard]] std::optional<staged_copy> stage(size_t bytes) {
    std::optional<event> mark;
    if (!staged.empty() && staged.front().read.has_passed().value_or(false)) {
      mark = std::move(staged.front().read);
      staged.pop_front();
    } else if (auto made = event::create(stream.device_index())) {
      mark = std::move(*made);
    } else {
      return std::nullopt;
    }
    try {
      return staged_copy{std::move(*mark), host_memory.allocate(bytes)};
    } catch (const std::bad_alloc&) {
      return std::nullopt;
    }
  }

  /// Leaves no handle behind that is not ready.
  expected<void> make_blas() {
    const auto& library = cuda::blas();
    if (!library) return tl::unexpected(library.error());
    auto made = [&]() -> expected<void> {
      blas_workspace = memory.allocate(blas_workspace_bytes);
      TROUPE_TRY_CUDA(library->create(&blas));
      TROUPE_TRY_CUDA(library->set_stream(blas, stream.handle()));
      TROUPE_TRY_CUDA(library->set_workspace(blas, blas_workspace.get(), blas_workspace_bytes));
      return {};
    };
    auto ready = made();
    if (!ready && blas != nullptr)
      static_cast<void>(library->destroy(std::exchange(blas, nullptr)));
    return ready;
  }

  cuda::stream stream;
  buffer_pool memory;
  buffer_pool host_memory;
  std::optional<buffer_pool> other_memory; ///< In place of `memory`, while a graph is written.
  std::deque<staged_copy> staged;          ///< In the order of the stream.
  std::vector<memory_in_use> kept;         ///< After graphs that are gone.
  std::optional<event> published;          ///< The end of published work; recorded anew each time.
  std::atomic<bool> has_published = false; ///< Other contexts may wait for that event.
  uint64_t caught_up_with = 0;             ///< Publications, as the register counts them.
  expected<void> first_failure;
  cublasHandle_t blas = nullptr;
  std::shared_ptr<std::byte> blas_workspace;
};

/// All contexts of the process: one that finds no memory has all of its device free what they keep.
/// A context without a handle stays until its stream is done. The register looks for such contexts
/// whenever one is made, ends or looks for memory; nothing waits for them.
class context::register_of_all {
public:
  std::shared_ptr<state> add(cuda::stream stream) {
    free_rested();
    std::shared_ptr<state> made{new state{std::move(stream)},
                                [](state* ended) { get().retire(ended); }};
    std::lock_guard lock{mutex_};
    std::erase_if(all_, [](const auto& one) { return one.expired(); });
    all_.push_back(made);
    return made;
  }

  void trim(int device_index) {
    free_rested();
    for (const auto& context : all_on(device_index))
      context->memory.trim();
  }

  /// The device's contexts that have a handle. None ends under the lock, because its end takes it.
  std::vector<std::shared_ptr<state>> all_on(int device_index) {
    std::vector<std::shared_ptr<state>> alive;
    {
      std::lock_guard lock{mutex_};
      for (const auto& context : all_)
        alive.push_back(context.lock());
    }
    std::erase_if(alive, [device_index](const auto& one) {
      return one == nullptr || one->stream.device_index() != device_index;
    });
    return alive;
  }

  static register_of_all& get() {
    static auto& all = *new register_of_all; // contexts in static objects may outlive it otherwise
    return all;
  }

  std::atomic<uint64_t> publications{0}; ///< On all devices, so far.

private:
  void retire(state* ended) {
    std::unique_ptr<state> owned{ended};
    if (!owned->is_at_rest()) {
      std::lock_guard lock{mutex_};
      retired_.push_back(std::move(owned));
    }
    owned.reset();
    free_rested();
  }

  /// Destroys them without the lock: CUDA may wait for the device when it takes memory back.
  void free_rested() {
    std::vector<std::unique_ptr<state>> rested;
    std::lock_guard lock{mutex_};
    auto first = std::partition(retired_.begin(), retired_.end(),
                                [](const auto& one) { return !one->is_at_rest(); });
    rested.assign(std::move_iterator{first}, std::move_iterator{retired_.end()});
    retired_.erase(first, retired_.end());
  }

  std::mutex mutex_;
  std::vector<std::weak_ptr<state>> all_;
  std::vector<std::unique_ptr<state>> retired_;
};

expected<context> context::create(int device_index) {
  auto stream = cuda::stream::create(device_index);
  if (!stream) return tl::unexpected(std::move(stream).error());
  return context{register_of_all::get().add(std::move(*stream))};
}

troupe::device context::device() const {
  return {device_kind::cuda, state_->stream.device_index()};
}

const cuda::stream& context::stream() const {
  return state_->stream;
}

buffer_pool& context::memory() const {
  return state_->memory;
}

buffer_pool& context::host_memory() const {
  return state_->host_memory;
}

tensor context::make(dtype type, shape extents) const {
  auto block = workspace(static_cast<size_t>(extents.element_count()) * element_bytes(type));
  if (block == nullptr) return tensor::wrap_on(device(), nullptr, type, shape{0}, nullptr);
  auto* data = block.get();
  return tensor::wrap_on(device(), data, type, std::move(extents), std::move(block));
}

std::shared_ptr<std::byte> context::workspace(size_t bytes) const {
  if (!status()) return nullptr;
  auto& pool = state_->other_memory ? *state_->other_memory : state_->memory;
  try {
    return pool.allocate(bytes);
  } catch (const std::bad_alloc&) {
    register_of_all::get().trim(device().index);
  }
  try {
    return pool.allocate(bytes);
  } catch (const std::bad_alloc&) {
    note(no_memory(device().index, "gpu:" + std::to_string(device().index) + " has no "
                                     + std::to_string(bytes)
                                     + " bytes more: " + std::to_string(pool.bytes_in_use())
                                     + " are in use here; use smaller batches or another device"));
    return nullptr;
  }
}

std::shared_ptr<std::byte> context::host_workspace(size_t bytes) const {
  if (!status()) return nullptr;
  try {
    return state_->host_memory.allocate(bytes);
  } catch (const std::bad_alloc&) {
    note(no_memory(device().index,
                   "no " + std::to_string(bytes) + " bytes of pinned memory of the host are left"));
    return nullptr;
  }
}

// Nothing keeps staged blocks until a graph is launched: a graph copies from where the source lies.
void context::copy_from_host(const void* from, void* to, size_t bytes) const {
  if (!status() || bytes == 0) return;
  const auto& stream = state_->stream;
  auto goes_directly = state_->other_memory || is_pinned(device().index, from);
  auto staged = goes_directly ? std::nullopt : state_->stage(bytes);
  if (!staged) {
    note(stream.copy(from, to, bytes));
    return;
  }
  std::memcpy(staged->block.get(), from, bytes);
  note(stream.copy(staged->block.get(), to, bytes));
  note(stream.record(staged->read));
  state_->staged.push_back(std::move(*staged));
}

std::optional<buffer_pool> context::take_memory_from(std::optional<buffer_pool> pool) const {
  return std::exchange(state_->other_memory, std::move(pool));
}

void context::keep_until_done(buffer_pool memory) const {
  auto& kept = state_->kept;
  std::erase_if(kept, [](const memory_in_use& one) {
    return one.done && one.done->has_passed().value_or(false);
  });
  auto& added = kept.emplace_back(memory_in_use{std::nullopt, std::move(memory)});
  auto mark = event::create(device().index);
  if (mark && state_->stream.record(*mark)) added.done = std::move(*mark);
}

bool context::note(const expected<void>& done) const {
  if (!done && state_->first_failure) state_->first_failure = done;
  return state_->first_failure.has_value();
}

void context::forgive() const {
  auto& failed = state_->first_failure;
  if (!failed && failed.error().code != errc::unavailable) failed = {};
}

expected<void> context::status() const {
  return state_->first_failure;
}

void context::publish() const {
  auto& mark = state_->published;
  if (!mark) {
    auto made = event::create(device().index);
    if (!made) return static_cast<void>(note(tl::unexpected(made.error())));
    mark = std::move(*made);
  }
  note(state_->stream.record(*mark));
  state_->has_published = true;
  ++register_of_all::get().publications;
}

void context::catch_up() const {
  auto& contexts = register_of_all::get();
  auto published = contexts.publications.load();
  if (std::exchange(state_->caught_up_with, published) == published) return;
  for (const auto& other : contexts.all_on(device().index))
    if (other != state_ && other->has_published) note(state_->stream.wait_for(*other->published));
}

expected<void> context::synchronise() const {
  note(state_->stream.synchronise());
  return status();
}

cublasContext* context::blas() const {
  if (!status()) return nullptr;
  if (!note(detail::use(device().index))) return nullptr; // cuBLAS works on the thread's device
  if (state_->blas == nullptr && !try_blas()) {
    register_of_all::get().trim(
      device().index); // cuBLAS tells in several ways that memory is short
    note(try_blas());
  }
  return status() ? state_->blas : nullptr;
}

expected<void> context::try_blas() const {
  try {
    return state_->make_blas();
  } catch (const std::bad_alloc&) {
    return no_memory(device().index,
                     "gpu:" + std::to_string(device().index) + " has no memory for cuBLAS");
  }
}

expected<tensor> to_device(const context& on, const tensor& from) {
  auto source = from.contiguous();
  auto result = on.make(from.type(), from.extents());
  on.copy_from_host(source.data(), result.mutable_data(), source.bytes());
  if (auto so_far = on.status(); !so_far) return tl::unexpected(std::move(so_far).error());
  return result;
}

expected<tensor> to_host(const context& on, const tensor& from) {
  TROUPE_ASSERT(from.is_contiguous(), to_string(from.extents()));
  auto block = on.host_workspace(from.bytes());
  if (block == nullptr) return tl::unexpected(on.status().error());
  on.note(on.stream().copy(from.data(), block.get(), from.bytes()));
  if (auto copied = on.synchronise(); !copied) return tl::unexpected(std::move(copied).error());
  auto* data = block.get();
  return tensor::wrap(data, from.type(), from.extents(), std::move(block));
}

void fetch(const context& on, const double* numbers, std::span<double> into) {
  std::fill(into.begin(), into.end(), std::numeric_limits<double>::quiet_NaN());
  auto place = on.host_workspace(into.size_bytes()); // none after a failure
  if (place == nullptr) return;
  on.note(on.stream().copy(numbers, place.get(), into.size_bytes()));
  if (on.synchronise()) std::memcpy(into.data(), place.get(), into.size_bytes());
}

double fetch(const context& on, const double* number) {
  double result = 0;
  fetch(on, number, {&result, 1});
  return result;
}

} // namespace troupe::cuda
