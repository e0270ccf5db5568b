// SPDX-License-Identifier: Apache-2.0
// Collectives between GPUs by NCCL: the one file that knows it.
#include "actors/gpu/nccl_collectives.hpp"

#include "actors/gpu/cuda_device.hpp"
#include "kernels/cuda/check.cuh"
#include "kernels/cuda/loaded_library.hpp"

#include <nccl.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <fmt/format.h>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace troupe {

namespace {

/// The functions that we call.
struct nccl_functions {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) init = nullptr;
  decltype(&ncclCommGetAsyncError) get_async_error = nullptr;
  decltype(&ncclCommFinalize) finalize = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
};

// Before 2.27.3 all that a thread had begun shared one state: a rank that had not joined yet kept
// the next one of its thread from joining, and in some versions a peer that hung kept a call from
// returning that does not block.
expected<void> check_version(const nccl_functions& functions) {
  constexpr int oldest = NCCL_VERSION(2, 27, 3);
  int version = 0;
  if (functions.get_version(&version) != ncclSuccess || version >= oldest) return {};
  return fail(
    errc::resource,
    fmt::format("NCCL {}.{}.{} is too old for ranks that join side by side: install 2.27.3 "
                "or later, or reduce without it",
                version / 10'000, version / 100 % 100, version % 100));
}

expected<nccl_functions> load() {
  const std::string name = "libnccl.so." + std::to_string(NCCL_MAJOR);
  auto library = cuda::loaded_library::open("NCCL", name, TROUPE_NCCL_LIBRARIES);
  if (!library) return tl::unexpected<error>(library.error());
  nccl_functions found;
  if (library->find("ncclGetVersion", found.get_version)
      && library->find("ncclGetUniqueId", found.get_unique_id)
      && library->find("ncclCommInitRankConfig", found.init)
      && library->find("ncclCommGetAsyncError", found.get_async_error)
      && library->find("ncclCommFinalize", found.finalize)
      && library->find("ncclCommDestroy", found.destroy)
      && library->find("ncclCommAbort", found.abort)
      && library->find("ncclGroupStart", found.group_start)
      && library->find("ncclGroupEnd", found.group_end)
      && library->find("ncclAllReduce", found.all_reduce)
      && library->find("ncclAllGather", found.all_gather)
      && library->find("ncclReduceScatter", found.reduce_scatter)
      && library->find("ncclBroadcast", found.broadcast)
      && library->find("ncclGetErrorString", found.error_string)
      && library->find("ncclGetLastError", found.last_error))
    return check_version(found).map([&] { return found; });
  return fail(errc::resource, name + " lacks functions of NCCL 2.27 and later; install it anew");
}

const expected<nccl_functions>& nccl() {
  static const auto functions = load();
  return functions;
}

/// The call for which NCCL returned a code, and its GPU.
struct nccl_call {
  const char* expression;
  int line;
  int device_index = -1; ///< None, for calls that are of no GPU.
  ncclComm_t group = nullptr;
};

bool is_well(ncclResult_t code) {
  return code == ncclSuccess || code == ncclInProgress;
}

// NCCL's codes become ours: what was asked wrongly is the caller's, the rest is the group's end.
expected<void> check(ncclResult_t code, const nccl_call& call) {
  if (is_well(code)) return {};
  auto is_ours = code == ncclInvalidArgument || code == ncclInvalidUsage;
  const auto* detail = nccl()->last_error(call.group);
  auto where = call.device_index < 0 ? "" : fmt::format(" on gpu:{}", call.device_index);
  return fail(is_ours ? errc::invalid_argument : errc::unavailable,
              fmt::format("NCCL: {} ({}) from {}{} ({}:{})", nccl()->error_string(code),
                          detail == nullptr ? "" : detail, call.expression, where, __FILE__,
                          call.line));
}

ncclDataType_t type_of(dtype type) {
  constexpr ncclDataType_t types[]
    = {ncclFloat32, ncclFloat64, ncclFloat16, ncclBfloat16, ncclInt32, ncclInt64};
  static_assert(std::size(types) == dtype_count);
  return types[static_cast<size_t>(type)];
}

const char* function_of(collective_kind kind) {
  constexpr const char* names[]
    = {"ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclBroadcast", "a barrier"};
  static_assert(std::size(names) == static_cast<size_t>(collective_kind::barrier) + 1);
  return names[static_cast<size_t>(kind)];
}

ncclResult_t queue(const device_collective& collective, ncclComm_t group, cudaStream_t on) {
  const auto* from = collective.input.data();
  auto count = collective.input.element_count();
  auto output = collective.output;
  auto* to = output.mutable_data();
  auto type = type_of(collective.input.type());
  switch (collective.kind) {
  case collective_kind::all_reduce:
    return nccl()->all_reduce(from, to, count, type, ncclSum, group, on);
  case collective_kind::all_gather:
    return nccl()->all_gather(from, to, count, type, group, on);
  case collective_kind::reduce_scatter:
    return nccl()->reduce_scatter(from, to, output.element_count(), type, ncclSum, group, on);
  case collective_kind::broadcast:
    return nccl()->broadcast(from, to, count, type, static_cast<int>(collective.root), group, on);
  default:
    return ncclInvalidUsage;
  }
}

/// Groups on their way out. NCCL does what a group was asked for, and frees what it has, before it
/// returns; neither an actor nor the files that others write are to wait for that. So each group
/// ends on a thread of its own, and the last participant or library waits for those threads: the
/// end of the process cuts none off.
class group_ends {
public:
  ~group_ends() {
    std::unique_lock lock{state_->mutex};
    state_->ended.wait_for(lock, 2 * timeout, [this] { return state_->under_way == 0; });
  }

  void begin(ncclComm_t group, int device_index, bool is_whole) {
    {
      std::lock_guard lock{state_->mutex};
      ++state_->under_way;
    }
    std::thread{[state = state_, group, device_index, is_whole] {
      static_cast<void>(cuda::detail::use(device_index));
      if (is_whole && is_finalized(group))
        static_cast<void>(nccl()->destroy(group));
      else
        static_cast<void>(nccl()->abort(group));
      std::lock_guard lock{state->mutex};
      --state->under_way;
      state->ended.notify_all();
    }}.detach();
  }

private:
  static constexpr auto timeout = std::chrono::seconds{5};

  struct state {
    std::mutex mutex;
    std::condition_variable ended;
    size_t under_way = 0;
  };

  // Whether all that the group was asked for is done, and its members know of each other's end.
  static bool is_finalized(ncclComm_t group) {
    auto code = nccl()->finalize(group);
    using clock = std::chrono::steady_clock;
    for (auto until = clock::now() + timeout; is_well(code) && clock::now() < until;) {
      auto now = ncclInProgress;
      code = nccl()->get_async_error(group, &now);
      if (is_well(code)) code = now;
      if (code == ncclSuccess) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return false;
  }

  std::shared_ptr<state> state_ = std::make_shared<state>(); ///< Outlives a group that hangs.
};

/// No call of a communicator that does not block takes long, so one lock keeps `abort` from the
/// others.
class nccl_participant final : public collective_participant {
public:
  nccl_participant(int device_index, std::shared_ptr<group_ends> ends)
    : device_index_(device_index), ends_(std::move(ends)) {}

  ~nccl_participant() override {
    std::lock_guard guard{mutex_};
    end(look().value_or(false));
  }

  [[nodiscard]] expected<void> join(const ncclUniqueId& id, uint32_t rank, uint32_t size) {
    if (auto used = cuda::detail::use(device_index_); !used) return used;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    std::lock_guard guard{mutex_};
    auto code = nccl()->init(&group_, static_cast<int>(size), id, static_cast<int>(rank), &config);
    return check(code, called("ncclCommInitRankConfig", __LINE__));
  }

  [[nodiscard]] expected<bool> is_ready() override {
    std::lock_guard guard{mutex_};
    return look();
  }

  [[nodiscard]] expected<void> ask(std::span<const device_collective> collectives,
                                   compute_stream& on) override {
    auto* stream = dynamic_cast<cuda_stream*>(&on);
    if (stream == nullptr)
      return fail(errc::invalid_argument, "NCCL is for GPUs: the stream is of another device");
    if (auto used = cuda::detail::use(device_index_); !used) return used;
    return queue_all(collectives, stream->context().stream().handle());
  }

  void abort() override {
    std::lock_guard guard{mutex_};
    end(false);
  }

private:
  void end(bool is_whole) {
    if (group_ != nullptr) ends_->begin(std::exchange(group_, nullptr), device_index_, is_whole);
  }

  [[nodiscard]] expected<bool> look() {
    if (group_ == nullptr) return fail(errc::unavailable, "NCCL: the group was given up");
    ncclResult_t state = ncclSuccess;
    auto checked
      = check(nccl()->get_async_error(group_, &state), called("ncclCommGetAsyncError", __LINE__));
    if (checked) checked = check(state, called(last_asked_, __LINE__)); // it has gone wrong since
    if (!checked) return tl::unexpected<error>(checked.error());
    return state == ncclSuccess;
  }

  [[nodiscard]] expected<void> queue_all(std::span<const device_collective> collectives,
                                         cudaStream_t stream) {
    std::lock_guard guard{mutex_};
    if (auto ready = look(); !ready) return tl::unexpected<error>(ready.error());
    auto queued = check(nccl()->group_start(), called("ncclGroupStart", __LINE__));
    for (const auto& collective : collectives) {
      if (!queued) break;
      last_asked_ = function_of(collective.kind);
      queued = check(queue(collective, group_, stream), called(last_asked_, __LINE__));
    }
    auto ended = check(nccl()->group_end(), called("ncclGroupEnd", __LINE__));
    return queued ? ended : queued;
  }

  [[nodiscard]] nccl_call called(const char* expression, int line) const {
    return {expression, line, device_index_, group_};
  }

  int device_index_;
  std::shared_ptr<group_ends> ends_;
  std::mutex mutex_;
  ncclComm_t group_ = nullptr; ///< Null after the end.
  const char* last_asked_ = "ncclCommInitRankConfig";
};

class nccl_library final : public collective_library {
public:
  [[nodiscard]] std::string_view name() const override { return "NCCL"; }

  [[nodiscard]] expected<collective_id> make_id() override {
    ncclUniqueId made{};
    auto checked = check(nccl()->get_unique_id(&made), {"ncclGetUniqueId", __LINE__});
    if (!checked) return tl::unexpected<error>(checked.error());
    collective_id id{};
    static_assert(sizeof(made) == sizeof(id));
    std::memcpy(id.data(), &made, sizeof(made));
    return id;
  }

  [[nodiscard]] expected<std::unique_ptr<collective_participant>>
  join(const collective_id& group, uint32_t rank, uint32_t size, compute_device& device) override {
    if (device.where().kind != device_kind::cuda)
      return fail(errc::invalid_argument,
                  fmt::format("NCCL is for GPUs, and {} is none", device.name()));
    ncclUniqueId id{};
    std::memcpy(&id, group.data(), sizeof(id));
    auto made = std::make_unique<nccl_participant>(device.where().index, ends_);
    if (auto joined = made->join(id, rank, size); !joined)
      return tl::unexpected<error>(joined.error());
    return made;
  }

private:
  std::shared_ptr<group_ends> ends_ = std::make_shared<group_ends>();
};

} // namespace

expected<std::shared_ptr<collective_library>> open_nccl() {
  if (const auto& loaded = nccl(); !loaded) return tl::unexpected<error>(loaded.error());
  return std::make_shared<nccl_library>();
}

} // namespace troupe
