// SPDX-License-Identifier: Apache-2.0
// A GPU as a device: its streams are contexts of the kernels, which tell when it is lost.
#include "actors/gpu/cuda_device.hpp"

#include "actors/gpu/step_graphs.hpp"
#include "kernels/cuda/array_copies.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/cuda/row_copy.hpp"
#include "kernels/math/cast.hpp"
#include "kernels/math/reduce.hpp"
#include "kernels/updates/update_batch.hpp"
#include "kernels/updates/update_pass.hpp"
#include "messages/errors/assert.hpp"

#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

class gpu_stream final : public cuda_stream {
public:
  [[nodiscard]] static expected<std::unique_ptr<gpu_stream>> create(int device_index) {
    auto context = cuda::context::create(device_index);
    if (!context) return tl::unexpected<error>(context.error());
    auto bell = cuda::stream::create(device_index);
    if (!bell) return tl::unexpected<error>(bell.error());
    auto end = cuda::event::create(device_index);
    if (!end) return tl::unexpected<error>(end.error());
    return std::unique_ptr<gpu_stream>{
      new gpu_stream{std::move(*context), std::move(*bell), std::move(*end)}};
  }

  [[nodiscard]] troupe::device where() const override { return context_.device(); }

  [[nodiscard]] const cuda::context& context() const override { return context_; }

  [[nodiscard]] expected<tensor> to_device(const tensor& value) override {
    if (value.device() == where()) return value;
    auto there = make(value.type(), value.extents());
    if (!there) return there;
    return copy_to_device(value, *there).map([&] { return *there; });
  }

  [[nodiscard]] expected<void> copy_there(std::span<const tensor> values,
                                          std::span<const tensor> there) override {
    std::vector<cuda::array_copy> copies;
    for (size_t i = 0; i < values.size(); ++i) {
      tensor to = there[i];
      copies.push_back({values[i].data(), to.mutable_data(), to.bytes()});
    }
    cuda::copy_arrays(context_, copies);
    return context_.status();
  }

  // Unlike the kernels' own, this one does not wait.
  [[nodiscard]] expected<tensor> to_host(const tensor& value) override {
    if (value.device() != where()) return value;
    TROUPE_ASSERT(value.is_contiguous(), to_string(value.extents()));
    if (auto so_far = context_.status(); !so_far) return tl::unexpected<error>(so_far.error());
    auto here = make_on_host(value.type(), value.extents());
    if (!here) return here;
    return copy_to_host(value, *here).map([&] { return *here; });
  }

  [[nodiscard]] expected<tensor> make_on_host(dtype type, const shape& extents) override {
    auto block = pinned(static_cast<size_t>(extents.element_count()) * element_bytes(type));
    if (!block) return tl::unexpected<error>(block.error());
    return tensor::wrap(block->get(), type, extents, *block);
  }

  [[nodiscard]] expected<void> copy_to_host(const tensor& value, tensor there) override {
    context_.note(context_.stream().copy(value.data(), there.mutable_data(), value.bytes()));
    return context_.status();
  }

  [[nodiscard]] expected<tensor> make(dtype type, const shape& extents) override {
    return as_asked(context_.make(type, extents));
  }

  [[nodiscard]] expected<tensor> sum(std::span<const tensor> values, double divisor) override {
    auto type = values.front().type();
    if (!adds_on_devices(type))
      return fail(errc::unimplemented,
                  fmt::format("GPUs here add up floating types, not {}", to_string(type)));
    auto is_narrow = element_bytes(type) < element_bytes(dtype::f32);
    auto result = make(is_narrow ? dtype::f32 : type, values.front().extents());
    if (!result) return result;
    if (result->type() == dtype::f32)
      add_up<float>(values, divisor, *result);
    else
      add_up<double>(values, divisor, *result);
    return as_asked(is_narrow ? rounded(*result, type) : *result);
  }

  // One copy for each value, whatever the number of its rows.
  [[nodiscard]] expected<tensor> gather(std::span<const tensor> values, size_t axis) override {
    auto result = make(values.front().type(), gathered_extents(values, axis));
    if (!result || result->element_count() == 0) return result;
    size_t rows = 1;
    for (size_t i = 0; i < axis; ++i)
      rows *= static_cast<size_t>(result->extents()[i]);
    auto* to = static_cast<std::byte*>(result->mutable_data());
    for (const auto& value : values) {
      auto width = value.bytes() / rows;
      context_.note(cuda::copy_rows(context_.stream(), {value.data(), width},
                                    {to, result->bytes() / rows}, width, rows));
      to += width;
    }
    return as_asked(*result);
  }

  [[nodiscard]] expected<tensor> combine(const sparse_sum& rows, dtype type) override {
    auto result = make(type, combined_extents(rows));
    if (!result || result->element_count() == 0) return result;
    if (type == dtype::f32)
      cuda::combine<float>(context_, rows, result->mutable_values<float>(where()));
    else
      cuda::combine<double>(context_, rows, result->mutable_values<double>(where()));
    return as_asked(*result);
  }

  [[nodiscard]] expected<void> copy_to_device(const tensor& value, tensor there) override {
    auto from = value.contiguous();
    context_.note(context_.stream().copy(staged(from), there.mutable_data(), from.bytes()));
    return context_.status();
  }

  [[nodiscard]] expected<void> prepare(variable_state& variable, const update_plan& plan) override {
    if (std::holds_alternative<rules::custom>(plan.rule))
      return fail(errc::unimplemented,
                  fmt::format("optimizer '{}' is a program's own, and has no code for GPUs; leave "
                              "its variables in the host's memory",
                              name_of(plan.rule)));
    troupe::prepare(context_, variable, plan);
    return context_.status();
  }

  [[nodiscard]] expected<void> update(variable_state& variable, const update_plan& plan,
                                      const gradient_mean& mean) override {
    if (together_ != nullptr)
      together_->add(variable, plan, mean);
    else
      update_variable(context_, variable, plan, mean);
    return context_.status();
  }

  [[nodiscard]] expected<void>
  update_together(const std::function<expected<void>()>& ask) override {
    cuda::update_batch together{context_};
    together_ = &together;
    expected<void> result;
    std::exception_ptr thrown;
    try {
      result = ask();
    } catch (...) {
      thrown = std::current_exception();
    }
    together_ = nullptr;
    together.launch(); // what came before a failure, too
    if (thrown) std::rethrow_exception(thrown);
    return result ? context_.status() : result;
  }

  [[nodiscard]] expected<std::vector<double>>
  squared_norms(std::span<const measured_mean> means) override {
    auto norms = troupe::squared_norms(context_, means);
    if (auto so_far = context_.status(); !so_far) return tl::unexpected<error>(so_far.error());
    return norms;
  }

  [[nodiscard]] expected<void> wait() override { return context_.synchronise(); }

  [[nodiscard]] expected<std::vector<tensor>> repeat(const repeated_work& work,
                                                     const std::stop_token& stop) override {
    auto residents = resident(work.residents, true);
    if (!residents) return tl::unexpected<error>(residents.error());
    return graphs_.run(work, *this, context_, *residents, stop);
  }

  // Has `done` called when all is done that was asked for so far. The stream itself does not wait
  // for that call, as it would if it made it. Staged memory is free before, since `done` may tell a
  // caller that stages more.
  [[nodiscard]] expected<void> notify(std::function<void()> done) {
    if (auto so_far = context_.status(); !so_far) return so_far;
    if (auto recorded = context_.stream().record(end_); !recorded) return recorded;
    if (auto waits = bell_.wait_for(end_); !waits) return waits;
    return bell_.call([done = std::move(done), staged = std::exchange(staged_, {})]() mutable {
      staged.clear();
      done();
    });
  }

  // A failure stays in its context; one that is not the device's end needs a new one, which goes
  // on after what the old one was asked for, and has published what that has.
  [[nodiscard]] expected<void> renew() {
    forget_residents();
    graphs_.clear();
    auto fresh = cuda::context::create(where().index);
    if (!fresh) return tl::unexpected<error>(fresh.error());
    context_.publish();
    fresh->catch_up();
    fresh->publish();
    context_ = std::move(*fresh);
    staged_.clear(); // the old context keeps these blocks until it has come to rest
    return {};
  }

private:
  gpu_stream(cuda::context on, cuda::stream bell, cuda::event end)
    : context_(std::move(on)), bell_(std::move(bell)), end_(std::move(end)) {}

  [[nodiscard]] expected<std::shared_ptr<std::byte>> pinned(size_t bytes) const {
    try {
      return context_.host_memory().allocate(bytes);
    } catch (const std::bad_alloc&) {
      return cuda::no_memory(
        where().index, fmt::format("no {} bytes of pinned memory of the host are left", bytes));
    }
  }

  // Where a value of the host is copied from. CUDA keeps the host waiting while it reads memory
  // that is not pinned, and nothing overlaps such a copy: so it goes by pinned memory, while there
  // is some.
  [[nodiscard]] const void* staged(const tensor& from) {
    if (from.device().kind != device_kind::cpu || from.bytes() == 0
        || cuda::is_pinned(where().index, from.data()))
      return from.data();
    auto block = pinned(from.bytes());
    if (!block) return from.data();
    std::memcpy(block->get(), from.data(), from.bytes());
    return staged_.emplace_back(std::move(*block)).get();
  }

  template <class T>
  void add_up(std::span<const tensor> values, double divisor, tensor& result) {
    if (result.element_count() == 0) return;
    std::vector<elements> sources{values.begin(), values.end()};
    cuda::reduce<T>(context_, {.sources = sources, .divisor = divisor},
                    result.mutable_values<T>(where()));
  }

  [[nodiscard]] tensor rounded(const tensor& wide, dtype type) {
    auto result = context_.make(type, wide.extents());
    if (context_.status() && wide.element_count() > 0)
      cuda::cast(context_, elements{wide}, mutable_elements{result});
    return result;
  }

  [[nodiscard]] expected<tensor> as_asked(tensor result) const {
    if (auto so_far = context_.status(); !so_far) return tl::unexpected<error>(so_far.error());
    return result;
  }

  cuda::context context_;
  cuda::update_batch* together_ = nullptr; ///< While it collects updates.
  step_graphs graphs_;
  std::vector<std::shared_ptr<std::byte>> staged_; ///< Pinned, and perhaps not copied yet.
  cuda::stream bell_; ///< Makes the calls of `notify`, and nothing else.
  cuda::event end_;   ///< End of the work asked for, when that is wanted.
};

class gpu_device final : public compute_device {
public:
  gpu_device(std::string name, cuda::stream probe, std::vector<std::unique_ptr<gpu_stream>> streams)
    : name_(std::move(name)), probe_(std::move(probe)), streams_(std::move(streams)) {}

  [[nodiscard]] std::string name() const override { return name_; }

  [[nodiscard]] troupe::device where() const override { return streams_.front()->where(); }

  [[nodiscard]] uint32_t stream_count() const override {
    return static_cast<uint32_t>(streams_.size());
  }

  [[nodiscard]] compute_stream& stream(uint32_t index) override {
    TROUPE_ASSERT(index < streams_.size(), index, streams_.size());
    streams_[index]->context().catch_up();
    return *streams_[index];
  }

  void publish(uint32_t stream) override { streams_[stream]->context().publish(); }

  [[nodiscard]] bool is_well(uint32_t stream) override {
    return streams_[stream]->context().status().has_value();
  }

  [[nodiscard]] expected<void> notify(uint32_t index, std::function<void()> done) override {
    auto& stream = *streams_[index];
    auto notified = stream.notify(std::move(done));
    if (notified) return notified;
    if (notified.error().code == errc::unavailable) {
      lose(notified.error());
    } else if (auto renewed = stream.renew(); !renewed) {
      lose(renewed.error());
    }
    return notified;
  }

  [[nodiscard]] std::optional<error> loss() override {
    std::lock_guard guard{mutex_};
    if (loss_) return loss_;
    // A lost device says so at any question. Nothing else can be wrong with a stream of which
    // nothing is asked, whatever code a driver has for it.
    if (auto idle = probe_.is_idle(); !idle) loss_ = error{errc::unavailable, idle.error().message};
    return loss_;
  }

  void lose(error reason) {
    std::lock_guard guard{mutex_};
    if (!loss_) loss_ = std::move(reason);
  }

private:
  std::string name_;
  cuda::stream probe_; ///< Nothing is asked of it; it tells how the device is.
  std::vector<std::unique_ptr<gpu_stream>> streams_;
  std::mutex mutex_;
  std::optional<error> loss_;
};

} // namespace

expected<std::shared_ptr<compute_device>> open_cuda_device(int index, uint32_t streams) {
  TROUPE_ASSERT(streams > 0);
  auto name = cuda::device_name(index);
  if (!name) return tl::unexpected<error>(name.error());
  if (auto joined = cuda::join_peers(index); !joined) return tl::unexpected<error>(joined.error());
  auto probe = cuda::stream::create(index);
  if (!probe) return tl::unexpected<error>(probe.error());
  std::vector<std::unique_ptr<gpu_stream>> opened;
  for (uint32_t i = 0; i < streams; ++i) {
    auto stream = gpu_stream::create(index);
    if (!stream) return tl::unexpected<error>(stream.error());
    opened.push_back(std::move(*stream));
  }
  return std::make_shared<gpu_device>(fmt::format("gpu:{} ({})", index, *name), std::move(*probe),
                                      std::move(opened));
}

} // namespace troupe
